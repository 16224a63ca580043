"""Splits a text into sentences and the white space around them, and joins their translations again.

No list of a language's abbreviations is complete; in doubt, two sentences stay together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import regex

# The end of a sentence: its mark and closing quotes, then white space before something that can begin one.
# Scripts without spaces between sentences have their own marks. Repetition is bounded: otherwise a text of
# nothing but quotes would take quadratic time.
_END = regex.compile(
    r"""(?<=[.!?…][\p{Pf}\p{Pe}"']{0,3})\s+(?=[\p{Pi}\p{Ps}"'¿¡«»–—-]{0,4}[\p{Lu}\p{Lt}\p{Lo}\p{Nd}])"""
    r"""|(?<=[。！？।][\p{Pf}\p{Pe}]{0,3})\s*(?=\S)"""
)
# A full stop that ends an abbreviation: a single letter (J. Smith, z. B.), or one of these words.
_ABBREVIATION = regex.compile(
    r"(?<=^|[\s\p{Ps}.])(?:\p{L}|Mr|Mrs|Ms|Dr|Prof|St|Sr|Jr|Gen|Rev|Capt|vs|No|Nr|Abb|Art|Bd|bzw|ca|vgl|evtl"
    r"|usw|Str|Fig|etc|al|cf|Mme|Mlle|Sra|Dra)\.$"
)
_LONGEST_ABBREVIATION = 5  # characters, with its full stop
# Where to cut a sentence that is too long, best place first.
_CUTS = [regex.compile(r"(?<=[;:,、，；])\s*(?=\S)"), regex.compile(r"\s+")]


@dataclass(frozen=True)
class SplitSentence:
    text: str  # empty if the whole text is white space
    before: str  # white space
    after: str


Count = Callable[[Sequence[str]], Sequence[int]]  # tokens of each text


def split(text: str, longest: int, count: Count, always: bool = False) -> list[SplitSentence]:
    """The sentences of a text, in order.

    Lines are always separate. A line of at most `longest` tokens counts as one sentence unless `always`; a
    longer sentence is cut at a comma or a space near its middle.
    """
    split_sentences = []
    for line in regex.split(r"(?<=\n)(?=[^\n])", text):
        whole = _trimmed(line)
        parts = [whole.text]
        if always or _too_long(whole.text, longest, count):
            sentences = _at_ends(whole.text)
            parts = [part for sentence in sentences for part in _short(sentence, longest, count)]
        for number, part in enumerate(map(_trimmed, parts)):
            before = whole.before if number == 0 else part.before
            after = whole.after if number == len(parts) - 1 else part.after
            split_sentences.append(SplitSentence(part.text, before, after))
    return split_sentences


def join(sentences: Sequence[SplitSentence], translations: Sequence[str]) -> str:
    """Join translations with the white space of their sources.

    Where the source has none, as in Chinese, a translation into a script with spaces gets one.
    """
    parts: list[str] = []
    for number, (sentence, translation) in enumerate(zip(sentences, translations, strict=True)):
        parts += [sentence.before, translation, sentence.after]
        is_last = number == len(sentences) - 1
        if not is_last and not sentence.after and not sentences[number + 1].before:
            parts.append(" " if translation and ord(translation[-1]) < 0x2E80 else "")
    return "".join(parts)


def _trimmed(text: str) -> SplitSentence:
    inner = text.strip()
    begin = text.find(inner) if inner else len(text)
    return SplitSentence(inner, text[:begin], text[begin + len(inner) :])


def _too_long(text: str, longest: int, count: Count) -> bool:
    return len(text.encode()) > longest and count([text])[0] > longest  # a token is a byte or more


def _at_ends(text: str) -> Iterator[str]:
    """Each sentence with the white space after it."""
    start = 0
    for end in _END.finditer(text):
        if not _ABBREVIATION.search(text, max(0, end.start() - _LONGEST_ABBREVIATION), end.start()):
            yield text[start : end.end()]
            start = end.end()
    yield text[start:]


def _short(text: str, longest: int, count: Count) -> Iterator[str]:
    """The text in parts that are not too long."""
    if len(text) < 2 or not _too_long(text, longest, count):
        yield text
        return
    middle = _middle(text)
    for half in (text[:middle], text[middle:]):
        yield from _short(half, longest, count)


def _middle(text: str) -> int:
    """Where to cut: near the middle, so that the halves get shorter fast."""
    for cut in _CUTS:
        inner = [
            match.end() for match in cut.finditer(text) if len(text) // 4 < match.end() < len(text) * 3 // 4
        ]
        if inner:
            return min(inner, key=lambda place: abs(place - len(text) // 2))
    return len(text) // 2
