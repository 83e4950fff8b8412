"""The generated encyclopaedia: things that do not exist, their facts, and a page for each.

Everything follows from one key. Half of the hard parts of real multi-hop search are here on
purpose: names that several things share, second names that two things share, facts whose object is
named without a link, sentences that say what is not true, and pages of several screens on which the
fact may stand anywhere. A thing is always told apart by its name *and* its noun ("the painter X"),
which is unique.
"""

# ruff: noqa: RUF001  (typographic quotes are what pages are written with)
from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mpt_envs.research.data.corpus import Corpus, Document
from mpt_envs.research.world import naming
from mpt_envs.research.world.facts import (
    EN,
    FACTS,
    FALSE,
    FILLER,
    FILLER_LINK,
    HEADINGS,
    KIND,
    KINDS,
    KO,
    LANGUAGES,
    OF_KIND,
    RELATIONS,
)
from wrappers.random_sequence import RandomSequence
from wrappers.rng import STREAM_DOMAIN

#: Things with a page, by language.
SIZES: Final = (1900, 1100)
_SHARED_NAME: Final = 0.16  # share of things that take the name of another
_ALIAS: Final = 0.45
_SHARED_ALIAS: Final = 0.25
_FACT: Final = 0.85  # of a relation that a thing could have
_LINKED: Final = 0.55  # of the objects of facts
_BY_ALIAS: Final = 0.35
_NOUN: Final = 0.4  # how often the noun stands before a name that needs none
_FALSE: Final = 0.5  # facts that a sentence contradicts
_SITE: Final = "https://lorem.example"
_STREAM: Final = STREAM_DOMAIN + 200


def random_choices(key: int) -> RandomSequence:
    """The choices of the generators of pages and questions."""
    return RandomSequence(key, _STREAM, bits=12)


class Mention(NamedTuple):
    """How a page names a thing: the name, whether the noun stands with it, whether it is a link."""

    name: str
    noun: bool
    linked: bool


@dataclass
class Thing:
    """One thing of the encyclopaedia.

    Attributes:
        index: in `Encyclopedia.things`.
        language, kind, noun: indices into ``facts.LANGUAGES``, ``KINDS`` and the kind's nouns.
        name, alias, title, url, docid: as its page gives them; ``alias`` may be "".
        facts: by relation: the index of another thing, or a number.
        mentions: by relation that leads to a thing: how its page names that thing.
    """

    index: int
    language: int
    kind: int
    noun: int
    name: str
    alias: str = ""
    title: str = ""
    url: str = ""
    docid: str = ""
    facts: dict[int, int] = field(default_factory=dict)
    mentions: dict[int, Mention] = field(default_factory=dict)

    @property
    def noun_word(self) -> str:
        """Its noun in its language."""
        kind = KINDS[self.kind]
        return (kind.nouns if self.language == EN else kind.nouns_ko)[self.noun]

    @property
    def names(self) -> tuple[str, ...]:
        """Its name, and its alias if it has one."""
        return (self.name, self.alias) if self.alias else (self.name,)


class Encyclopedia:
    """Things, facts and pages that follow from a key.

    Args:
        key: any int below 2**64.
        sizes: number of things in English and in Korean.

    Attributes:
        things: all things.
        corpus: their pages.
    """

    def __init__(self, key: int, sizes: tuple[int, int] = SIZES) -> None:
        rng = random_choices(key)
        self.things: list[Thing] = []
        for language, size in enumerate(sizes):
            if size:
                self._make_things(rng, language, size)
        for thing in self.things:
            self._draw_facts(rng, thing)
        self.bearers: dict[tuple[int, str], list[int]] = {}
        for thing in self.things:
            for name in thing.names:
                self.bearers.setdefault((thing.language, name), []).append(thing.index)
        for thing in self.things:
            self._draw_mentions(rng, thing)
        self.corpus = Corpus(
            [Document(t.docid, t.url, t.title, self._page(rng, t)) for t in self.things],
            "the encyclopaedia",
        )
        self.doc_of = [self.corpus.by_docid[t.docid] for t in self.things]

    # -- things ------------------------------------------------------------------------------

    def _make_things(self, rng: RandomSequence, language: int, size: int) -> None:
        """Draw the things of one language: names, nouns, aliases, titles, addresses."""
        shares = [kind.share for kind in KINDS]
        counts = [max(4, round(size * share / sum(shares))) for share in shares]
        order = rng.shuffled([kind for kind, count in enumerate(counts) for _ in range(count)])
        taken: set[tuple[str, str]] = set()  # (name, noun)
        names: list[str] = []
        aliases: list[str] = []
        made: list[Thing] = []
        for kind in order:
            nouns = KINDS[kind].nouns if language == EN else KINDS[kind].nouns_ko
            while True:
                noun = rng.below(len(nouns))
                shared = bool(names) and rng.chance(_SHARED_NAME)
                name = rng.choice(names) if shared else naming.name(rng, language, kind)
                if (name, nouns[noun]) not in taken and (shared or name not in names):
                    break
            taken.add((name, nouns[noun]))
            alias = ""
            if rng.chance(_ALIAS):
                shared_alias = bool(aliases) and rng.chance(_SHARED_ALIAS)
                alias = rng.choice(aliases) if shared_alias else naming.alias(rng, language)
                if (alias, nouns[noun]) in taken or (not shared_alias and alias in aliases):
                    alias = ""
                else:
                    taken.add((alias, nouns[noun]))
                    aliases.append(alias)
            names.append(name)
            made.append(Thing(0, language, kind, noun, name, alias))
        often: dict[str, int] = {}
        for thing in made:
            often[thing.name] = often.get(thing.name, 0) + 1
        for number, thing in enumerate(rng.shuffled(made)):
            shared = often[thing.name] > 1
            thing.index = len(self.things)
            thing.title = f"{thing.name} ({thing.noun_word})" if shared else thing.name
            slug = re.sub(r"\W+", "-", thing.title.lower()).strip("-")
            thing.url = f"{_SITE}/{LANGUAGES[language]}/{slug}"
            thing.docid = f"{LANGUAGES[language]}-{number:05d}"
            self.things.append(thing)

    def _draw_facts(self, rng: RandomSequence, thing: Thing) -> None:
        if not hasattr(self, "_by_kind"):
            self._by_kind: dict[tuple[int, int], list[int]] = {}
            for other in self.things:
                self._by_kind.setdefault((other.language, other.kind), []).append(other.index)
        for relation in OF_KIND[thing.kind]:
            if not rng.chance(_FACT):
                continue
            facts = RELATIONS[relation]
            if not facts.object:
                thing.facts[relation] = facts.low + rng.below(facts.high - facts.low + 1)
                continue
            chosen = rng.choice(self._by_kind[thing.language, KIND[facts.object]])
            # Each fact of a page leads to another thing.
            if chosen != thing.index and chosen not in thing.facts.values():
                thing.facts[relation] = chosen

    def _draw_mentions(self, rng: RandomSequence, thing: Thing) -> None:
        for relation, value in thing.facts.items():
            if RELATIONS[relation].object:
                thing.mentions[relation] = self._mention(rng, self.things[value])

    def _mention(self, rng: RandomSequence, thing: Thing) -> Mention:
        name = thing.alias if thing.alias and rng.chance(_BY_ALIAS) else thing.name
        shared = len(self.bearers[thing.language, name]) > 1
        return Mention(name, shared or rng.chance(_NOUN), rng.chance(_LINKED))

    # -- pages -------------------------------------------------------------------------------

    def _named(self, thing: Thing, mention: Mention) -> str:
        """A thing as a page names it: noun, name or alias, link."""
        name = mention.name
        if mention.linked:
            name = f"[{name}]({thing.url})"
        elif thing.language == KO:
            name = f"‘{name}’"
        elif mention.name == thing.alias or KINDS[thing.kind].name == "work":
            name = f"“{name}”"
        if not mention.noun:
            return name
        return (
            f"the {thing.noun_word} {name}"
            if thing.language == EN
            else (f"{thing.noun_word} {name}")
        )

    def _page(self, rng: RandomSequence, thing: Thing) -> str:
        """The text of a thing's page, in Markdown."""
        language = thing.language
        sentences: list[str] = []
        for relation, value in thing.facts.items():
            noun = RELATIONS[relation].noun if language == EN else RELATIONS[relation].noun_ko
            number = not RELATIONS[relation].object
            what = (
                str(value) if number else self._named(self.things[value], thing.mentions[relation])
            )
            fact = rng.choice(FACTS[language]).format(s=thing.name, n=noun, o=what)
            group = [fact]
            if rng.chance(_FALSE):
                group.append(self._untrue(rng, thing, relation, noun))
            sentences += rng.shuffled(group)
        sentences = self._spread(rng, sentences, language)
        parts = [self._lead(rng, thing)]
        headings = rng.shuffled(HEADINGS[language])
        at = 0
        while at < len(sentences):
            size = 5 + rng.below(5)
            if headings:
                parts.append(f"## {headings.pop()}")
            parts.append(" ".join(sentences[at : at + size]))
            at += size
        return "\n\n".join(parts)

    def _lead(self, rng: RandomSequence, thing: Thing) -> str:
        filler = rng.choice(FILLER[thing.language])
        if thing.language == EN:
            article = "an" if thing.noun_word[0] in "aeiou" else "a"
            alias = f", also known as “{thing.alias}”" if thing.alias else ""
            return f"{thing.name} is {article} {thing.noun_word}{alias}. {filler}"
        alias = f" ‘{thing.alias}’ 라고도 불린다." if thing.alias else ""
        return f"{thing.name} 항목은 {thing.noun_word}에 관한 것이다.{alias} {filler}"

    def _untrue(self, rng: RandomSequence, thing: Thing, relation: int, noun: str) -> str:
        """A sentence that gives something else for a relation, and says that it is not true."""
        facts = RELATIONS[relation]
        if facts.object:
            choices = self._by_kind[thing.language, KIND[facts.object]]
            other = self.things[rng.choice(choices)]
            while other.index == thing.facts[relation]:
                other = self.things[rng.choice(choices)]
            what = self._named(other, self._mention(rng, other))
        else:
            value = thing.facts[relation]
            while value == thing.facts[relation]:
                value = facts.low + rng.below(facts.high - facts.low + 1)
            what = str(value)
        return rng.choice(FALSE[thing.language]).format(n=noun, o=what)

    def _spread(self, rng: RandomSequence, facts: list[str], language: int) -> list[str]:
        """Sentences of facts in random order, with sentences that say nothing between them."""
        result: list[str] = []
        for fact in rng.shuffled(facts):
            for _ in range(rng.below(5)):
                if rng.chance(0.3):
                    other = rng.choice(self._all_of(language))
                    link = f"[{other.name}]({other.url})"
                    result.append(rng.choice(FILLER_LINK[language]).format(o=link))
                else:
                    result.append(rng.choice(FILLER[language]))
            result.append(fact)
        return result

    def _all_of(self, language: int) -> list[Thing]:
        if not hasattr(self, "_languages"):
            self._languages = [
                [t for t in self.things if t.language == lang] for lang in range(len(LANGUAGES))
            ]
        return self._languages[language]
