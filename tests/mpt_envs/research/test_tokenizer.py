"""Words and pairs of characters."""

# ruff: noqa: RUF001  (odd characters are what is tested)
from __future__ import annotations

import pytest

from mpt_envs.research.data.index import SearchIndex
from mpt_envs.research.data.tokenizer import tokenize
from mpt_envs.research.rules.scoring import (
    accepts,
    exact_match,
    f1,
    fold_answer,
    normalize_answer,
    stands_in,
)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Ada's River-Works", ["ada", "s", "river", "works"]),
        ("서울은", ["서울", "울은"]),
        ("강", ["강"]),
        ("서울2024년", ["서울", "2024", "년"]),
        ("ＡＢＣ １２", ["abc", "12"]),
        ("ﾊﾝｸﾞﾙ", ["ハン", "ング", "グル"]),
        ("東京都", ["東京", "京都"]),
        ("Straße ÉCOLE", ["strasse", "école"]),
        ("?! … \x00 \u202e", []),
        ("", []),
        ("한", ["한"]),
        # Marks belong to their letter, joiners and soft hyphens stand within a word.
        ("दिल्ली", ["दिल्ली"]),
        ("की का", ["की", "का"]),
        ("كِتَاب", ["كِتَاب"]),
        ("e\u0301cole", ["école"]),
        ("می\u200cروم", ["میروم"]),
        ("hy\u00adphen", ["hyphen"]),
        ("กรุงเทพ", ["กร", "รุ", "ุง", "งเ", "เท", "ทพ"]),
        ("snake_case", ["snake", "case"]),
        ("𠮷野家", ["𠮷野", "野家"]),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


@pytest.mark.parametrize("query", ["서울", "서울에서", "서울의", "‘서울’"])
def test_korean_particles_do_not_matter(query: str) -> None:
    documents = ["부산은 항구이다", "서울은 큰 도시이다", "강이 흐른다"]
    index = SearchIndex.build([tokenize(d) for d in documents])
    assert index.search(query, 10).tolist()[0] == 1


def test_decomposed_hangul_is_the_same() -> None:
    import unicodedata

    assert tokenize(unicodedata.normalize("NFD", "서울은")) == ["서울", "울은"]


def test_search_breaks_ties_by_order_and_leaves_out_what_does_not_match() -> None:
    index = SearchIndex.build([["a", "b"], ["c"], ["a", "b"], ["a", "b"], []])
    assert index.search("a", 10).tolist() == [0, 2, 3]
    assert index.search("a", 2).tolist() == [0, 2]
    assert index.search("a", 0).tolist() == []
    assert index.search("zzz !", 5).tolist() == []
    assert SearchIndex.build([[], []]).search("a", 5).tolist() == []


@pytest.mark.parametrize(
    ("answer", "accepted", "same"),
    [
        ("The Quiet Heron", "quiet heron", True),
        ("1,832", "1 832", True),
        ("Ada Velmar.", "ada velmar", True),
        ("서울.", "서울", True),
        ("서울은", "서울", False),
        ("", "", False),
        ("the", "a", False),
        ("?!", "a", False),
        ("a.", "A", True),
        ("the the", "The The", True),
        ("?!", "?!", False),
        ("Ada", "Ada Velmar", False),
    ],
)
def test_what_the_reward_accepts(answer: str, accepted: str, same: bool) -> None:
    assert accepts(answer, (accepted, "something")) is same


def test_f1_is_over_words() -> None:
    assert f1("Ada Velmar", ("Velmar",)) == pytest.approx(2 / 3)
    assert f1("Bo", ("Ada", "bo tann")) == pytest.approx(2 / 3)
    assert f1("x", ("y",)) == f1("", ("y",)) == f1("y", ()) == 0
    assert f1("की", ["का"]) == f1("서울은", ("서울",)) == 0
    assert fold_answer("A “Fine”  Day") == "fine day"


# Worked out by hand from hotpot_evaluate_v1.py: lower, delete ASCII punctuation, drop the articles,
# split at spaces; yes, no and noanswer earn nothing beside another answer.
OFFICIAL = [
    # prediction, gold, normalised prediction, exact match, F1
    ("3677", "3,677", "3677", True, 1.0),
    ("US", "U.S.", "us", True, 1.0),
    ("3.14", "3 14", "314", False, 0.0),
    ("The River-Works", "riverworks", "riverworks", True, 1.0),
    ("an apple a day", "the apple day", "apple day", True, 1.0),
    ("Bo  Tann", "Bo Tann of Lorem", "bo tann", False, 2 * 1 * 0.5 / 1.5),
    ("yes", "Yes!", "yes", True, 1.0),
    ("yes", "yes it is", "yes", False, 0.0),
    ("no", "there is no town", "no", False, 0.0),
    ("noanswer", "no answer", "noanswer", False, 0.0),
    ("“Fine”", "Fine", "“fine”", False, 0.0),
    ("rose rose", "rose", "rose rose", False, 2 * 0.5 * 1 / 1.5),
    ("the", "a", "", True, 0.0),
]


@pytest.mark.parametrize(("answer", "gold", "normal", "same", "score"), OFFICIAL)
def test_the_metrics_are_the_official_ones(
    answer: str, gold: str, normal: str, same: bool, score: float
) -> None:
    assert normalize_answer(answer) == normal
    assert exact_match(answer, (gold,)) is same
    assert f1(answer, (gold,)) == pytest.approx(score)
    assert f1(answer, ("zzz", gold)) == pytest.approx(score)


@pytest.mark.parametrize(("answer", "gold"), [(a, g) for a, g, _, same, _ in OFFICIAL if same])
def test_the_reward_accepts_what_the_metric_does(answer: str, gold: str) -> None:
    """Of answers that are something: of nothing but articles they are told apart."""
    assert accepts(answer, (gold,)) or not normalize_answer(answer)


@pytest.mark.parametrize(
    ("answer", "text", "there"),
    [
        ("서울", "수도는 서울이다.", True),
        ("東京", "首都は東京です。", True),
        ("กรุงเทพ", "เมืองหลวงคือกรุงเทพครับ", True),
        ("दिल्ली", "राजधानी दिल्ली है।", True),
        ("दिल", "राजधानी दिल्ली है।", False),
        ("Bo", "A boat. Bob.", False),
        ("Bo", "the boat, Bo!", True),
        ("river-works", "The River Works of Lorem", True),
        ("Nokia", "노키아(Nokia)는 회사이다", True),
        ("대전", "부산은 항구이다", False),
        ("", "anything", False),
    ],
)
def test_answers_are_found_in_every_script(answer: str, text: str, there: bool) -> None:
    assert stands_in(answer, text) is there
