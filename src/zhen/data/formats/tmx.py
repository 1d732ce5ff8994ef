"""TMX, the exchange format of translation memories (TMX 1.4b, LISA OSCAR, 26 April 2005).

A unit `tu` holds variants `tuv`, each with a language and a segment `seg`. The elements inside of a
segment hold formatting codes of the document that the text came from; `hi` alone holds text.
"""

from collections.abc import Iterator
from functools import lru_cache
from xml.parsers import expat

from zhen.data.formats.layout import Layout
from zhen.data.formats.lines import InputFile
from zhen.data.source import Fault, Item

CODES = {"bpt", "ept", "it", "ph", "ut"}


def read_tmx(file: InputFile, layout: Layout) -> Iterator[Item]:
    """The pairs of a TMX, each with the line on which its unit begins."""
    units = _Units(file, layout)
    try:
        for block in file.blocks():
            units.parse(block)
            yield from units.taken()
        units.parse(b"")
    except (expat.ExpatError, _NoTmx, ValueError, LookupError) as error:
        # The last two: an encoding that the parser cannot read, or does not know.
        reason = expat.errors.messages[error.code] if isinstance(error, expat.ExpatError) else error
        yield from units.taken()
        message = f"no TMX ({reason}); the file is not read any further"
        yield Fault("xml", file.name, units.line, message)
    yield from units.taken()
    yield from units.notes()


@lru_cache(maxsize=1000)  # asked for every text
def likeness(language: str, wanted: str) -> int:
    """2 for the same language, 1 for a kind of the wanted one, as zh-CN is of zh, else 0."""
    language, wanted = (code.lower().replace("_", "-") for code in (language, wanted))
    return 2 if language == wanted else int(language.startswith(f"{wanted}-"))


class _NoTmx(Exception):
    """The file is XML, but of another kind."""


class _Units:
    """Takes a file block by block and gives the units that have ended."""

    def __init__(self, file: InputFile, layout: Layout) -> None:
        self._file = file.name
        self._wanted = layout.source_lang, layout.target_lang
        self._ready: list[Item] = []
        self._begun = 0  # the line on which the unit began
        self._variants: list[tuple[str, str]] = []  # of the unit: languages and texts
        self._language = ""  # of the variant
        self._text: list[str] | None = None  # of the segment, while inside of one
        self._codes = 0  # how many open elements hold codes
        self._unknown = ""  # an entity without a definition
        self._several, self._first = 0, 0  # units with several texts to choose from; the first
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._root
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.SkippedEntityHandler = self._skipped

    @property
    def line(self) -> int:
        """Where the parser stands."""
        return self._parser.CurrentLineNumber

    def parse(self, block: bytes) -> None:
        """Take the next block; an empty one is the end."""
        self._parser.Parse(block, not block)

    def taken(self) -> list[Item]:
        """The units that have ended since the last call."""
        ready, self._ready = self._ready, []
        return ready

    def notes(self) -> Iterator[Fault]:
        """What was chosen without being asked."""
        if self._several:
            message = (
                f"this unit has several texts for one language, and so have {self._several - 1}"
                " others; the first is taken"
            )
            yield Fault("variants", self._file, self._first, message, refused=False)

    def _root(self, name: str, attributes: dict[str, str]) -> None:
        if name != "tmx":
            raise _NoTmx(f"the root element is {name}")
        self._parser.StartElementHandler = self._start

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "tu":
            self._begun, self._variants, self._unknown = self.line, [], ""
        elif name == "tuv":  # `lang` is TMX 1.1
            self._language = attributes.get("xml:lang") or attributes.get("lang", "")
        elif name == "seg":
            self._text, self._codes = [], 0
        elif name in CODES:
            self._codes += 1

    def _characters(self, text: str) -> None:
        if self._text is not None and not self._codes:
            self._text.append(text)

    def _skipped(self, name: str, is_parameter: bool) -> None:
        if self._text is not None and not is_parameter:
            self._unknown = self._unknown or name

    def _end(self, name: str) -> None:
        if name in CODES:
            self._codes -= 1
        elif name == "seg" and self._text is not None:
            self._variants.append((self._language, "".join(self._text)))
            self._text = None
        elif name == "tu":
            self._ready.append(self._unit())

    def _unit(self) -> Item:
        if self._unknown:
            message = f"the entity &{self._unknown}; is not defined; write the character itself"
            return Fault("xml", self._file, self._begun, message)
        choices = [self._variants_in(language) for language in self._wanted]
        if any(len(texts) > 1 for texts in choices):
            self._several += 1
            self._first = self._first or self._begun
        source, target = (texts[0] if texts else None for texts in choices)
        if source is None or target is None:
            lacking = " and no ".join(
                language
                for language, text in zip(self._wanted, (source, target), strict=True)
                if text is None
            )
            there = ", ".join(language or "none" for language, _ in self._variants) or "nothing"
            message = f"the unit has no {lacking} text, but {there}; add it or delete the unit"
            return Fault("language", self._file, self._begun, message)
        return self._begun, source, target

    def _variants_in(self, wanted: str) -> list[str]:
        """The texts in a language: in exactly this one or, where there is none, a kind of it."""
        found = [(likeness(language, wanted), text) for language, text in self._variants]
        best = max((rank for rank, _ in found), default=0)
        return [text for rank, text in found if rank == best] if best else []
