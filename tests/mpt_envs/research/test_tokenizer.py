"""Words and pairs of characters."""

# ruff: noqa: RUF001  (odd characters are what is tested)
from __future__ import annotations

import pytest

from mpt_envs.research.data.index import SearchIndex
from mpt_envs.research.data.tokenizer import tokenize
from mpt_envs.research.rules.scoring import exact_match, f1, normalize_answer


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
def test_exact_match(answer: str, accepted: str, same: bool) -> None:
    assert exact_match(answer, (accepted, "something")) is same


def test_f1() -> None:
    assert f1("Ada Velmar", ("Velmar",)) == pytest.approx(2 / 3)
    assert f1("Bo", ("Ada", "bo tann")) == pytest.approx(2 / 3)
    assert f1("x", ("y",)) == f1("", ("y",)) == f1("y", ()) == 0
    assert f1("서울은", ("서울",)) == pytest.approx(2 / 3)
    assert normalize_answer("A “Fine”  Day") == "fine day"
