"""The configuration of language-model agents: a part of `mpt_train.config.TrainConfig`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TARGETS = r".*\.(q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj)"


@dataclass(frozen=True)
class LanguageConfig:
    """Agents that are language models; used with ``policy = "language"``."""

    model: str = "tiny"
    """"tiny" and "tiny-..." (random weights, see `mpt_train.language.tiny`), a local folder, a
    .gguf file, a hub id, or ``module:function``, a plug-in that loads the model."""
    parameters: Literal["adapters", "separate"] = "adapters"
    """"adapters": one frozen base, a low-rank adapter per agent. "separate": a whole model per
    agent, as in the paper; all of its weights learn."""
    rank: int = 16
    """Rank of an adapter."""
    alpha: float = 32.0
    """An adapter's output is scaled by alpha / rank."""
    targets: str = TARGETS
    """Regular expression for the names of the linear layers that get adapters; those of vision and
    audio towers never do."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of the base model's arithmetic; "auto": bfloat16 on a GPU, else float32. What is learned is
    kept in float32."""
    device: str = "auto"
    """Where the models run, e.g. "cuda:0"; "auto": a GPU if there is one."""
    answers: Literal["json", "plain"] = "json"
    """How demonstrations and options are written: {"bid": 0.7}, {"action": "chop_log"}, or 0.7,
    chop_log. Both forms (and more) are read."""
    decoding: Literal["free", "choice"] = "free"
    """"free": any text, which is then read. "choice": among the legal answers only, in proportion
    to their probabilities."""
    temperature: float = 1.0
    """The policy is the softmax of logits / temperature, in rollouts and in learning."""
    max_prompt_tokens: int = 2048
    """Longer prompts lose the oldest turns of their history first, then their middle."""
    max_answer_tokens: int = 24
    """Answers are cut off there."""
    history: int = 0
    """How many past turns of the team a prompt tells at most, beyond what the task itself tells."""
    profile: bool = True
    """Whether the system message tells role, actions and rules; a model per role can learn them."""
    prompts: Literal["full", "brief"] = "full"
    """"brief": the game's part in a few words, and listed actions without their explanation; for
    models that learn the task from nothing, to which every token is work."""
    pictures: bool = False
    """Show the picture of the state as well (vision-language models)."""
    unread: Literal["noop", "retry", "raise"] = "noop"
    """What follows an answer that cannot be read or is illegal. "noop": a bid of 0, or a wasted
    turn. "retry": it is drawn again, up to ``retries`` times, then as "noop". "raise": an error."""
    retries: int = 2
    """Of ``unread = "retry"``."""
    normalize: Literal["none", "token", "word"] = "none"
    """What the log-probability of an answer is divided by in losses: nothing, its number of tokens,
    or of words."""
    kl: float = 0.0
    """Weight of the divergence from the policy after the cold start, estimated on the answers."""
    batch_rows: int = 64
    """Most sequences in one forward pass of a rollout."""
    micro_batch: int = 8
    """Most sequences in one forward and backward pass of an update; gradients accumulate."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, a third more compute."""
    reuse_prompts: bool = True
    """Keep keys and values of what prompts share: an agent's system message, and the state that is
    told for the bid and again for the action."""
    demonstrations: str = ""
    """JSON lines to learn the cold start from (`mpt demos` writes them), which then needs no
    scripted expert; empty: the run's own."""
    engine: str = "transformers"
    """"transformers". The address of an OpenAI-compatible server, such as
    http://localhost:8000/v1, stands here in `mpt eval --engine` only: its models answer then, and
    cannot be trained."""
    engine_model: str = ""
    """Name of the model on the server, "{agent}" and "{role}" in it replaced (an adapter each);
    empty: ``model``."""
    engine_concurrency: int = 16
    """Most requests to the server at a time."""
    engine_timeout: float = 60.0
    """Seconds until a request counts as failed, from its first byte to the last of the reply."""
    engine_retries: int = 3
    """How often a failed request is sent again, after 0.5, 1, 2, ... seconds, at most 60."""
