"""The text view: what is shown, when it is shown, and what answers do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.toys import RelayTask
from tests.wrappers.games import play, relay
from wrappers.bid_text import MAX_ANSWER
from wrappers.bid_then_act import BidThenActEnv
from wrappers.errors import ActionFormatError, IllegalActionError
from wrappers.task import ParseError
from wrappers.text import MAX_PROMPT, TextView, UnicodeText


def text_of(env: TextView, agent: str) -> str:
    text: str = env.observe(agent)["text"]
    assert text == env.prompt(agent)
    return text


def test_an_episode_in_words() -> None:
    env = TextView(relay(max_turns=5))
    env.reset(seed=0)
    assert "Turns left: 5 of 5." in text_of(env, "filler_0")
    assert "number from 0 to 1" in text_of(env, "filler_0")
    assert "Bids of" not in text_of(env, "filler_0")
    env.step("0.9")
    env.step('{"bid": "10%"}')
    assert env.phase == "act"
    shown = text_of(env, "filler_0")
    assert "Bids of this turn: filler_0 0.9, carrier_0 0.1; filler_0 won." in shown
    assert "You won this turn" in shown
    assert "number from 0 to 1" not in shown
    assert "filler_0 won this turn and acts now." in text_of(env, "carrier_0")
    env.step("Fill")
    assert "Bids of the last turn: filler_0 0.9" in text_of(env, "carrier_0")
    assert "Turns left: 4 of 5." in text_of(env, "carrier_0")
    env.step("0")
    env.step("0")
    assert "nobody acted" in text_of(env, "carrier_0")
    env.step("0.5")
    env.step("0.6")
    env.step("carry")
    assert env.rewards["filler_0"] >= 1.0
    assert env.parse_errors == {}
    assert env.game.counts == {"illegal": 0, "skipped": 1}


def test_nothing_that_is_read_tells_a_bid_before_the_auction() -> None:
    env = TextView(relay(2))
    env.reset(seed=0)
    play(env, 0, steps=20)
    while env.phase != "bid" or env.agent_selection != env.possible_agents[0]:
        play(env, 0, steps=1)
    start = env.snapshot()
    shown = []
    for bid in ("0", "0.9", "nonsense"):
        env.restore(start)
        env.step(bid)
        shown.append([text_of(env, a) for a in env.possible_agents[1:]])
        shown[-1].append(str([env.infos[a] for a in env.possible_agents[1:]]))
    assert shown[0] == shown[1] == shown[2]


def test_an_answer_that_cannot_be_read_is_a_counted_noop() -> None:
    env = TextView(relay())
    env.reset(seed=0)
    env.step("I do not know")
    assert env.parse_errors == {"no_bid": 1}
    error = env.infos["filler_0"]["parse_error"]
    assert isinstance(error, ParseError)
    assert error.kind == "no_bid"
    env.step("0.3")
    assert env.last_auction is not None
    assert env.last_auction.bids == (0.0, 0.3)
    assert env.agent_selection == "carrier_0"
    for answer, kind in (("fly", "unknown_action"), ("", "empty"), ("carry", "illegal")):
        env.reset(seed=0)
        env.step("0")
        env.step("1")
        turn = env.turn
        env.step(answer)
        assert env.turn == turn + 1
        assert env.game.counts["illegal"] == 1
        assert env.parse_errors == {kind: 1}
        assert env.task.metrics()["tank"] == 0.0
        assert env.infos["carrier_0"]["parse_error"].kind == kind
        env.step("0")
        env.step("0")
        assert "parse_error" not in env.infos["carrier_0"]


def test_or_an_error_that_changes_nothing() -> None:
    for env in (TextView(relay(on_illegal="raise")), TextView(relay(), on_parse_error="raise")):
        env.reset(seed=0)
        before = env.snapshot()
        with pytest.raises(IllegalActionError, match="bid_out_of_range"):
            env.step("500")
        env.step("0")
        env.step("1")
        before = env.snapshot()
        with pytest.raises(IllegalActionError, match=r"rest.*\(unknown_action\)"):
            env.step("fly")
        with pytest.raises(IllegalActionError, match="not possible now"):
            env.step("carry")
        assert env.snapshot() == before
    with pytest.raises(ValueError, match='made with on_illegal="noop"'):
        TextView(relay(on_illegal="raise"), on_parse_error="noop")
    with pytest.raises(ValueError, match='"noop" or "raise"'):
        TextView(relay(), on_parse_error="ignore")  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", [None, 3, b"0.5", ["0.5"], np.float32(0.5)])
def test_an_answer_is_a_text(answer: Any) -> None:
    env = TextView(relay())
    env.reset(seed=0)
    with pytest.raises(ActionFormatError, match="must answer with a text"):
        env.step(answer)


def test_too_long_an_answer_is_not_read() -> None:
    class Strict(RelayTask):
        def parse(self, agent: str, text: str) -> int | ParseError:
            assert len(text) <= MAX_ANSWER
            return super().parse(agent, text)

    env = TextView(BidThenActEnv(Strict()))
    env.reset(seed=0)
    env.step("1" * (MAX_ANSWER + 1))
    env.step("1")
    env.step("rest" * MAX_ANSWER)
    assert env.parse_errors == {"too_long": 2}


def test_reasoning_is_ignored() -> None:
    env = TextView(relay())
    env.reset(seed=0)
    env.step("<think>0.1? fill? {bid: 3}</think> 0.9")
    env.step("0")
    env.step("<think>carry</think>\nfill")
    assert env.game.counts["illegal"] == 0
    assert env.task.observe("filler_0")[0] > 0


def test_legal_answers_are_what_may_be_answered() -> None:
    env = TextView(relay(dropout=0.5))
    env.reset(seed=2)
    generator = np.random.default_rng(0)
    absent = 0
    while env.agents:
        agent = env.agent_selection
        *_, terminated, truncated, info = env.last()
        assert "action_mask" not in info
        assert "action_mask" not in env.observe(agent)
        if terminated or truncated:
            assert "The episode is over." in text_of(env, agent)
            env.step(None)
            continue
        answers = info["legal_answers"]
        mask = env.game.observe(agent)["action_mask"]
        assert len(answers) == mask.sum()
        for answer in answers:
            choice = env.read(agent, answer)
            assert isinstance(choice, int)
            assert mask[choice]
            assert env.answer(agent, choice) == answer
        if env.phase == "bid" and len(answers) == 1:
            absent += 1
            assert answers == ("0",)
            assert "You are absent" in text_of(env, agent)
            env.step("0.9")  # has no effect: only 0 can be bid
        else:
            env.step(answers[generator.integers(len(answers))])
    assert absent > 5
    assert env.game.counts["illegal"] == 0
    assert env.parse_errors == {}


def test_each_side_alone() -> None:
    read = TextView(relay(), text_action=False)
    read.reset(seed=0)
    observation = read.observe("filler_0")
    assert set(observation) == {"text", "action_mask"}
    read.step(4)
    assert "action_mask" in read.infos["carrier_0"]
    write = TextView(relay(), text_observation=False)
    write.reset(seed=0)
    assert set(write.observe("filler_0")) == {"observation"}
    write.step("0.4")
    write.step("0")
    assert write.last_auction is not None
    assert write.last_auction.bids == (0.4, 0.0)


def test_a_long_prompt_loses_its_middle() -> None:
    class Talkative(RelayTask):
        def prompt(self, agent: str, phase: Any) -> str:
            return "start " + "한국어 " * MAX_PROMPT

    env = TextView(BidThenActEnv(Talkative()))
    env.reset(seed=0)
    text = text_of(env, "filler_0")
    assert MAX_PROMPT - 10 < len(text) <= MAX_PROMPT
    assert text.startswith("start ")
    assert "[...]" in text
    assert "number from 0 to 1" in text
    assert env.observation_space("filler_0").contains(env.observe("filler_0"))


def test_the_system_message_explains_the_market() -> None:
    env = TextView(relay())
    assert "filler" in env.profile("filler_0")
    assert "highest bidder" in env.profile("filler_0")


def test_the_space_of_texts() -> None:
    space = UnicodeText(30, seed=1)
    assert space.contains("한국어 \n")
    assert space.contains("")
    assert not space.contains("x" * 31)
    assert not space.contains(b"x")
    samples = [space.sample() for _ in range(20)]
    assert all(space.contains(sample) for sample in samples)
    space.seed(1)
    assert [space.sample() for _ in range(20)] == samples
    assert space == UnicodeText(30)
    assert space != UnicodeText(31)
    assert repr(space) == "UnicodeText(30)"
