"""The configuration of a training run: plain dataclasses, one per part of the loop.

Every method is a value of `TrainConfig` (`mpt_train.methods`); the command line shows the same
fields. Where the MPT paper leaves a choice open, the field says so and `docs/choices.md` has what
was measured for it.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any, Literal


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
    """Demonstration episodes (the same for every method of a seed); 0: no cold start."""
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
    coefficient: float = 1.0
    """Weight of the bid loss where bids and actions are learned in the same step."""


@dataclass(frozen=True)
class OptimizerConfig:
    """Adam, one step per batch of episodes."""

    learning_rate: float = 4e-3
    decay: Literal["none", "linear"] = "linear"
    """"linear": to a tenth of the learning rate, over the compute budget."""
    max_grad_norm: float = 1.0
    """Gradients of each agent are clipped to this norm."""


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
    action_steps: int = 4
    """Action steps before each bid step; 0: every step learns both."""
    env: EnvConfig = field(default_factory=EnvConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    cold_start: ColdStartConfig = field(default_factory=ColdStartConfig)
    action: ActionLearning = field(default_factory=ActionLearning)
    bids: BidLearning = field(default_factory=BidLearning)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    checkpoint_every: int = 20
    """Training steps between checkpoints; the last step is always kept."""


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
