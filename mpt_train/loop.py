"""The training loop: collect, credit, (branch), update, log, checkpoint. One loop for all methods.

A method is a coordination, a credit and a learner; the loop calls each and looks into none. Its
state between two steps is parameters, what the learner keeps, and counters; every random draw is
keyed by (training seed, episode, turn). So a resumed run gives the numbers of an uninterrupted one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from mpt_train import learners
from mpt_train.agents import build_agents
from mpt_train.branches import BranchPlayer, check_fidelity, choose_turns
from mpt_train.cold_start import ColdStart
from mpt_train.config import TrainConfig, check_config
from mpt_train.credit import build_credit
from mpt_train.errors import CheckpointError, DivergedError, TrainingInterrupted
from mpt_train.evaluate import BINS, Evaluation, evaluate
from mpt_train.flops import FlopCounter
from mpt_train.games import build_game
from mpt_train.records import Batch
from mpt_train.rollout import participation, rollout
from mpt_train.runs.checkpoint import has_checkpoint, load_checkpoint, save_checkpoint
from mpt_train.runs.folder import RunFolder
from mpt_train.runs.interrupt import StopRequest, StopRequested
from mpt_train.runs.logs import RunLogger
from mpt_train.seeds import training_seeds
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
        stop: polled wherever work can be left; a request ends training with a checkpoint of the
            steps that are done and `TrainingInterrupted`.
        announce: is told about how many operations the cold start will take, before it begins.
    """

    def __init__(
        self,
        config: TrainConfig,
        folder: Path | None = None,
        *,
        resume: bool = False,
        overwrite: bool = False,
        stop: StopRequest | None = None,
        announce: Callable[[int], None] | None = None,
    ) -> None:
        check_config(config)
        self.config = config
        self.stop = stop or StopRequest()
        self._announce = announce
        self.game = build_game(config, config.num_envs)
        self.agents = build_agents(config, self.game)
        self.credit = build_credit(config.action)
        self.learner = learners.build(config.learner, config, self.agents)
        if self.learner.branches:
            check_fidelity(self.game, config.bids.allow_approximate_snapshots)
        self.progress = Progress()
        self.counter = FlopCounter()
        self._branches = BranchPlayer(self.game)
        self._curve_game = self.game.spawn(config.eval.curve_worlds)
        self._cold_start = ColdStart(config, self.agents)
        resumed = resume and folder is not None and has_checkpoint(RunFolder(folder).checkpoint)
        if not resumed:
            self._cold_start.prepare(self.game)
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
        started = time.perf_counter() - self.progress.wall_seconds
        try:
            if not self.progress.cold_start:
                self._start(logger)
            self._steps(logger, show, started)
            return self._finish()
        except StopRequested:
            # Whatever was under way is done again; what it had counted is forgotten.
            self._recount()
            begun = bool(self.progress.cold_start)
            if begun:
                self._save(logger)
            folder = None if self.run is None else self.run.path
            raise TrainingInterrupted(
                folder, self.progress.step, self.stop.signal_number, saved=begun
            ) from None

    def _steps(self, logger: RunLogger | None, show: bool, started: float) -> None:
        """Steps until the budget is used up, with the evaluations and checkpoints between them."""
        config, state = self.config, self.progress
        budget = config.budget_gflop * 1e9
        bar = tqdm(
            total=100.0,
            initial=min(100.0, 100.0 * state.flop / budget),
            disable=not show,
            unit="%",
            bar_format="{desc} {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}{postfix}]",
            desc=f"{config.method} seed {config.seed}",
        )
        with bar:
            # A run that was stopped between a step and its evaluation makes up for it first.
            self._curve(logger, budget)
            while state.flop < budget:
                self.stop.check()
                record = self.step()
                state.wall_seconds = time.perf_counter() - started
                record["wall_time"] = state.wall_seconds
                if logger is not None:
                    logger.log(state.step, record)
                self._curve(logger, budget)
                bar.update(min(100.0, 100.0 * state.flop / budget) - bar.n)
                bar.set_postfix({"return": f"{record['return_mean']:.1f}"}, refresh=False)
                if state.flop >= budget or state.step % config.checkpoint_every == 0:
                    self._save(logger)

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

    def _start(self, logger: RunLogger | None) -> None:
        """The cold start and its evaluation."""
        config, state = self.config, self.progress
        began = time.perf_counter()
        learned = self._cold_start.run(self.counter, self.stop, self._announce)
        evaluation = self._evaluate(self.game.spawn(config.eval.worlds), config.eval.repeats)
        state.demonstration_return = learned.get("demonstration_return", float("nan"))
        state.cold_start = evaluation.to_json()
        self._count()
        self._add_curve_point(evaluation.return_mean, evaluation.success)
        # Before it is saved: a run that is resumed from here has spent this time as well.
        state.wall_seconds += time.perf_counter() - began
        if self.run is not None:
            assert logger is not None
            record = {"kind": "cold_start", **learned}
            record |= {"flop": state.flop, "return_mean": evaluation.return_mean}
            logger.log(state.step, record)
            save_checkpoint(self.run.cold_start, self._tensors(), self._state())
            self._save(logger)

    def step(self) -> dict[str, Any]:
        """One batch of episodes and its updates; returns the record for the log.

        Raises:
            StopRequested: a stop was requested before the episodes were played to their ends;
                nothing was learned from them.
        """
        config, state, agents = self.config, self.progress, self.agents
        plan = self.learner.plan(state.step)
        started = time.perf_counter()
        self.game.reset(training_seeds(config.seed, state.episodes, config.num_envs))
        save = None
        if plan.branch_turns:
            save = choose_turns(self.game, plan.branch_turns, self.game.keys)
        batch = rollout(
            self.game,
            agents.policy,
            agents.coordination,
            self.counter,
            save_turns=save,
            log_probs=plan.log_probs,
            stop=self.stop,
        )
        credit = self.credit(batch)
        record = self._statistics(batch)
        collected = time.perf_counter()
        pairs = None
        if plan.branch_turns:
            pairs = self._branches.collect(
                batch, agents.policy, agents.coordination, config.bids, self.counter, self.stop
            )
        branched = time.perf_counter()
        try:
            experience = learners.Experience(batch, credit, pairs)
            record |= self.learner.update(experience, plan, self.counter)
        except DivergedError as error:
            raise DivergedError(
                f"training diverged in step {state.step + 1}: {error}; try a lower "
                "--optimizer.learning-rate, or smaller rewards"
            ) from error
        state.step += 1
        state.turns += batch.num_turns
        state.episodes += config.num_envs
        self._count()
        record |= {
            "kind": "train",
            "flop": state.flop,
            "turns": state.turns,
            "episodes": state.episodes,
            "phase": plan.phase,
            "seconds_rollout": collected - started,
            "seconds_branch": branched - collected,
            "seconds_update": time.perf_counter() - branched,
        }
        return record

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
        agents, split = self.agents, self.config.eval.split
        return evaluate(game, agents.policy, agents.coordination, repeats, split, self.stop)

    def _curve(self, logger: RunLogger | None, budget: float) -> None:
        """Evaluate for the learning curve, if that is due and this step has no point of it yet."""
        config, state = self.config.eval, self.progress
        due = int(state.flop / budget * config.curve_points)
        if (
            config.curve_points < 1
            or due < len(state.curve)
            or state.curve[-1]["step"] == state.step
        ):
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

    def _recount(self) -> None:
        """Forget operations of what was not finished."""
        self.counter.total = self.progress.flop
        self.counter.parts = dict(self.progress.flop_parts)

    # -- checkpoints -------------------------------------------------------------------------

    def _tensors(self) -> dict[str, torch.Tensor]:
        parameters = {name: p.detach() for name, p in self.agents.named_parameters().items()}
        return parameters | self.agents.base() | self.learner.tensors()

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
        self.learner.load(tensors, path)
        self.progress = _progress(state, path)
        self._recount()


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
