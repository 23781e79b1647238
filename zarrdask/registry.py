"""Things by name: what every extension point of the formats is made of."""

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from zarrdask.errors import UnsupportedError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


class Registry(Generic[T]):
    """What is known under the names of one extension point.

    Built-in things, those that a program registers and those that installed packages declare as
    entry points are found in the same way; what a program registers comes first, and nothing is
    ever fetched because a name is a URL (conformance C-22, B-19).

    Parameters
    ----------
    what : str
        What is registered, for errors: "codec".
    key : str
        The metadata member where names stand.
    group : str
        The entry point group.
    built_in : mapping of str to str
        Names and ``module:attribute``; loaded when first asked for.
    """

    def __init__(self, what: str, key: str, group: str, built_in: Mapping[str, str]) -> None:
        self.what = what
        self.key = key
        self.group = group
        self._built_in = built_in
        self._registered: dict[str, T] = {}

    @cached_property
    def _installed(self) -> "dict[str, EntryPoint]":
        # Loaded when a name is not built in: few are, and the import takes its time.
        from importlib.metadata import entry_points

        return {point.name: point for point in entry_points(group=self.group)}

    def register(self, name: str, item: T) -> None:
        """Make something known under a name, or known anew."""
        self._registered[name] = item

    def get(self, name: str) -> T | None:
        """Return what is known under a name, or None.

        Raises
        ------
        UnsupportedError
            If an installed package declares it, and it can't be loaded.
        """
        if name in self._registered:
            return self._registered[name]
        if name in self._built_in:
            module, _, attribute = self._built_in[name].partition(":")
            return cast(T, getattr(import_module(module), attribute))
        point = self._installed.get(name)
        try:
            return None if point is None else cast(T, point.load())
        except (ImportError, AttributeError) as error:
            raise UnsupportedError(
                f"the {self.what} of an installed package can't be loaded: {error}",
                key=self.key,
                found=name,
            ) from error

    def find(self, name: str) -> T:
        """Return what is known under a name.

        Raises
        ------
        UnsupportedError
            If nothing is.
        """
        found = self.get(name)
        if found is None:
            raise self.unknown(name)
        return found

    def unknown(self, name: Any) -> UnsupportedError:
        """Return the error for a name that nothing is known under: it tells those like it."""
        names = self.names()
        expected = ", ".join(get_close_matches(str(name), names) or names) or None
        return UnsupportedError(f"unknown {self.what}", key=self.key, found=name, expected=expected)

    def names(self) -> list[str]:
        """Return all known names."""
        return sorted({*self._built_in, *self._registered, *self._installed})
