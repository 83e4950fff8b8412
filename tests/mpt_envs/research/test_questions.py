"""Generated questions: one answer each, reachable, and not without all three roles."""

# ruff: noqa: RUF001  (typographic quotes are what pages are written with)

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np
import pytest

import mpt_envs
from mpt_envs.research import make_task
from mpt_envs.research.rules.scoring import exact_match
from mpt_envs.research.world.encyclopedia import Encyclopedia
from mpt_envs.research.world.facts import KINDS, RELATIONS
from mpt_envs.research.world.layout import (
    ANSWER_REWARD,
    FINDER,
    OPENER,
    PAGE_REWARD,
    SEARCHER,
    WINDOW,
)
from mpt_envs.research.world.multihop import expert_turns
from mpt_envs.research.world.questions import candidates
from wrappers.vector import VectorGame

QUESTIONS = make_task().questions

EN_LEAD = re.compile(r"^(.+?) is an? (\w+)(?:, also known as “(.+?)”)?\.")
KO_LEAD = re.compile(r"^(.+?) 항목은 (\S+?)에 관한 것이다\.(?: ‘(.+?)’ 라고도 불린다\.)?")
EN_FACTS = (
    r"(?:^|\n)The {n} of .+ was (.+)\.$",
    r" give (.+) as the {n}\.$",
    r"register, the {n} was (.+)\.$",
    r"the {n} was indeed (.+), as nobody",
    r"certain is the {n}: (.+)\.$",
)
KO_FACTS = (
    r"의 {n}: (.+)\.$",
    r"기록에는 {n} 항목에 (.+) 라고 적혀",
    r"따르면 {n} 항목은 (.+) 이다\.$",
    r"{n} 항목이 (.+) 임을 확인해",
    r"하나가 {n} 항목이며, 그것은 (.+) 이다\.$",
)
OBJECT = re.compile(r"^(?:\[(.+?)\]\((.+?)\)|[“‘](.+?)[”’]|(.+))$")
NOUNS = {noun for kind in KINDS for noun in (*kind.nouns, *kind.nouns_ko)}


class Reader:
    """Answers questions from the raw text of the pages alone, by its own patterns."""

    def __init__(self) -> None:
        self.documents = QUESTIONS.shelf.corpus.documents
        self.by_name: dict[str, list[tuple[int, str]]] = defaultdict(list)
        self.by_url = {d.url: i for i, d in enumerate(self.documents)}
        for index, document in enumerate(self.documents):
            lead = (KO_LEAD if document.docid.startswith("ko") else EN_LEAD).match(document.text)
            assert lead is not None, document.text[:100]
            for name in filter(None, (lead[1], lead[3])):
                self.by_name[name].append((index, lead[2]))

    def bearers(self, name: str, noun: str | None) -> list[int]:
        return [i for i, own in self.by_name[name] if noun is None or own == noun]

    def fact(self, document: int, noun: str) -> tuple[str, str | None, str | None]:
        """Name, noun and address of what a page gives for a relation."""
        page = self.documents[document]
        patterns = KO_FACTS if page.docid.startswith("ko") else EN_FACTS
        found = set()
        for sentence in re.split(r"(?<=[.?!])\s+", page.text):
            for pattern in patterns:
                match = re.search(pattern.replace("{n}", noun), sentence)
                if match:
                    found.add(match[1])
        assert len(found) == 1, (page.title, noun, found)
        words = found.pop().removeprefix("the ")
        noun_word, _, rest = words.partition(" ")
        noun_found = noun_word if noun_word in NOUNS else None
        match = OBJECT.match(rest if noun_found else words)
        assert match is not None
        link, url, quoted, plain = match.groups()
        return link or quoted or plain, noun_found, url

    def answer(self, question: str) -> str:
        """The only answer of a question."""
        if re.search(r"[가-힣]", question):
            core = re.search(r"(\S+ )?‘([^’]+)’의 (.+?)[은는] \S+\?", question)
            assert core is not None, question
            before = (core[1] or "").strip()
            noun = before if before in NOUNS else None
            name = core[2]
            relations = core[3].split("의 ")
        else:
            core = re.search(r"(?:is|Is) (the .+?)(?:, as a visitor .*|)\?$", question)
            assert core is not None, question
            *relations, rest = core[1].split(" of ")
            while len(relations) > 1 and not relations[-1].startswith("the "):
                rest = f"{relations.pop()} of {rest}"
            relations = [r.removeprefix("the ") for r in reversed(relations)]
            match = re.match(r"^(?:the (\w+) )?[“]?(.+?)[”]?$", rest)
            assert match is not None
            noun, name = match[1], match[2]
            if noun is not None and noun not in NOUNS:
                name, noun = f"the {noun} {name}", None
        places = self.bearers(name, noun)
        assert len(places) == 1, (question, name, noun, places)
        at = places[0]
        for hop, relation in enumerate(relations):
            name, noun, url = self.fact(at, relation)
            if hop < len(relations) - 1:
                places = [self.by_url[url]] if url else self.bearers(name, noun)
                assert len(places) == 1, (question, name, noun, places)
                at = places[0]
        return name


def test_an_independent_reader_comes_to_the_same_answers() -> None:
    reader = Reader()
    languages = set()
    for question in QUESTIONS.questions[::12]:
        assert exact_match(reader.answer(question.question), question.answers), question
        languages.add(question.evidence[0][:2])
    assert languages == {"en", "ko"}


def test_the_expert_answers_every_question_in_time() -> None:
    turns = [expert_turns(QUESTIONS, i) for i in range(0, len(QUESTIONS), 9)]
    assert None not in turns
    assert np.mean([t for t in turns if t]) < 12


def test_questions_have_two_to_four_hops_and_different_pages() -> None:
    hops = [len(q.evidence) for q in QUESTIONS.questions]
    assert set(hops) == {2, 3, 4}
    assert min(hops.count(k) for k in (2, 3, 4)) > 0.1 * len(hops)
    for question in QUESTIONS.questions:
        assert len(set(question.evidence)) == len(question.evidence)
        assert not any(answer in question.question for answer in question.answers)
    assert len({q.question for q in QUESTIONS.questions}) == len(hops)


def test_pages_are_long_enough_to_scroll_and_names_are_shared() -> None:
    lines = np.diff(QUESTIONS.shelf.arrays["line_start"])
    assert len(lines) >= 3000
    assert np.mean(lines > WINDOW) > 0.9
    assert np.mean(lines > 2 * WINDOW) > 0.5
    titles = [d.title for d in QUESTIONS.shelf.corpus.documents]
    assert len(set(titles)) == len(titles)
    assert sum(title.endswith(")") for title in titles) > 300


def test_the_key_fixes_the_encyclopaedia() -> None:
    first, again, other = (Encyclopedia(key, (60, 40)) for key in (1, 1, 2))
    assert first.corpus.digest == again.corpus.digest != other.corpus.digest
    assert {d.docid[:2] for d in first.corpus.documents} == {"en", "ko"}


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.noun)
def test_relations_can_be_found_by_their_first_word(relation: object) -> None:
    from mpt_envs.research.world.facts import Relation

    assert isinstance(relation, Relation)
    english = candidates(f"What is the {relation.noun} of Ada Velmar?")
    assert relation.noun.split()[0].startswith(english.patterns[0])
    assert english.names == ("Ada Velmar",)
    assert english.genitive == (True,)
    korean = candidates(f"화가 ‘아다 벨마르’의 {relation.noun_ko}의 스승은 누구인가?")
    assert korean.patterns[:2] == (relation.noun_ko, "스승")[: len(korean.patterns)]
    assert korean.names == ("아다 벨마르",)


def test_candidates_of_real_and_odd_questions() -> None:
    found = candidates(
        "What government position was held by the woman who portrayed Corliss Archer in the film "
        "Kiss and Tell?"
    )
    assert found.names == ("Corliss Archer", "Kiss and Tell")
    assert "portray" in found.patterns
    for text in ("?", "", "…" * 50, "why " * 2000, "‘" * 100, "가" * 5000, "\x00\ud800 A B"):
        found = candidates(text)
        assert len(found.names) <= 3
        assert len(found.patterns) <= 8


# -- heuristics, and teams without a role ---------------------------------------------------------

EVALUATION = 1 << 60


def play(
    count: int, roles: tuple[int, ...], *, item: str = "expert", seed: int = 0
) -> tuple[float, float]:
    """Mean success and return of a team of some roles over held-out questions.

    Args:
        count: questions.
        roles: who may act.
        item: "expert": the expert acts for whoever is there, at random where it would need someone
            else; "random": a random role and action; "first": each role in turn its first action;
            "script": search the first name, open the first result or item, find the next pattern,
            answer the first item.
        seed: of the random player.
    """
    game: VectorGame = mpt_envs.make("research/multihop-v0", api="vector", num_envs=count)
    game.reset(EVALUATION + np.arange(count))
    rng = np.random.default_rng(seed)
    returns = np.zeros(count)
    top = len(game.bid_levels) - 1
    while game.active.any():
        masks = game.action_masks()
        wanted, chosen = game.expert()
        observations = game.observe()[0]
        bids = np.zeros((count, 3), np.int64)
        actions = np.zeros((count, 3), np.int64)
        for row in np.flatnonzero(game.active).tolist():
            legal = [np.flatnonzero(mask[row]) for mask in masks]
            role = int(rng.choice(roles))
            action = int(rng.choice(legal[role]))
            if item == "expert" and int(wanted[row].argmax()) in roles:
                role = int(wanted[row].argmax())
                action = int(chosen[row, role])
            elif item == "first":
                role = int(game.turn[row]) % 3
                action = int(legal[role][min(1, len(legal[role]) - 1)])
            elif item == "script":
                role, action = script(observations[row], legal)
            bids[row, role] = top
            actions[row, role] = action
        winners = game.auction(bids).winners
        result = game.act(actions[np.arange(count), np.maximum(winners, 0)])
        returns += result.rewards
    success = game.metrics()[:, game.metric_names.index("success")]
    return float(success.mean()), float(returns.mean())


def script(observation: np.ndarray, legal: list[np.ndarray]) -> tuple[int, int]:
    """Always the first candidate, with the right tool for the kind of page."""
    from mpt_envs.research.views.observation import FEATURE_NAMES

    seen = dict(zip(FEATURE_NAMES, observation.tolist(), strict=False))
    if seen["view_search"]:
        return (OPENER, 1) if 1 in legal[OPENER] else (SEARCHER, 1)
    if not (seen["view_document"] or seen["view_find"]):
        return SEARCHER, int(legal[SEARCHER][min(2, len(legal[SEARCHER]) - 1)])
    if not seen["item_0_with_next"]:
        upcoming = [k for k in range(8) if seen[f"pattern_{k}_next"]]
        if upcoming and not seen[f"pattern_{upcoming[0]}_tried_here"]:
            return FINDER, 1 + upcoming[0]
        return (OPENER, 11) if 11 in legal[OPENER] else (FINDER, int(legal[FINDER][-1]))
    if seen["next_is_last"]:
        return FINDER, 9
    return (OPENER, 1) if seen["item_0_link"] else (SEARCHER, 5)


def test_the_team_of_all_roles_can_win() -> None:
    success, mean = play(64, (SEARCHER, OPENER, FINDER))
    assert success == 1.0
    assert mean > 2 * PAGE_REWARD + ANSWER_REWARD


@pytest.mark.parametrize(
    "roles", [(OPENER, FINDER), (SEARCHER, FINDER), (SEARCHER, OPENER)], ids=str
)
def test_no_team_without_a_role_can_win(roles: tuple[int, ...]) -> None:
    """Nothing is open without the searcher, nothing read without the opener, nobody answers."""
    assert play(64, roles)[0] == 0.0


@pytest.mark.parametrize(("item", "at_most"), [("random", 0.05), ("first", 0.01), ("script", 0.5)])
def test_shortcuts_do_not_win(item: str, at_most: float) -> None:
    success, mean = play(128, (SEARCHER, OPENER, FINDER), item=item)
    print(f"{item}: success {success:.3f}, return {mean:.2f}")
    assert success <= at_most
