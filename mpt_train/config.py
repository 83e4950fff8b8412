"""The configuration of a training run: plain dataclasses, one per part of the loop.

Every method is a value of `TrainConfig` (`mpt_train.methods`); the command line shows the same
fields. Where the MPT paper leaves a choice open, the field says so and `docs/choices.md` has what
was measured for it.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from dataclasses import dataclass, field
from typing import Any, Literal

from mpt_train.field_types import wrong_types
from mpt_train.language.config import LanguageConfig


@dataclass(frozen=True)
class EnvConfig:
    """The environment of a run; everything here is passed to `mpt_envs.make`."""

    agents: int | None = None
    """Number of agents, a multiple of the number of roles; None: one agent per role."""
    bid_levels: str = "tenths"
    """Bid levels: "tenths" (0, 0.1, ..., 1) or "crowded" (more of them close to 1)."""
    max_turns: int | None = None
    """Turn budget of an episode; None: the task's own."""
    dropout: float = 0.0
    """Probability that an agent is absent in a turn."""
    backend: str | None = None
    """Backend of the domain; None: its embedded simulator."""


@dataclass(frozen=True)
class NetworkConfig:
    """The small networks: one multi-layer perceptron per agent, no shared parameters."""

    hidden: tuple[int, ...] = (64, 64)
    """Width of each hidden layer of an agent's action network."""
    bid_hidden: tuple[int, ...] | None = None
    """Hidden layers of the agent's own bid network; None: the bid is a second head on the hidden
    layers of the action network."""
    critic_hidden: tuple[int, ...] = (32,)
    """Hidden layers of the central critic that ``action.baseline = "value"`` learns."""


@dataclass(frozen=True)
class ColdStartConfig:
    """Supervised learning on demonstrations before anything else."""

    episodes: int = 64
    """Demonstration episodes (the same for every method of a seed); 0: no cold start. A file of
    ``language.demonstrations`` is used whole, whatever their number."""
    action_noise: float = 0.3
    """Probability that the demonstrator acts at random among the legal actions."""
    bid_noise: float = 0.3
    """Probability that in a turn a random agent of the demonstrator is the eager one."""
    epochs: int = 4
    """Passes over the demonstrations."""
    batch_size: int = 256
    """Turns in a mini-batch."""
    learning_rate: float = 1e-3
    """Of Adam."""


@dataclass(frozen=True)
class ActionLearning:
    """REINFORCE for acting."""

    credit: Literal["market", "value", "discounted"] = "market"
    """What the actor of turn t learns from. "market": (1 - b_t) v_t, where
    v_t = r_t + b_{t+1} v_{t+1} (the paper). "value": v_t, i.e. without the actor's own factor.
    "discounted": the discounted return, blind to bids."""
    discount: float = 0.95
    """Of the discounted return."""
    baseline: Literal["agent", "turn", "value"] = "agent"
    """What is subtracted from the credit: the agent's mean over the batch (the paper), the mean
    over the episodes of the batch at the same turn, or the prediction of a central critic that is
    learned on the side (used in training only, also for the advantage that bids learn from)."""
    normalize: bool = False
    """Divide the advantages of each agent by their standard deviation over the batch."""
    entropy: float = 0.0
    """Weight of the entropy of the action distribution in the objective."""


@dataclass(frozen=True)
class BidLearning:
    """How bids are learned."""

    kind: Literal["none", "preference", "policy_gradient", "both"] = "preference"
    """"preference": Bradley-Terry between the episode and counterfactual branches (the paper).
    "policy_gradient": each agent's bid by REINFORCE on the team's discounted return."""
    branch_noise: Literal["shared", "independent"] = "shared"
    """Whether a branch shares its random numbers with the episode it leaves."""
    contested_turns: int = 8
    """Turns of each episode at which a branch is tried, drawn at random."""
    resamples: int = 3
    """How often the winner's bid is drawn again until it is below the runner-up's."""
    score_discount: float = 1.0
    """Discount of the rewards that score a branch; 1: their plain sum (the paper)."""
    pair_weighting: Literal["none", "difference"] = "none"
    """Weight of a pair in the loss: 1 (the paper), or the difference of the two scores, divided by
    the mean difference of the batch."""
    estimator: Literal["sampled", "marginal"] = "marginal"
    """What the policy gradient differentiates. "sampled": the log-probability of each agent's own
    bid. "marginal": the log-probability that the winner wins, over all bids that could have been
    drawn; the same expected gradient of the return, without the noise of bids that decide
    nothing."""
    discount: float = 0.95
    """Discount of the return in the policy gradient on bids."""
    entropy: float = 0.0
    """Weight of the entropy of the bid distribution in the objective."""
    allow_approximate_snapshots: bool = False
    """Try branches also where a backend cannot restore a state exactly: what differs between the
    two branches is then not due to the actor alone."""
    coefficient: float = 1.0
    """Weight of the bid loss where bids and actions are learned in the same step."""


@dataclass(frozen=True)
class OptimizerConfig:
    """Adam."""

    learning_rate: float = 4e-3
    decay: Literal["none", "linear"] = "linear"
    """"linear": to a tenth of the learning rate, over the compute budget."""
    max_grad_norm: float = 1.0
    """Gradients of each agent are clipped to this norm."""
    minibatches: int = 1
    """Updates per batch of episodes, each on its own equal share of them; at most one an episode.
    From the second one on the episodes were played by an older policy: then losses are clipped (see
    ``clip``)."""
    clip: float = 0.2
    """With more than one mini-batch: how far the probability of a choice may move from the one it
    was made with, as a ratio, before it is no longer reinforced (PPO)."""


@dataclass(frozen=True)
class EvalConfig:
    """Evaluation on held-out worlds, whose seeds no training episode uses."""

    worlds: int = 128
    """Held-out worlds."""
    repeats: int = 3
    """Evaluations of each world, with different noise of the policies."""
    curve_points: int = 16
    """Evaluations (one repeat each) spread over the budget, for the learning curve."""
    curve_worlds: int = 64
    """Held-out worlds of those."""
    split: Literal["evaluation", "validation"] = "evaluation"
    """"evaluation": the worlds that results are reported on. "validation": others, for choosing
    hyperparameters."""


@dataclass(frozen=True)
class TrainConfig:
    """One training run."""

    task: str = "crafting/iron-pickaxe-v0"
    """Environment id, see `mpt_envs.registry`."""
    method: str = "mpt-plus"
    """Name of the method that this configuration stands for (see `mpt_train.methods`)."""
    seed: int = 0
    """Training seed: fixes the networks, the demonstrations, the worlds and all noise."""
    budget_gflop: float = 400.0
    """Compute budget in 10^9 floating-point operations; everything counts."""
    num_envs: int = 16
    """Episodes in a batch."""
    coordination: str = "learned"
    """Where bids come from: learned, round-robin, random, priority, router, graph-of-agents, solo;
    or ``module:name``, a strategy that a module of your own registers when it is imported."""
    priority: tuple[str, ...] = ()
    """Roles, most important first, for "priority"; empty: the order of the roles reversed."""
    learner: str = "reinforce"
    """How agents learn: "reinforce" (see ``action``, ``bids`` and ``optimizer``); or
    ``module:name``, a learner that a module of your own registers when it is imported."""
    action_steps: int = 4
    """Action steps before each bid step; 0: every step learns both."""
    policy: Literal["networks", "language"] = "networks"
    """What the agents are: small networks over vectors, or language models over text (``language``;
    extra [llm])."""
    env: EnvConfig = field(default_factory=EnvConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    cold_start: ColdStartConfig = field(default_factory=ColdStartConfig)
    action: ActionLearning = field(default_factory=ActionLearning)
    bids: BidLearning = field(default_factory=BidLearning)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    language: LanguageConfig = field(default_factory=LanguageConfig)
    checkpoint_every: int = 20
    """Training steps between checkpoints; the last step is always kept."""


_ABOVE_ZERO = math.ulp(0.0)
_RANGES: dict[str, tuple[float, float]] = {
    "seed": (0, (1 << 18) - 1),
    "budget_gflop": (_ABOVE_ZERO, math.inf),
    "num_envs": (1, math.inf),
    "action_steps": (0, math.inf),
    "checkpoint_every": (1, math.inf),
    "network.hidden": (1, math.inf),
    "network.bid_hidden": (1, math.inf),
    "network.critic_hidden": (1, math.inf),
    "cold_start.episodes": (0, math.inf),
    "cold_start.action_noise": (0, 1),
    "cold_start.bid_noise": (0, 1),
    "cold_start.epochs": (0, math.inf),
    "cold_start.batch_size": (1, math.inf),
    "cold_start.learning_rate": (_ABOVE_ZERO, math.inf),
    "action.discount": (0, 1),
    "action.entropy": (-math.inf, math.inf),
    "bids.contested_turns": (0, math.inf),
    "bids.resamples": (0, math.inf),
    "bids.score_discount": (0, 1),
    "bids.discount": (0, 1),
    "bids.entropy": (-math.inf, math.inf),
    "bids.coefficient": (-math.inf, math.inf),
    "optimizer.learning_rate": (_ABOVE_ZERO, math.inf),
    "optimizer.max_grad_norm": (_ABOVE_ZERO, math.inf),
    "optimizer.minibatches": (1, math.inf),
    "optimizer.clip": (_ABOVE_ZERO, 1),
    "eval.worlds": (1, math.inf),
    "eval.repeats": (1, math.inf),
    "eval.curve_points": (0, math.inf),
    "eval.curve_worlds": (1, math.inf),
    "language.rank": (1, math.inf),
    "language.alpha": (_ABOVE_ZERO, math.inf),
    # Below, logits leave the range of float32.
    "language.temperature": (1e-3, math.inf),
    "language.max_prompt_tokens": (16, math.inf),
    "language.max_answer_tokens": (1, 2048),
    "language.history": (0, math.inf),
    "language.retries": (1, 60),
    "language.kl": (0, math.inf),
    "language.batch_rows": (1, math.inf),
    "language.micro_batch": (1, math.inf),
    "language.engine_concurrency": (1, 1024),
    "language.engine_timeout": (1e-3, 86_400),
    "language.engine_retries": (0, 100),
}
"""Least and largest value of each number of a configuration; all of them are finite."""


def check_config(config: TrainConfig) -> None:
    """Refuse configurations that cannot mean anything, before work is done.

    What only the game knows (the environment's options, the names of the roles) is checked when it
    is built.

    Raises:
        ValueError: with all values that are wrong, or else all that do not go together.
    """
    problems = value_problems(config)
    if problems:
        # What follows compares values, and can do so only with what they may be.
        raise ValueError("; ".join(problems))
    problems = _combination_problems(config)
    if problems:
        raise ValueError("; ".join(problems))


def value_problems(config: TrainConfig) -> list[str]:
    """What is wrong with single values, whatever the configuration is used for."""
    # Single numbers are told with their range.
    lists = ("network.hidden", "network.bid_hidden", "network.critic_hidden")
    problems = wrong_types(config, skip=_RANGES.keys() - set(lists))
    if problems:
        return problems
    for name, (least, largest) in _RANGES.items():
        value, default = _field(config, name), _field(TrainConfig(), name)
        values = value if isinstance(value, tuple) else (value,)
        if value is None and name == "network.bid_hidden":
            continue
        whole = not isinstance(default, float)
        if not all(_is_within(number, least, largest) for number in values):
            problems.append(f"{name} must be {_range(least, largest)}, got {value}")
        elif whole and not all(isinstance(number, int) for number in values):
            problems.append(f"{name} must be a whole number, got {value}")
    if not config.network.hidden:
        problems.append("network.hidden needs at least one hidden layer")
    return problems


def _combination_problems(config: TrainConfig) -> list[str]:
    """What cannot be trained together."""
    problems = []
    branching = config.coordination == "learned" and config.bids.kind in ("preference", "both")
    if branching and (config.bids.contested_turns == 0 or config.bids.resamples == 0):
        problems.append("bids.contested_turns and bids.resamples must be at least 1")
    one_hot = config.coordination not in ("learned", "random")
    if one_hot and config.action.credit == "market":
        problems.append(
            f"coordination {config.coordination!r} bids 1, which leaves the actor nothing of the "
            "market credit; use --action.credit discounted"
        )
    problems += _language_problems(config)
    if config.coordination == "solo" and (config.env.agents or config.env.dropout):
        problems.append("a monolithic policy has neither agents nor dropout")
    return problems


def _field(config: TrainConfig, name: str) -> Any:
    """The value under a dotted name."""
    value: Any = config
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _language_problems(config: TrainConfig) -> list[str]:
    """What agents that answer in text cannot do."""
    problems = []
    if config.language.demonstrations:
        if config.policy != "language":
            problems.append(
                "language.demonstrations is what language models read: it needs --policy language"
            )
        elif config.cold_start.episodes == 0 or config.cold_start.epochs == 0:
            problems.append(
                "language.demonstrations names a file to learn the cold start from, but "
                "cold_start.episodes = 0 or cold_start.epochs = 0 wants no cold start; drop one"
            )
    if config.policy != "language":
        return problems
    try:
        re.compile(config.language.targets)
    except re.error as error:
        problems.append(
            f"language.targets = {config.language.targets!r} is no regular expression: {error}"
        )
    if not config.language.model.strip():
        problems.append("language.model must name a model, e.g. tiny, a folder or a hub id")
    gradient = config.coordination == "learned" and config.bids.kind in ("policy_gradient", "both")
    if gradient and config.bids.estimator == "marginal":
        problems.append(
            "the distribution of bids in text is not known as a whole: use --bids.estimator sampled"
        )
    if config.coordination == "graph-of-agents":
        problems.append("graph-of-agents looks into networks: it does not take --policy language")
    if config.language.engine != "transformers":
        problems.append(
            "a server's models cannot be updated from here: train with language.engine "
            "transformers, or let a server play in `mpt eval RUN --engine ADDRESS`"
        )
    return problems


def _is_within(number: Any, least: float, largest: float) -> bool:
    """Whether it is a finite number in the range; never true of NaN."""
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return False
    try:
        return least <= number <= largest and math.isfinite(number)
    except OverflowError:
        return False


def _range(least: float, largest: float) -> str:
    if least == _ABOVE_ZERO:
        return "a finite number above 0"
    if math.isinf(least):
        return "a finite number"
    return f"at least {least:g}" if math.isinf(largest) else f"from {least:g} to {largest:g}"


def to_json(config: TrainConfig) -> dict[str, Any]:
    """The configuration as plain JSON values."""
    plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(config)))
    return plain


def from_json(values: dict[str, Any]) -> TrainConfig:
    """Inverse of `to_json`.

    Raises:
        ValueError: a field is unknown, which means that another release wrote it.
    """
    config = _build(TrainConfig, values, "")
    assert isinstance(config, TrainConfig)
    return config


_PARTS: dict[str, type] = {
    "env": EnvConfig,
    "network": NetworkConfig,
    "cold_start": ColdStartConfig,
    "action": ActionLearning,
    "bids": BidLearning,
    "optimizer": OptimizerConfig,
    "eval": EvalConfig,
    "language": LanguageConfig,
}


def _build(kind: Any, values: dict[str, Any], where: str) -> Any:
    names = {f.name for f in dataclasses.fields(kind)}
    unknown = sorted(set(values) - names)
    if unknown:
        raise ValueError(
            f"unknown configuration fields {', '.join(where + name for name in unknown)}; "
            "this configuration was written by another release"
        )
    built: dict[str, Any] = {}
    for name, value in values.items():
        if kind is TrainConfig and name in _PARTS:
            built[name] = _build(_PARTS[name], value, f"{name}.")
        else:
            built[name] = tuple(value) if isinstance(value, list) else value
    return kind(**built)
