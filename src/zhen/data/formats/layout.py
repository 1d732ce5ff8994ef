"""Where the two sentences of a pair stand in a line, a record or a row."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

# A record may hold its sentences in an object of this name, as data sets of the hub do.
NESTED = "translation"


@dataclass(frozen=True)
class Layout:
    """What a reader has to look for.

    Args:
        languages: the two, in the order of columns without names.
        source_lang: the one to translate from.
        columns: of the two languages, in their order: numbers from 0, or names. None: the first and
            the second, or those named as the languages.
        header: whether line 1 of a TSV or CSV names the columns; None: see `delimited`.
    """

    languages: tuple[str, str]
    source_lang: str
    columns: tuple[int, int] | tuple[str, str] | None = None
    header: bool | None = None

    @cached_property
    def target_lang(self) -> str:
        return self.languages[1 - self.languages.index(self.source_lang)]

    @cached_property
    def names(self) -> tuple[str, str]:
        """The names of the columns of source and target."""
        first, second = map(str, self.columns or self.languages)
        return (first, second) if self.source_lang == self.languages[0] else (second, first)

    @cached_property
    def numbers(self) -> tuple[int, int]:
        """The numbers, from 0, of the columns of source and target."""
        first, second = (int(each) for each in self.columns or (0, 1))
        return (first, second) if self.source_lang == self.languages[0] else (second, first)

    @property
    def named(self) -> bool:
        """Whether columns were chosen by name."""
        return self.columns is not None and isinstance(self.columns[0], str)

    def missing(self, there: Collection[str], what: str) -> str:
        """Why the names are not all `there`, empty if they are."""
        for name in self.names:
            if name not in there:
                shown = ", ".join(map(repr, list(there)[:10])) or "none"
                return f"no {what} {name!r}; there is {shown}"
        return ""
