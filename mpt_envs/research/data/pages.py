"""A document as the browser shows it: wrapped lines, numbered links, and what is named where.

Markdown links ``[text](url)`` become ``【id†text†domain】`` (a url with spaces stands in ``<>``);
lines are wrapped at 80 characters. A *mention* is what a reader would take note of: a link, a
quoted phrase, a run of capitalised words, or a number. Mentions are found in the text alone.
"""

# ruff: noqa: RUF001  (typographic quotes are what pages are written with)
from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from mpt_envs.research.world.facts import DOUBT

WIDTH: Final = 80  # characters of a line
MAX_NAME: Final = 100  # a longer run of words is no name

_TOKEN: Final = re.compile(r"\[([^\[\]\n]{1,300})\]\((<[^<>\n]{1,2000}>|\S{1,2000}?)\)(\S*)|\S+")
_CONTROL: Final = re.compile(
    r"[^\S\n ]|[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\ufeff]"
)
_NUMBER: Final = re.compile(r"^[^\w]*(\d[\d,.]*\d|\d)[^\w]*$|^(\d{1,9})(?=[\uac00-\ud7a3])")
_OPEN, _CLOSE = '"“‘「『«', '"”’」』»'
_SENTENCE_END: Final = (".", "!", "?", "。", ".”", ".’", '."', ".)")
_SMALL: Final = frozenset(("of", "the", "de", "da", "von", "van", "and", "in", "for"))
_ABBREVIATION: Final = re.compile(r"^\W*(?:[A-Z]|Mr|Mrs|Dr|St|Jr|Sr|vs|No)\.$")


class Mention(NamedTuple):
    """Something that a page names.

    Attributes:
        name: as the page writes it, without quotes.
        line: where it starts.
        sentence: number of the sentence within the page.
        link: number of the link, or -1.
        number: whether it is a number.
    """

    name: str
    line: int
    sentence: int
    link: int
    number: bool


class Page(NamedTuple):
    """A document laid out.

    Attributes:
        lines: as shown, without numbers.
        urls: address of each link.
        mentions: in order.
        sentences: the text of each sentence.
        doubtful: for each sentence whether a word of doubt stands in it.
    """

    lines: tuple[str, ...]
    urls: tuple[str, ...]
    mentions: tuple[Mention, ...]
    sentences: tuple[str, ...]
    doubtful: tuple[bool, ...]


def clean(text: str) -> str:
    """Text without control characters and odd spaces; line breaks stay."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _CONTROL.sub(" ", text)
    # Lone surrogates cannot be printed.
    return text.encode("utf-8", "replace").decode("utf-8")


def one_line(text: str) -> str:
    """Text on one line: `clean`, with single spaces."""
    return " ".join(clean(text).split())


def domain(url: str) -> str:
    """The host of an address, "" if it has none."""
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""


def plain(text: str) -> str:
    """Markdown text without the addresses of its links."""
    return re.sub(_TOKEN, lambda m: (m[1] + m[3]) if m[1] else m[0], text)


class _Builder:
    """Collects words into lines, and mentions on the way."""

    def __init__(self, title: str, address: Callable[[str], str]) -> None:
        self.address = address
        self.title = title.partition(" (")[0].casefold()
        self.lines: list[str] = []
        self.urls: list[str] = []
        self.mentions: list[Mention] = []
        self.sentences: list[list[str]] = [[]]
        self.current = ""
        self.run: list[str] = []  # capitalised words
        self.run_line = 0
        self.quote: list[str] | None = None
        self.quote_line = 0

    def place(self, word: str) -> int:
        """Put a word on the current line or a new one; returns the line."""
        if len(word) > WIDTH:
            if self.current:
                self.break_line()
            whole = (len(word) - 1) // WIDTH
            self.lines += [word[i * WIDTH : (i + 1) * WIDTH] for i in range(whole)]
            word = word[whole * WIDTH :]
        if self.current and len(self.current) + 1 + len(word) > WIDTH:
            self.break_line()
        self.current = f"{self.current} {word}" if self.current else word
        return len(self.lines)

    def break_line(self) -> None:
        self.lines.append(self.current)
        self.current = ""

    def mention(self, name: str, line: int, link: int = -1, number: bool = False) -> None:
        name = " ".join(name.split())
        if not name or len(name) > MAX_NAME or name.casefold() == self.title:
            return
        self.mentions.append(Mention(name, line, len(self.sentences) - 1, link, number))

    def end_run(self) -> None:
        while self.run and self.run[-1].lower() in _SMALL:
            self.run.pop()
        if self.run:
            self.mention(" ".join(self.run), self.run_line)
        self.run = []

    def end_sentence(self) -> None:
        self.end_run()
        self.quote = None
        if self.sentences[-1]:
            self.sentences.append([])

    def link(self, text: str, target: str, tail: str) -> None:
        self.end_run()
        bracketed = target.startswith("<") and target.endswith(">")
        url = self.address(target[1:-1].strip() if bracketed else target)
        number = len(self.urls)
        self.urls.append(url)
        line = self.place(f"【{number}†{text}†{domain(url)}】{tail}")
        self.sentences[-1].append(text + tail)
        self.quote = None
        self.mention(text, line, link=number)
        if tail.endswith(_SENTENCE_END):
            self.end_sentence()

    def word(self, word: str) -> None:
        first = not self.sentences[-1]
        line = self.place(word)
        self.sentences[-1].append(word)
        self._quoted(word, line)
        if self.quote is None and not self._closes(word):
            self._named(word, line, first)
        if word.endswith(_SENTENCE_END) and not _ABBREVIATION.match(word) and self.quote is None:
            self.end_sentence()

    def _closes(self, word: str) -> bool:
        return self._just_closed

    _just_closed = False

    def _quoted(self, word: str, line: int) -> None:
        """Follow quotes; a phrase between them is a mention."""
        self._just_closed = False
        rest = word
        if self.quote is None:
            start = next((i for i, c in enumerate(word[:2]) if c in _OPEN), -1)
            if start < 0:
                return
            self.end_run()
            self.quote, self.quote_line = [], line
            rest = word[start + 1 :]
        end = next((i for i, c in enumerate(rest) if c in _CLOSE and (i or c != '"')), -1)
        # An apostrophe within a word does not close.
        if (
            end >= 0
            and rest[end] == "’"
            and rest[end + 1 : end + 2].isascii()
            and (rest[end + 1 : end + 2].isalpha())
        ):
            end = -1
        if end < 0:
            self.quote.append(rest)
            if len(self.quote) > 12:
                self.quote = None
            return
        self.quote.append(rest[:end])
        name, at = " ".join(self.quote).strip(" .,;:"), self.quote_line
        self.quote = None
        self._just_closed = True
        self.mention(name, at)

    def _named(self, word: str, line: int, first: bool) -> None:
        """Follow runs of capitalised words, and numbers."""
        digits = _NUMBER.match(word)
        if digits:
            self.end_run()
            self.mention(digits[1] or digits[2], line, number=True)
            return
        core = word.strip("().,;:!?\"'“”‘’[]*_")
        ends = word[-1:] in ".,;:!?)"
        starts = word[:1] in "(["
        if starts:
            self.end_run()
        if core[:1].isupper() and core[:1].isalpha():
            core = re.sub(r"['’]s$", "", core)
            if not self.run:
                self.run_line = line
                if first:
                    # A capital at the start of a sentence may mean nothing: it counts only
                    # together with a capital after it.
                    self.run = [core] if not ends else []
                    self._initial = True
                    return
                self._initial = False
            self.run.append(core)
            if ends or word.endswith(("'s", "’s")):
                self._finish_run()
            return
        if self.run and core in _SMALL and not ends:
            self.run.append(core)
            return
        self._finish_run()

    _initial = False

    def _finish_run(self) -> None:
        if self._initial and len([w for w in self.run if w[:1].isupper()]) < 2:
            self.run = []
        self._initial = False
        self.end_run()


def lay_out(text: str, title: str = "", address: Callable[[str], str] = str) -> Page:
    """Wrap a text and find its links and mentions.

    Args:
        text: Markdown or plain text of any length.
        title: of the page, which is not a mention of itself.
        address: gives the address that the target of a link stands for.
    """
    builder = _Builder(title, address)
    for paragraph in clean(text).split("\n"):
        heading = paragraph.startswith("#")
        for match in _TOKEN.finditer(paragraph):
            if heading:
                builder.place(match[0][:2000])
            elif match[1] is not None:
                builder.link(" ".join(match[1].split()), match[2], match[3])
            else:
                builder.word(match[0])
        builder.end_sentence()
        builder.break_line()
    lines = builder.lines
    # One empty line between paragraphs, none at the ends; mentions keep their lines.
    kept: list[str] = []
    moved: list[int] = []
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
        moved.append(max(0, len(kept) - 1))
    while kept and not kept[-1]:
        kept.pop()
    mentions = tuple(m._replace(line=moved[m.line]) for m in builder.mentions)
    sentences = tuple(" ".join(words) for words in builder.sentences)
    doubtful = tuple(
        any(w.strip(".,;:!?‘’“”()").lower() in DOUBT for w in s.split()) for s in sentences
    )
    return Page(tuple(kept), tuple(builder.urls), mentions, sentences, doubtful)


def snippet(text: str, length: int) -> str:
    """The beginning of a text on one line."""
    return " ".join(plain(clean(text[: 3 * length + 2000])).split())[:length]


def fold(name: str) -> str:
    """A name as names are compared: NFKC, case folded, single spaces, no quotes or edges."""
    text = unicodedata.normalize("NFKC", name).casefold()
    return " ".join(text.split()).strip(" .,;:!?\"'“”‘’「」『』()")
