"""A gguf file as an ordinary model folder: ``python -m mpt_train.language.convert FILE FOLDER``.

Reading a gguf file takes a while, because its weights are unpacked; the folder loads in an instant.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class Convert:
    """Write a model that can be loaded as --language.model as an ordinary model folder."""

    model: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="MODEL")]
    """A gguf file, a folder, or a hub id."""
    folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FOLDER")]
    """Where to write it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    options = tyro.cli(Convert, args=arguments)
    from mpt_train.language.config import LanguageConfig
    from mpt_train.language.errors import MissingLibraryError, ModelNotFoundError
    from mpt_train.language.models import load

    try:
        loaded = load(LanguageConfig(model=options.model, dtype="float32"), lambda: (), 0)
    except (ModelNotFoundError, MissingLibraryError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    loaded.model.save_pretrained(options.folder)
    loaded.tokenizer.save_pretrained(options.folder)
    print(f"wrote {options.folder}: use it as --language.model {options.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
