"""The training loop: collect, credit, (branch), update, log, checkpoint. One loop for all methods.

The state between two steps is parameters, Adam's moments and counters; every random draw is keyed
by (training seed, episode, turn). So a resumed run gives the numbers of an uninterrupted one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from mpt_train.agents import build_agents
from mpt_train.branches import BranchPlayer, Pairs, check_fidelity, choose_turns
from mpt_train.checkpoint import has_checkpoint, load_checkpoint, save_checkpoint
from mpt_train.cold_start import demonstrate, fit, replay_solo, require_expert
from mpt_train.config import TrainConfig, check_config
from mpt_train.credit import (
    actor_credit,
    advantages,
    discounted_returns,
    subtract_turn_mean,
)
from mpt_train.critic import CREDIT, TEAM, critic_loss
from mpt_train.errors import CheckpointError, DivergedError, TrainingInterrupted
from mpt_train.evaluate import BINS, Evaluation, evaluate
from mpt_train.flops import ADAM_PER_PARAMETER, FlopCounter
from mpt_train.games import build_game
from mpt_train.interrupt import StopRequest
from mpt_train.logs import RunLogger
from mpt_train.losses import action_loss, choice_loss, preference_loss
from mpt_train.policy import SwarmPolicy
from mpt_train.rollout import Batch, participation, rollout
from mpt_train.run_folder import RunFolder
from mpt_train.seeds import training_seeds
from mpt_train.text_policy import TextPolicy
from wrappers.vector import VectorGame


@dataclass
class Progress:
    """Counters of a run: all of its state that is not a tensor."""

    step: int = 0
    turns: int = 0
    episodes: int = 0
    flop: int = 0
    flop_parts: dict[str, int] = field(default_factory=dict)
    wall_seconds: float = 0.0
    curve: list[dict[str, float]] = field(default_factory=list)
    cold_start: dict[str, Any] = field(default_factory=dict)
    demonstration_return: float = float("nan")


@dataclass(frozen=True)
class RunSummary:
    """A finished run in numbers; written to ``summary.json``.

    Attributes:
        flop, flop_parts: operations in total and by part (evaluations are not counted).
        turns, episodes, steps: experience and updates.
        wall_seconds: of the cold start and the training, without the final evaluation.
        cold_start, final: evaluations on held-out worlds, as `Evaluation.to_json`.
        curve: ``{"flop", "turns", "return_mean", "success"}`` along the run.
    """

    task: str
    method: str
    seed: int
    flop: int
    flop_parts: dict[str, int]
    turns: int
    episodes: int
    steps: int
    wall_seconds: float
    demonstration_return: float
    cold_start: dict[str, Any]
    final: dict[str, Any]
    curve: list[dict[str, float]]
    folder: str

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


class Trainer:
    """Trains one configuration.

    Args:
        config: the run.
        folder: run folder for logs and checkpoints; None keeps everything in memory.
        resume: continue from the folder's checkpoint, if it has one.
        overwrite: replace a run that the folder holds.
        stop: polled between steps; a request ends training with a checkpoint and
            `TrainingInterrupted`.
    """

    def __init__(
        self,
        config: TrainConfig,
        folder: Path | None = None,
        *,
        resume: bool = False,
        overwrite: bool = False,
        stop: StopRequest | None = None,
    ) -> None:
        check_config(config)
        self.config = config
        self.stop = stop or StopRequest()
        self.game = build_game(config, config.num_envs)
        if config.coordination == "learned" and config.bids.kind in ("preference", "both"):
            check_fidelity(self.game, config.bids.allow_approximate_snapshots)
        self.agents = build_agents(config, self.game)
        self.progress = Progress()
        self.counter = FlopCounter()
        self._parameters = self.agents.named_parameters()
        self._optimizer = torch.optim.Adam(
            self._parameters.values(), lr=config.optimizer.learning_rate, fused=True
        )
        self._branches = BranchPlayer(self.game)
        self._curve_game = self.game.spawn(config.eval.curve_worlds)
        resumed = resume and folder is not None and has_checkpoint(RunFolder(folder).checkpoint)
        if config.language.demonstrations and not resumed:
            assert isinstance(self.agents.policy, TextPolicy)
            self.agents.policy.read_demonstrations(self.game)
        if self._asks_expert and not resumed:
            require_expert(self.game)
        # Only now, so that a configuration that cannot be built takes no folder.
        self.run = (
            None
            if folder is None
            else RunFolder.for_training(folder, config, resume=resume, overwrite=overwrite)
        )
        if self.run is not None and resumed:
            self._load(self.run.checkpoint)

    # -- the whole run -----------------------------------------------------------------------

    def train(self, progress: bool = False) -> RunSummary:
        """Train until the compute budget is used up, then evaluate.

        Args:
            progress: show a progress bar.

        Raises:
            TrainingInterrupted: a stop was requested.
            DivergedError: a gradient is not finite. The last checkpoint is from before.
            TaskError: the task gave a reward or an observation that is not finite.
        """
        if self.run is None:
            return self._train(None, progress)
        with self.run.lock(), RunLogger(self.run.path) as logger:
            logger.rewind(self.progress.step, begun=bool(self.progress.cold_start))
            return self._train(logger, progress)

    def _train(self, logger: RunLogger | None, show: bool) -> RunSummary:
        config, state = self.config, self.progress
        budget = config.budget_gflop * 1e9
        started = time.perf_counter() - state.wall_seconds
        if not state.cold_start:
            self._cold_start(logger)
        bar = tqdm(
            total=100.0,
            initial=min(100.0, 100.0 * state.flop / budget),
            disable=not show,
            unit="%",
            bar_format="{desc} {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}{postfix}]",
            desc=f"{config.method} seed {config.seed}",
        )
        with bar:
            while self.counter.total < budget:
                record = self.step()
                state.wall_seconds = time.perf_counter() - started
                record["wall_time"] = state.wall_seconds
                if logger is not None:
                    logger.log(state.step, record)
                self._curve(logger, budget)
                bar.update(min(100.0, 100.0 * state.flop / budget) - bar.n)
                bar.set_postfix({"return": f"{record['return_mean']:.1f}"}, refresh=False)
                last = self.counter.total >= budget
                # Read once: a signal may come at any time, and stopping goes with a checkpoint.
                stopping = self.stop.requested
                if stopping or last or state.step % config.checkpoint_every == 0:
                    self._save(logger)
                if stopping and not last:
                    folder = None if self.run is None else self.run.path
                    raise TrainingInterrupted(folder, state.step, self.stop.signal_number)
        return self._finish()

    def _finish(self) -> RunSummary:
        config, state = self.config, self.progress
        game = self.game.spawn(config.eval.worlds)
        final = self._evaluate(game, config.eval.repeats)
        summary = RunSummary(
            task=config.task,
            method=config.method,
            seed=config.seed,
            flop=state.flop,
            flop_parts=dict(state.flop_parts),
            turns=state.turns,
            episodes=state.episodes,
            steps=state.step,
            wall_seconds=state.wall_seconds,
            demonstration_return=state.demonstration_return,
            cold_start=state.cold_start,
            final=final.to_json(),
            curve=list(state.curve),
            folder="" if self.run is None else self.run.path.name,
        )
        if self.run is not None:
            self.run.write_summary(summary.to_json())
        return summary

    # -- the parts of a step -----------------------------------------------------------------

    def _cold_start(self, logger: RunLogger | None) -> None:
        config, state = self.config, self.progress
        began = time.perf_counter()
        record: dict[str, Any] = {"kind": "cold_start"}
        policy = self.agents.policy
        file = bool(config.language.demonstrations)
        if file:
            assert isinstance(policy, TextPolicy)
            record |= policy.fit_file(config.cold_start, config.seed, self.counter)
        if self._asks_expert:
            record |= self._follow_expert(file)
        game = self.game.spawn(config.eval.worlds)
        evaluation = self._evaluate(game, config.eval.repeats)
        state.cold_start = evaluation.to_json()
        self._count()
        self._add_curve_point(evaluation.return_mean, evaluation.success)
        # Before it is saved: a run that is resumed from here has spent this time as well.
        state.wall_seconds += time.perf_counter() - began
        if self.run is not None:
            assert logger is not None
            record |= {"flop": state.flop, "return_mean": evaluation.return_mean}
            logger.log(state.step, record)
            save_checkpoint(self.run.cold_start, self._tensors(), self._state())
            self._save(logger)

    @property
    def _asks_expert(self) -> bool:
        """Whether the cold start needs the scripted expert.

        A strategy with parameters of its own learns from the expert's moves even where a file
        teaches the agents.
        """
        file = bool(self.config.language.demonstrations)
        own = self.agents.coordination.module is not None
        return self.config.cold_start.episodes > 0 and (own or not file)

    def _follow_expert(self, only_coordination: bool) -> dict[str, Any]:
        """Learn from demonstrations of the scripted expert; returns its part of the record."""
        config, policy = self.config, self.agents.policy
        record: dict[str, Any] = {}
        swarm = build_game(config, config.cold_start.episodes, solo=False)
        solo = config.coordination == "solo"
        width = max(swarm.observation_sizes) if solo else policy.observation_size
        actions = max(swarm.action_counts) if solo else policy.num_actions
        demos = demonstrate(swarm, config.cold_start, config.seed, width, actions)
        if solo:
            game = build_game(config, config.cold_start.episodes)
            demos = replay_solo(
                game, demos, swarm, config.seed, policy.observation_size, policy.num_actions
            )
        self.progress.demonstration_return = demos.mean_return
        if isinstance(policy, TextPolicy) and not only_coordination:
            played_in = game if solo else swarm
            record |= policy.fit(demos, played_in, config.cold_start, config.seed, self.counter)
        if isinstance(policy, SwarmPolicy) or self.agents.coordination.module is not None:
            record |= fit(
                demos,
                policy,
                self.agents.coordination,
                config.cold_start,
                config.seed,
                self.counter,
            )
        return record | {"demonstration_return": demos.mean_return}

    def step(self) -> dict[str, Any]:
        """One batch of episodes and its updates; returns the record for the log."""
        config, state = self.config, self.progress
        learned = config.coordination == "learned"
        cycle = config.action_steps + 1
        joint = config.action_steps == 0 or config.bids.kind == "none" or not learned
        bid_step = joint or state.step % cycle == config.action_steps
        action_step = joint or not bid_step
        branching = learned and bid_step and config.bids.kind in ("preference", "both")
        started = time.perf_counter()
        self.game.reset(training_seeds(config.seed, state.episodes, config.num_envs))
        save = (
            choose_turns(self.game, config.bids.contested_turns, self.game.keys)
            if branching
            else None
        )
        clip = config.optimizer.clip if len(self._minibatches()) > 1 else None
        batch = rollout(
            self.game,
            self.agents.policy,
            self.agents.coordination,
            self.counter,
            save_turns=save,
            log_probs=clip is not None,
        )
        collected = time.perf_counter()
        record = self._statistics(batch)
        pairs = None
        if branching:
            pairs = self._branches.collect(
                batch, self.agents.policy, self.agents.coordination, config.bids, self.counter
            )
            record["pairs"] = {**pairs.counts, **pairs.shares}
        branched = time.perf_counter()
        reports = []
        for worlds in self._minibatches():
            whole = len(worlds) == config.num_envs
            part = batch if whole else batch.only(worlds)
            own_pairs = pairs if pairs is None or whole else pairs.of_worlds(worlds)
            reports.append(self._learn(part, own_pairs, action_step, bid_step, clip))
        learned_from = _mean(reports)
        if pairs is not None:
            record["pairs"] |= learned_from.pop("pairs", {})
        record |= learned_from
        state.step += 1
        state.turns += batch.num_turns
        state.episodes += config.num_envs
        self._count()
        record |= {
            "kind": "train",
            "flop": state.flop,
            "turns": state.turns,
            "episodes": state.episodes,
            "phase": "both" if joint else ("bid" if bid_step else "action"),
            "seconds_rollout": collected - started,
            "seconds_branch": branched - collected,
            "seconds_update": time.perf_counter() - branched,
        }
        return record

    def _minibatches(self) -> list[NDArray[np.int64]]:
        """Worlds of the batch, one array for each update."""
        worlds = self.config.num_envs
        count = min(self.config.optimizer.minibatches, worlds)
        return [np.arange(i, worlds, count) for i in range(count)]

    def _learn(
        self,
        batch: Batch,
        pairs: Pairs | None,
        action_step: bool,
        bid_step: bool,
        clip: float | None,
    ) -> dict[str, Any]:
        """One update from some episodes; returns its part of the record for the log."""
        config, agents = self.config, self.agents
        record: dict[str, Any] = {}
        losses: list[torch.Tensor] = []
        if pairs is not None and len(pairs.agents):
            loss, statistics = preference_loss(pairs, agents.policy, self.counter)
            losses.append(config.bids.coefficient * loss)
            record |= {"pairs": statistics, "loss_preference": float(loss.detach())}
        credit, advantage, team_advantage = self._advantages(batch, losses)
        if bid_step and self._learns_choices:
            chosen, statistics = choice_loss(
                batch,
                agents.policy,
                agents.coordination,
                team_advantage,
                config.bids.entropy,
                self.counter,
                clip,
            )
            record |= statistics
            if chosen is not None:
                losses.append(config.bids.coefficient * chosen)
                record["loss_bid"] = float(chosen.detach())
        if action_step:
            loss, statistics = action_loss(
                batch,
                agents.policy,
                agents.coordination,
                credit,
                advantage,
                config.action.entropy,
                self.counter,
                clip,
            )
            losses.append(loss)
            record |= {"loss_action": float(loss.detach()), "credit": statistics}
        if losses:
            record["grad_norm"] = self._update(losses)
        return record

    @property
    def _learns_choices(self) -> bool:
        """Whether who acts is learned by policy gradient."""
        if self.config.coordination == "learned":
            return self.config.bids.kind in ("policy_gradient", "both")
        return self.agents.coordination.module is not None

    def _advantages(
        self, batch: Batch, losses: list[torch.Tensor]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Credit and advantage of the actors, and the team's advantage, ``(T, N)`` each.

        A critic's own loss is appended to ``losses``.
        """
        config, critic = self.config.action, self.agents.critic
        credit = actor_credit(
            config, batch.rewards, batch.winning_bids, batch.winners, batch.active
        )
        returns = discounted_returns(batch.rewards, batch.active, self.config.bids.discount)
        if critic is None:
            values = None
            team = subtract_turn_mean(returns, batch.active)
        else:
            output, values = critic.predict(batch, self.counter)
            losses.append(critic_loss(output, batch, credit, returns))
            team = np.where(batch.active, returns - values[:, :, TEAM], 0.0)
            values = values[:, :, CREDIT]
        team /= team[batch.active].std() + 1e-6
        agents = self.agents.policy.num_agents
        own = advantages(config, credit, batch.winners, batch.active, agents, values)
        return credit, own, team

    def _update(self, losses: list[torch.Tensor]) -> float:
        config = self.config.optimizer
        fraction = min(1.0, self.counter.total / (self.config.budget_gflop * 1e9))
        scale = 1.0 - 0.9 * fraction if config.decay == "linear" else 1.0
        for group in self._optimizer.param_groups:
            group["lr"] = config.learning_rate * scale
        self._optimizer.zero_grad(set_to_none=True)
        sum(losses, torch.zeros(())).backward()
        norm = clip_per_agent(self._parameters, config.max_grad_norm)
        if not math.isfinite(norm):
            raise DivergedError(
                f"training diverged in step {self.progress.step + 1}: the gradient is {norm}; try "
                "a lower --optimizer.learning-rate, or smaller rewards"
            )
        self._optimizer.step()
        touched = sum(p.numel() for p in self._parameters.values() if p.grad is not None)
        self.counter.add("update_adam", ADAM_PER_PARAMETER * touched)
        return norm

    # -- reports -----------------------------------------------------------------------------

    def _statistics(self, batch: Batch) -> dict[str, Any]:
        acted = batch.acted
        turns = max(batch.num_turns, 1)
        names = batch.metric_names
        metrics = dict(zip(names, batch.metrics.mean(axis=0).tolist(), strict=True))
        levels = self.game.bid_levels
        bid_means = {
            agent: float(levels[batch.bids[:, :, i][batch.active & batch.present[:, :, i]]].mean())
            for i, agent in enumerate(self.game.possible_agents)
            if (batch.active & batch.present[:, :, i]).any()
        }
        answers = {} if batch.transcript is None else batch.transcript.statistics()
        return {
            **answers,
            "return_mean": float(batch.returns.mean()),
            "return_std": float(batch.returns.std()),
            "success": metrics.get("success", float("nan")),
            "metrics": metrics,
            "participation": participation(batch, BINS),
            "bids": bid_means,
            "winning_bid_mean": float(batch.winning_bids[acted].mean()) if acted.any() else 0.0,
            "contested_share": float((batch.runners_up[batch.active] >= 0).sum() / turns),
            "skipped_share": float((batch.active & (batch.winners < 0)).sum() / turns),
            "illegal_share": float(batch.illegal.sum() / turns),
        }

    def _evaluate(self, game: VectorGame, repeats: int) -> Evaluation:
        agents = self.agents
        return evaluate(game, agents.policy, agents.coordination, repeats, self.config.eval.split)

    def _curve(self, logger: RunLogger | None, budget: float) -> None:
        config, state = self.config.eval, self.progress
        if config.curve_points < 1:
            return
        due = int(state.flop / budget * config.curve_points)
        if due < len(state.curve):
            return
        evaluation = self._evaluate(self._curve_game, 1)
        self._add_curve_point(evaluation.return_mean, evaluation.success)
        if logger is not None:
            record = {**state.curve[-1], "kind": "curve", "metrics": evaluation.metrics}
            logger.log(state.step, record)

    def _add_curve_point(self, return_mean: float, success: float) -> None:
        state = self.progress
        state.curve.append(
            {
                "step": float(state.step),
                "flop": float(state.flop),
                "turns": float(state.turns),
                "return_mean": return_mean,
                "success": success,
            }
        )

    def _count(self) -> None:
        self.progress.flop = self.counter.total
        self.progress.flop_parts = dict(self.counter.parts)

    # -- checkpoints -------------------------------------------------------------------------

    def _tensors(self) -> dict[str, torch.Tensor]:
        tensors = {name: p.detach() for name, p in self._parameters.items()} | self.agents.base()
        for name, parameter in self._parameters.items():
            for key, value in self._optimizer.state.get(parameter, {}).items():
                tensors[f"adam.{key}.{name}"] = value
        return tensors

    def _state(self) -> dict[str, Any]:
        return asdict(self.progress)

    def _save(self, logger: RunLogger | None) -> None:
        if self.run is not None:
            if logger is not None:
                logger.sync()
            save_checkpoint(self.run.checkpoint, self._tensors(), self._state())

    def _load(self, path: Path) -> None:
        tensors, state = load_checkpoint(path)
        self.agents.load(tensors)
        for name, parameter in self._parameters.items():
            moments = {
                key: tensors[f"adam.{key}.{name}"]
                for key in ("step", "exp_avg", "exp_avg_sq")
                if f"adam.{key}.{name}" in tensors
            }
            if any(m.shape != parameter.shape for key, m in moments.items() if key != "step"):
                raise CheckpointError(
                    f"the checkpoint in {path} does not fit the run's configuration: Adam's "
                    f"moments of {name} have another shape"
                )
            if moments:
                # Adam keeps its step counter on the CPU, wherever the parameter is.
                self._optimizer.state[parameter] = {
                    key: m if key == "step" else m.to(parameter.device)
                    for key, m in moments.items()
                }
        self.progress = _progress(state, path)
        self.counter.total = self.progress.flop
        self.counter.parts = dict(self.progress.flop_parts)


@torch.no_grad()
def clip_per_agent(parameters: Mapping[str, torch.nn.Parameter], limit: float) -> float:
    """Scale gradients so that each network's norm is at most ``limit``.

    The first dimension of every parameter is the agent (`StackedLinear`). Parameters are grouped
    by the first part of their name; within a group, each agent is clipped on its own, as
    independent networks would be. A group with parameters of another shape (a strategy that brings
    an ordinary module) is clipped as one network. Agents with a module each (``policy.agents.0``)
    are a group each.

    Returns:
        The largest norm before clipping; NaN if one is NaN.
    """
    largest = torch.zeros(())
    groups: dict[tuple[str, ...], list[torch.Tensor]] = {}
    for name, parameter in parameters.items():
        if parameter.grad is not None:
            part, *rest = name.split(".")
            group = (part, *rest[:2]) if rest[:1] == ["agents"] else (part,)
            groups.setdefault(group, []).append(parameter.grad)
    for group, gradients in groups.items():
        stacked = len(group) == 1 and all(
            g.dim() > 1 and len(g) == len(gradients[0]) for g in gradients
        )
        if not stacked:
            gradients = [g.unsqueeze(0) if g.dim() else g.view(1, 1) for g in gradients]
        norms = torch.stack([g.flatten(1).square().sum(1) for g in gradients]).sum(0).sqrt()
        largest = torch.maximum(largest, norms.max().cpu())
        scale = (limit / norms.clamp_min(1e-12)).clamp_max(1.0)
        for gradient in gradients:
            gradient.mul_(scale.view(-1, *([1] * (gradient.dim() - 1))))
    return float(largest)


def _mean(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean of each entry over the updates that report it; nested records are kept."""
    if len(reports) == 1:
        return dict(reports[0])
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(name for report in reports for name in report):
        values = [report[name] for report in reports if name in report]
        nested = isinstance(values[0], Mapping)
        merged[name] = _mean(values) if nested else float(np.mean(values))
    return merged


def _progress(state: dict[str, Any], path: Path) -> Progress:
    """The counters that a checkpoint holds.

    Raises:
        CheckpointError: one is unknown or of another type.
    """
    fresh = asdict(Progress())
    for name, value in state.items():
        if name not in fresh or not _is_like(value, fresh[name]):
            raise CheckpointError(
                f"the state in {path} was changed, or written by another release: {name} = "
                f"{str(value)[:80]}"
            )
    return Progress(**state)


def _is_like(value: Any, example: Any) -> bool:
    """Whether a value can stand where the example does: of its type, and no number below 0."""
    if isinstance(example, (dict, list)):
        return type(value) is type(example)
    whole = type(value) is int and value >= 0
    return whole or (isinstance(example, float) and isinstance(value, float))
