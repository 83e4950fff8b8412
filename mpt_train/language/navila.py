r"""NaVILA checkpoints (``llava_llama``) as a plug-in: what they need beyond transformers.

NaVILA (arXiv 2412.04453) is built on VILA, whose model code is not part of transformers, so it is
imported from where the user has it::

    git clone https://github.com/AnjieCheng/NaVILA
    pip install -e ./NaVILA
    MPT_NAVILA=path/to/navila-llama3-8b-8f mpt train mpt --policy language \
        --language.model mpt_train.language.navila:load

Its own release pins versions of torch and transformers that differ from those tested here. The
language model inside (``model.llm``, a Llama) is what this plug-in hands over: it reads the text of
a state, and its adapters are trained; pictures need VILA's own towers and are not passed on.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

from mpt_train.language.config import LanguageConfig
from mpt_train.language.errors import ModelNotFoundError

FOLDER = "MPT_NAVILA"
"""Environment variable with the folder of the checkpoint."""
_CODE = "llava.model.builder"


def load(config: LanguageConfig) -> tuple[Any, Any]:
    """The language model and tokenizer of a NaVILA checkpoint.

    Args:
        config: ``pictures`` must be off.

    Raises:
        ModelNotFoundError: says what is missing, and how to get it.
    """
    if config.pictures:
        raise ModelNotFoundError(
            "NaVILA's towers belong to VILA's own code; play with --language.no-pictures"
        )
    folder = os.environ.get(FOLDER, "")
    if not folder or not Path(folder).is_dir():
        raise ModelNotFoundError(
            f"set {FOLDER} to the folder of a NaVILA checkpoint, e.g. after `hf download "
            "a8cheng/navila-llama3-8b-8f --local-dir navila`"
        )
    try:
        builder = importlib.import_module(_CODE)
    except ImportError as error:
        raise ModelNotFoundError(
            f"NaVILA needs the model code of VILA ({error}); `git clone "
            "https://github.com/AnjieCheng/NaVILA && pip install -e ./NaVILA`"
        ) from error
    tokenizer, model, *_ = builder.load_pretrained_model(folder, "llava_llama", None)
    return getattr(model, "llm", model), tokenizer
