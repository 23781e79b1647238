"""The base of reports and plans: values that print, show themselves in notebooks, and are JSON."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from zarrdask.display.html import preformatted, table
from zarrdask.display.words import aligned, value_text
from zarrdask.errors import no_attribute, printable, printable_lines


class Displayed(ABC):
    """A value that is displayed as a text of one or several lines, in which names are printable."""

    @abstractmethod
    def _text(self) -> str:
        """Return the text as it is before it is made printable."""

    def __str__(self) -> str:
        return printable_lines(self._text())


class Report(Displayed):
    """The result of a check or of long work, or the plan of it. Subclasses are dataclasses.

    They have `facts`, or a `_text` of their own; and ``repr=False``, so that a console shows
    one line.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, repr=False)
    ... class Count(Report):
    ...     derived = ("even",)
    ...     number: int
    ...
    ...     @property
    ...     def even(self):
    ...         return self.number % 2 == 0
    ...
    ...     def facts(self):
    ...         return [("number", f"{self.number} < 8")]
    >>> Count(4)
    <zarrdask.Count number  4 < 8>
    >>> Count(4).to_dict()
    {'number': 4, 'even': True}
    >>> "4 &lt; 8</td>" in Count(4)._repr_html_()
    True
    """

    #: The names of properties that `to_dict` has after the fields.
    derived: ClassVar[tuple[str, ...]] = ()
    #: Advice in the message for an attribute that does not exist.
    _instead: ClassVar[str] = ""

    if not TYPE_CHECKING:  # For type checkers, every attribute would exist.

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, name, self._instead)

    def facts(self) -> Iterable[tuple[str, str]]:
        """Return the lines of the text: a name and a description each."""
        return ()

    def summary(self) -> str:
        """Return one line about the report."""
        return str(self).partition("\n")[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values that JSON can represent: sizes are numbers of bytes."""
        values = _fields(self) | {name: getattr(self, name) for name in self.derived}
        return {name: json_value(value) for name, value in values.items()}

    def _text(self) -> str:
        return aligned(self.facts())

    def __repr__(self) -> str:
        return printable(f"<zarrdask.{type(self).__name__} {self.summary()}>")

    def _repr_html_(self) -> str:
        facts = list(self.facts())
        return table(facts) if facts else preformatted(str(self))


def _fields(value: Any) -> dict[str, Any]:
    names = [field.name for field in fields(value) if not field.name.startswith("_")]
    return {name: getattr(value, name) for name in names}


def json_value(value: Any) -> Any:
    """Return a value as JSON represents it: dataclasses are objects, tuples are arrays.

    Fields whose names begin with an underscore are left out. A value that JSON has no equivalent
    of is converted to text.

    >>> json_value({"shape": (np.int64(2), 3), "step": slice(1), "maximum": np.float32("inf")})
    {'shape': [2, 3], 'step': 'slice(None, 1, None)', 'maximum': 'inf'}
    """
    if isinstance(value, Report):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        value = _fields(value)
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, np.generic) and value.dtype.kind not in "mMV":
        value = value.item()
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str | None) else value_text(value)
