"""The base of all reports: a frozen value that prints, shows itself in notebooks, and is JSON."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any, ClassVar

import numpy as np

from zarrdask.display.html import preformatted


class Report:
    """The result of a check or of long work. Subclasses are dataclasses with a ``__str__``.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Count(Report):
    ...     derived = ("even",)
    ...     number: int
    ...
    ...     @property
    ...     def even(self):
    ...         return self.number % 2 == 0
    ...
    ...     def __str__(self):
    ...         return f"{self.number} < 8"
    >>> Count(4).to_dict()
    {'number': 4, 'even': True}
    >>> "4 &lt; 8" in Count(4)._repr_html_()
    True
    """

    #: The names of properties that `to_dict` has after the fields.
    derived: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values that JSON can represent."""
        values: dict[str, Any] = json_value(self)
        return values | {name: json_value(getattr(self, name)) for name in self.derived}

    def _repr_html_(self) -> str:
        return preformatted(str(self))


def json_value(value: Any) -> Any:
    """Return a value as JSON represents it: dataclasses are objects, tuples are arrays.

    Fields whose names begin with an underscore are left out. A value that JSON has no equivalent
    of is converted to text.

    >>> json_value({"shape": (np.int64(2), 3), "step": slice(1), "maximum": np.float32("inf")})
    {'shape': [2, 3], 'step': 'slice(None, 1, None)', 'maximum': 'inf'}
    """
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value) if not field.name.startswith("_")]
        return {name: json_value(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str | None) else str(value)
