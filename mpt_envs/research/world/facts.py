"""What there is in the fictional encyclopaedia: kinds of things, relations, words, templates.

Everything that is said in English can be said in Korean. A relation is always called by the
same noun ("the teacher of X", "X의 스승"), in questions and on pages, so that what a question asks
for can be found on a page by its words; everything around the noun varies.
"""

from __future__ import annotations

from typing import Final, NamedTuple

EN, KO = 0, 1
LANGUAGES: Final = ("en", "ko")


class Kind(NamedTuple):
    """One kind of things.

    Attributes:
        name: of the kind.
        nouns: what its things are, English: things that share a name differ in their noun.
        nouns_ko: the same in Korean, in the same order.
        share: of all things.
    """

    name: str
    nouns: tuple[str, ...]
    nouns_ko: tuple[str, ...]
    share: float


KINDS: Final = (
    Kind(
        "person",
        ("painter", "composer", "botanist", "engineer", "explorer", "poet", "astronomer"),
        ("화가", "작곡가", "식물학자", "기술자", "탐험가", "시인", "천문학자"),
        0.42,
    ),
    Kind("town", ("town", "port", "spa"), ("도시", "항구", "온천마을"), 0.16),
    Kind("school", ("academy", "college"), ("학원", "대학"), 0.09),
    Kind("company", ("shipyard", "foundry", "brewery"), ("조선소", "주물공장", "양조장"), 0.09),
    Kind("river", ("river", "canal"), ("강", "운하"), 0.09),
    Kind("work", ("opera", "novel", "fresco"), ("오페라", "소설", "벽화"), 0.15),
)
KIND: Final = {kind.name: index for index, kind in enumerate(KINDS)}


class Relation(NamedTuple):
    """A fact that a page of some kind can state.

    Attributes:
        subject: the kind whose pages state it.
        object: the kind of thing that it leads to; "" for a number.
        noun, noun_ko: what it is called.
        low, high: range of a number.
    """

    subject: str
    object: str
    noun: str
    noun_ko: str
    low: int = 0
    high: int = 0


RELATIONS: Final = (
    Relation("person", "person", "teacher", "스승"),
    Relation("person", "town", "birthplace", "출생지"),
    Relation("person", "school", "schooling", "모교"),
    Relation("person", "person", "spouse", "배우자"),
    Relation("person", "work", "masterpiece", "대표작"),
    Relation("person", "company", "employer", "근무지"),
    Relation("person", "", "birth year", "출생연도", 1702, 1868),
    Relation("person", "", "death year", "사망연도", 1869, 1949),
    Relation("town", "river", "waterway", "물길"),
    Relation("town", "person", "mayor", "시장"),
    Relation("town", "town", "twin", "자매도시"),
    Relation("town", "", "charter year", "헌장연도", 1101, 1699),
    Relation("school", "person", "founder", "설립자"),
    Relation("school", "person", "rector", "학장"),
    Relation("school", "town", "campus", "교정"),
    Relation("school", "", "foundation year", "설립연도", 1402, 1801),
    Relation("company", "person", "proprietor", "소유주"),
    Relation("company", "town", "headquarters", "본사"),
    Relation("company", "", "workforce", "종업원수", 102, 4999),
    Relation("river", "river", "tributary", "지류"),
    Relation("river", "person", "surveyor", "측량사"),
    Relation("river", "town", "mouth", "하구"),
    Relation("river", "", "length", "길이", 23, 987),
    Relation("work", "person", "dedicatee", "헌정대상"),
    Relation("work", "town", "premiere", "초연지"),
    Relation("work", "company", "sponsor", "후원사"),
    Relation("work", "", "completion year", "완성연도", 1712, 1935),
)
OF_KIND: Final = tuple(
    tuple(i for i, relation in enumerate(RELATIONS) if relation.subject == kind.name)
    for kind in KINDS
)

# {s}: the page's subject, {n}: the relation's noun, {o}: what it leads to. Nothing stands before
# {o} at the start of a sentence, where a capital letter would not mean a name.
FACT_EN: Final = (
    "The {n} of {s} was {o}.",
    "Records of the time give {o} as the {n}.",
    "According to every register, the {n} was {o}.",
    "Letters from later years confirm that the {n} was indeed {o}, as nobody has disputed since.",
    "Among the few things that are certain is the {n}: {o}.",
)
FALSE_EN: Final = (
    "It was long and wrongly believed that the {n} was {o}.",
    "Some older guides still give {o} as the {n}, which is not true.",
    "A rumour that made {o} the {n} was never confirmed.",
)
FACT_KO: Final = (
    "{s}의 {n}: {o}.",
    "당시의 기록에는 {n} 항목에 {o} 라고 적혀 있다.",
    "모든 등기부에 따르면 {n} 항목은 {o} 이다.",
    "훗날의 편지들도 {n} 항목이 {o} 임을 확인해 주며 그 뒤로 아무도 이를 의심하지 않았다.",
    "확실한 몇 가지 가운데 하나가 {n} 항목이며, 그것은 {o} 이다.",
)
FALSE_KO: Final = (
    "한때 {n} 항목이 {o} 라고 잘못 알려져 있었다.",
    "몇몇 옛 안내서는 아직도 {n} 항목에 {o} 라고 적고 있으나 사실이 아니다.",
    "{n} 항목이 {o} 라는 소문은 끝내 확인되지 않았다.",
)
FACTS: Final = (FACT_EN, FACT_KO)
FALSE: Final = (FALSE_EN, FALSE_KO)

#: Words of doubt: a sentence with one of them does not assert what it says.
DOUBT: Final = frozenset(
    (
        "wrongly", "rumour", "rumor", "never", "untrue", "not", "allegedly", "falsely", "mistaken",
        "잘못", "아니다", "소문은", "소문", "않았다",
    )
)  # fmt: skip

FILLER_EN: Final = (
    "Visitors usually come in late spring, when the roads are dry and the inns are open.",
    "The archive keeps eleven boxes of papers, most of them receipts and lists of seeds.",
    "A small collection was shown again after the great storm and has travelled since.",
    "Little is known about the years in between, and the sources that exist contradict each other.",
    "The weather of that decade was unusually cold, and several harvests failed in a row.",
    "A commemorative stone was put up by the local society and is cleaned once a year.",
    "Historians have paid more attention to the bookkeeping than to anything else.",
    "An anniversary edition of the letters was printed on thin paper and sold out quickly.",
    "Several streets were renamed at the time, and most of them were named back soon after.",
    "The bells could be heard across the valley, as travellers noted with some annoyance.",
    "Its colours have faded, but the outlines can still be made out in good light.",
    "The inventory lists two clocks, a globe, forty chairs and a cupboard without a key.",
)
FILLER_LINK_EN: Final = (
    "A detour leads to {o}, which most travellers skip.",
    "The same shelf of the archive holds papers about {o} and little else.",
    "Comparisons with {o} were common in the newspapers of the day.",
    "A chapter of the chronicle is about {o}, for no reason that anybody remembers.",
)
FILLER_KO: Final = (
    "방문객은 대개 길이 마르고 여관이 문을 여는 늦봄에 찾아온다.",
    "기록관에는 서류 상자 열한 개가 있는데 대부분 영수증과 씨앗 목록이다.",
    "큰 폭풍이 지나간 뒤 작은 소장품이 다시 전시되었고 그 후 여러 곳을 돌았다.",
    "그 사이의 세월에 대해서는 알려진 것이 적고 남은 자료도 서로 어긋난다.",
    "그 무렵의 날씨는 유난히 추웠고 여러 해 동안 흉작이 이어졌다.",
    "지역 모임이 세운 기념비는 해마다 한 번씩 깨끗이 닦인다.",
    "역사가들은 다른 무엇보다 장부에 더 관심을 기울여 왔다.",
    "편지 모음의 기념판은 얇은 종이에 인쇄되어 금세 다 팔렸다.",
    "그때 여러 거리의 이름이 바뀌었으나 대부분 곧 옛 이름을 되찾았다.",
    "종소리는 골짜기 너머까지 들려서 나그네들이 조금 성가셔했다고 한다.",
    "빛깔은 바랬지만 밝은 곳에서는 아직 윤곽을 알아볼 수 있다.",
    "물품 목록에는 시계 두 개, 지구본 하나, 의자 마흔 개와 열쇠 없는 장롱이 있다.",
)
FILLER_LINK_KO: Final = (
    "샛길로 가면 {o} 쪽으로 이어지지만 대부분의 나그네는 지나친다.",
    "기록관의 같은 선반에는 {o} 관련 서류가 있을 뿐이다.",
    "당시 신문에서는 {o} 쪽과 견주는 일이 흔했다.",
    "연대기의 한 장은 {o} 이야기인데 그 까닭을 기억하는 사람은 없다.",
)
FILLER: Final = (FILLER_EN, FILLER_KO)
FILLER_LINK: Final = (FILLER_LINK_EN, FILLER_LINK_KO)
HEADINGS: Final = (
    ("Overview", "Records", "Context", "Later years", "Notes", "Legacy"),
    ("개요", "기록", "배경", "훗날", "비고", "유산"),
)

ADJECTIVES: Final = (
    ("grey", "quiet", "golden", "crooked", "silver", "early", "hollow", "northern", "patient",
     "restless", "salt", "scarlet", "second", "winter", "wandering", "blind", "copper", "gentle"),
    ("잿빛", "고요한", "황금", "굽은", "은빛", "이른", "텅빈", "북녘", "느긋한", "들뜬", "소금",
     "진홍", "둘째", "겨울", "떠도는", "눈먼", "구리", "온화한"),
)  # fmt: skip
NOUNS: Final = (
    ("heron", "lantern", "anchor", "orchard", "compass", "falcon", "mirror", "harbour", "candle",
     "thistle", "bridge", "clock", "wheel", "feather", "garden", "hammer", "oak", "shepherd",
     "stair", "tide", "violin", "well", "window", "kiln", "mill"),
    ("왜가리", "등불", "닻", "과수원", "나침반", "송골매", "거울", "포구", "촛불", "엉겅퀴", "다리",
     "괘종", "바퀴", "깃털", "뜰", "망치", "참나무", "목동", "계단", "밀물", "바이올린", "우물",
     "창문", "가마", "방앗간"),
)  # fmt: skip
