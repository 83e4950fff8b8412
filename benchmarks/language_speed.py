"""Speed of language-model agents beside bare transformers: `python -m benchmarks.language_speed`.

A randomly initialised model of a real family and size, a low-rank adapter per agent, and the
prompts of a real task (its whole text, tokenized by a tokenizer that is trained on the spot, so
nothing is downloaded). What is measured, and against what:

* a turn's bids of all agents in all worlds, prompts in, answers out, against ``model.generate`` on
  the same prompts, rows and number of new tokens, with and without the sharing of prompts;
* the same bids with all agents' adapters mixed in a batch, against one adapter for all rows, with 3
  and with 12 agents; and one world's three bids in a batch, against a single bid;
* an action of the turn that reuses its bid's prompt, against one that does not;
* an update by REINFORCE on answers, against a bare training step (forward with labels, backward) of
  the same adapters on the same rows.

Answers of random weights mean nothing, so every bid and action is replaced by a drawn one, and all
answers have the same length. Times are wall-clock with the device synchronised. Nothing is started
once ``--seconds`` have passed; what was not measured then is reported as missing.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import tyro

from mpt_train.comparison.provenance import provenance

Size = Literal["tiny", "0.1b", "0.5b", "1b"]

SIZES: dict[str, dict[str, int]] = {
    "tiny": {
        "vocab_size": 1024,
        "hidden_size": 64,
        "intermediate_size": 192,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
    },
    # SmolLM2-135M.
    "0.1b": {
        "vocab_size": 49152,
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
    },
    # Qwen2.5-0.5B.
    "0.5b": {
        "vocab_size": 151936,
        "hidden_size": 896,
        "intermediate_size": 4864,
        "num_hidden_layers": 24,
        "num_attention_heads": 14,
        "num_key_value_heads": 2,
    },
    # Llama-3.2-1B.
    "1b": {
        "vocab_size": 128256,
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
    },
}


@dataclass(frozen=True)
class LanguageSpeed:
    """Measure the speed of language-model agents against bare transformers."""

    task: str = "crafting/iron-pickaxe-v0"
    """Environment id."""
    size: Size = "0.5b"
    """Size of the randomly initialised model."""
    device: str = "auto"
    """"auto": a GPU in bfloat16 if there is one, else the CPU in float32."""
    worlds: int = 64
    """Worlds in step."""
    new_tokens: int = 16
    """Tokens of every answer."""
    rounds: int = 3
    """Measurements of each thing; the median counts. One more comes first and is thrown away."""
    micro_batch: int = 16
    """Answers in a forward and backward pass."""
    rank: int = 16
    """Of the adapters."""
    seconds: float = 150.0
    """No measurement is begun after this time."""
    out: Path | None = None
    """File for the results as JSON."""


class Stopwatch:
    """Medians of wall-clock times, within a time limit."""

    def __init__(self, device: torch.device, rounds: int, limit: float) -> None:
        self._device, self._rounds = device, rounds
        self._deadline = time.perf_counter() + limit

    def __call__(self, action: Callable[[], Any]) -> float:
        """Median seconds of an action; NaN if there is no time left for it."""
        times: list[float] = []
        for round_ in range(self._rounds + 1):
            if time.perf_counter() > self._deadline and not times:
                return float("nan")
            self._synchronise()
            start = time.perf_counter()
            action()
            self._synchronise()
            if round_:
                times.append(time.perf_counter() - start)
            elif time.perf_counter() > self._deadline:
                return time.perf_counter() - start
        return statistics.median(times)

    def _synchronise(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize()


def build(options: LanguageSpeed, agents: int | None) -> tuple[Any, Any, Any]:
    """A policy with random weights, its game with the worlds reset, and its configuration."""
    from transformers import LlamaConfig, LlamaForCausalLM

    from mpt_train.config import EnvConfig, TrainConfig
    from mpt_train.games import build_game
    from mpt_train.language import tiny
    from mpt_train.language.agent_models import AgentModels
    from mpt_train.language.config import LanguageConfig
    from mpt_train.language.models import Loaded, device_of, dtype_of
    from mpt_train.language.policy import LanguagePolicy
    from mpt_train.language.texts import sample_texts

    language = LanguageConfig(
        device=options.device,
        rank=options.rank,
        max_answer_tokens=options.new_tokens,
        batch_rows=4096,
        micro_batch=options.micro_batch,
    )
    config = TrainConfig(
        task=options.task, policy="language", env=EnvConfig(agents=agents), language=language
    )
    game = build_game(config, options.worlds)
    game.reset(np.arange(options.worlds))
    tokenizer = tiny.train_tokenizer(sample_texts(game, language))  # type: ignore[arg-type]
    sizes = dict(SIZES[options.size])
    sizes["vocab_size"] = max(sizes["vocab_size"], len(tokenizer))
    settings = LlamaConfig(
        **sizes,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=tokenizer.eos_token_id,
        dtype=dtype_of(language),
    )
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype_of(language))
    try:
        with torch.device(device_of(language)):
            model = LlamaForCausalLM(settings)
    finally:
        torch.set_default_dtype(before)
    model.to(device=device_of(language), dtype=dtype_of(language)).eval()
    # No answer ends early: all have the same length, here and in `generate`.
    loaded = Loaded(model, tokenizer, (settings.vocab_size + 1,), tokenizer.eos_token_id, None)
    models = AgentModels(loaded, game.num_agents, language, 1)
    policy = LanguagePolicy(game, language, models, True)  # type: ignore[arg-type]
    with torch.no_grad():
        for adapter in models.agents:
            for b in adapter.b:  # type: ignore[union-attr]
                b.normal_(std=0.01)
    return policy, game, config


def use(policy: Any, **changes: Any) -> None:
    """Change fields of a policy's configuration."""
    policy.config = dataclasses.replace(policy.config, **changes)


def bid_questions(policy: Any, game: Any, agents: Sequence[int], worlds: int) -> list[Any]:
    """What agents are asked in the bid phase of the first turn."""
    return [
        policy.question(game, world, agent, int(game.keys[world]), 0, "bid")
        for world in range(worlds)
        for agent in agents
    ]


def draw(policy: Any, questions: list[Any], phase: str = "bid") -> list[Any]:
    """The answers to questions, as in a rollout."""
    from mpt_train.flops import FlopCounter
    from wrappers.rng import STREAM_POLICY_BID

    answers: list[Any] = policy._draw(questions, phase, STREAM_POLICY_BID, 0, FlopCounter(), "x")
    return answers


def raw_generate(policy: Any, questions: list[Any], new_tokens: int) -> torch.Tensor:
    """The same rows through ``model.generate``, with the first agent's adapter."""
    policy.models._bank.select([0])
    width = max(len(q.prompt) for q in questions)
    ids = np.zeros((len(questions), width), np.int64)
    mask = np.zeros((len(questions), width), np.int64)
    for row, question in enumerate(questions):
        ids[row, width - len(question.prompt) :] = question.prompt
        mask[row, width - len(question.prompt) :] = 1
    device = policy.models.device
    model = policy.models.loaded.model
    output: torch.Tensor = model.generate(
        input_ids=torch.from_numpy(ids).to(device),
        attention_mask=torch.from_numpy(mask).to(device),
        do_sample=True,
        top_k=0,
        top_p=1.0,
        temperature=1.0,
        min_new_tokens=new_tokens,
        max_new_tokens=new_tokens,
    )
    return output


def raw_step(policy: Any, answers: list[Any], size: int) -> None:
    """A bare training step of one adapter: forward with labels and backward, in micro-batches."""
    from mpt_train.language.learning import micro_batches

    policy.models._bank.select([0])
    model, device = policy.models.loaded.model, policy.models.device
    for rows in micro_batches(answers, size):
        texts = [np.concatenate([answers[i].prompt, answers[i].tokens]) for i in rows]
        width = max(map(len, texts))
        ids = np.zeros((len(rows), width), np.int64)
        labels = np.full((len(rows), width), -100, np.int64)
        mask = np.zeros((len(rows), width), np.int64)
        for row, (i, text) in enumerate(zip(rows, texts, strict=True)):
            ids[row, width - len(text) :] = text
            mask[row, width - len(text) :] = 1
            labels[row, width - len(answers[i].tokens) :] = answers[i].tokens
        output = model(
            input_ids=torch.from_numpy(ids).to(device),
            attention_mask=torch.from_numpy(mask).to(device),
            labels=torch.from_numpy(labels).to(device),
            use_cache=False,
        )
        output.loss.backward()
    policy.zero_grad(set_to_none=True)


def own_step(policy: Any, answers: list[Any]) -> None:
    """An update's forward and backward passes, as the loop does them (without Adam)."""
    from mpt_train.flops import FlopCounter
    from mpt_train.language.learning import _reinforce

    weights = [[1.0 - 2.0 * (i % 2) for i in range(len(answers))]]
    loss, _ = _reinforce(
        policy.models, [answers], weights, [float(len(answers))], 0.0, FlopCounter(), "x", None
    )
    loss.backward()
    policy.zero_grad(set_to_none=True)


def measure(options: LanguageSpeed) -> dict[str, Any]:
    """All measurements, as plain values; those that there was no time for are None."""
    started = time.perf_counter()
    policy, game, _ = build(options, None)
    device = policy.models.device
    watch = Stopwatch(device, options.rounds, options.seconds - (time.perf_counter() - started))
    agents = list(range(game.num_agents))
    everyone = bid_questions(policy, game, agents, options.worlds)
    prompt_tokens = sum(len(q.prompt) for q in everyone)
    new_tokens = len(everyone) * options.new_tokens
    result: dict[str, Any] = {
        "model": {
            "size": options.size,
            "parameters": sum(p.numel() for p in policy.models.loaded.model.parameters()),
            "adapter": policy.models._bank.parameters_each,
        },
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "dtype": str(next(policy.models.loaded.model.parameters()).dtype),
        "rows": len(everyone),
        "prompt_tokens_mean": prompt_tokens / len(everyone),
        "new_tokens": options.new_tokens,
        "seconds_build": time.perf_counter() - started,
    }
    times: dict[str, float] = {}
    result["seconds"] = times
    with torch.inference_mode():
        use(policy, reuse_prompts=True)
        times["bids"] = watch(lambda: draw(policy, everyone))
        times["raw generate"] = watch(lambda: raw_generate(policy, everyone, options.new_tokens))
        use(policy, reuse_prompts=False)
        times["bids, nothing shared"] = watch(lambda: draw(policy, everyone))
        one = [dataclasses.replace(q, agent=0) for q in everyone]
        times["bids, one adapter, nothing shared"] = watch(lambda: draw(policy, one))
        answers = draw(policy, everyone)

    learn = [dataclasses.replace(a, agent=0) for a in answers[: 4 * options.micro_batch]]
    update_tokens = sum(len(a.prompt) + len(a.tokens) for a in learn)
    times["update"] = watch(lambda: own_step(policy, learn))
    times["raw training step"] = watch(lambda: raw_step(policy, learn, options.micro_batch))

    with torch.inference_mode():
        use(policy, reuse_prompts=True)
        draw(policy, everyone)
        kept: dict[Any, Any] = dict(policy._bid_sessions)
        bids = np.ones((options.worlds, game.num_agents), np.int64)
        winners = game.auction(bids).winners
        acting = [
            policy.question(game, world, int(winners[world]), int(game.keys[world]), 0, "act")
            for world in range(options.worlds)
        ]

        def act(reuse: bool) -> None:
            policy._bid_sessions = kept if reuse else {}
            draw(policy, acting, "act")

        times["actions, prompts of bids reused"] = watch(lambda: act(True))
        use(policy, reuse_prompts=False)
        times["actions, nothing shared"] = watch(lambda: act(False))
        policy._bid_sessions = {}
        kept.clear()
        three, single = everyone[: game.num_agents], everyone[:1]
        times["one world, three bids"] = watch(lambda: draw(policy, three))
        times["one world, one bid"] = watch(lambda: draw(policy, single))
    if device.type == "cuda":
        result["peak_gib"] = torch.cuda.max_memory_allocated() / 2**30
    del answers, policy
    left = options.seconds - (time.perf_counter() - started)
    if left > 10:
        few = dataclasses.replace(options, worlds=max(1, options.worlds // 4))
        policy, game, _ = build(few, 12)
        twelve = bid_questions(policy, game, list(range(12)), few.worlds)
        alike = [dataclasses.replace(q, agent=0) for q in twelve]
        use(policy, reuse_prompts=False)
        with torch.inference_mode():
            times["twelve agents"] = watch(lambda: draw(policy, twelve))
            times["twelve agents' rows, one adapter"] = watch(lambda: draw(policy, alike))
    result["rates"] = {
        "rollout tokens/s (prompt and new)": (prompt_tokens + new_tokens) / times["bids"],
        "rollout new tokens/s": new_tokens / times["bids"],
        "raw generate new tokens/s": new_tokens / times["raw generate"],
        "bids/s": len(everyone) / times["bids"],
        "update tokens/s": update_tokens / times["update"],
        "raw training step tokens/s": update_tokens / times["raw training step"],
    }
    result["ratios"] = {
        "bids over raw generate": _over(times, "bids", "raw generate"),
        "bids over raw generate, nothing shared": _over(
            times, "bids, nothing shared", "raw generate"
        ),
        "adapters mixed over one adapter": _over(
            times, "bids, nothing shared", "bids, one adapter, nothing shared"
        ),
        "twelve adapters mixed over one": _over(
            times, "twelve agents", "twelve agents' rows, one adapter"
        ),
        "one world's three bids over one bid": _over(
            times, "one world, three bids", "one world, one bid"
        ),
        "actions with reuse over without": _over(
            times, "actions, prompts of bids reused", "actions, nothing shared"
        ),
        "update over raw training step": _over(times, "update", "raw training step"),
    }
    result["seconds_total"] = time.perf_counter() - started
    return result


def _over(times: dict[str, float], above: str, below: str) -> float:
    return times.get(above, float("nan")) / times.get(below, float("nan"))


def report(result: dict[str, Any]) -> str:
    """The measurements as a table for people."""
    model = result["model"]
    lines = [
        f"{model['parameters'] / 1e6:.0f} M parameters, {model['adapter'] / 1e6:.2f} M an adapter",
        f"{result['dtype']} on {result['device']}",
        f"{result['rows']} prompts of {result['prompt_tokens_mean']:.0f} tokens on average",
        f"{result['new_tokens']} new tokens each",
        "",
    ]
    for title, unit in (("seconds", "s"), ("rates", ""), ("ratios", "")):
        lines.append(f"{title}:")
        for name, value in result[title].items():
            lines.append(f"  {name:<44} {value:>12.4g} {unit}".rstrip())
    if "peak_gib" in result:
        lines.append(f"peak memory on the device: {result['peak_gib']:.1f} GiB")
    lines.append(f"total: {result['seconds_total']:.0f} s")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, and write JSON if asked to; returns the exit code."""
    options = tyro.cli(LanguageSpeed, args=arguments)
    result = measure(options)
    print(report(result), flush=True)
    if options.out is not None:
        plain = json.loads(json.dumps(result), parse_constant=lambda _: None)
        command = "python -m benchmarks.language_speed " + " ".join(
            sys.argv[1:] if arguments is None else arguments
        )
        plain["provenance"] = provenance(command.strip(), 1)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
