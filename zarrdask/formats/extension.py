"""Extension definitions of v3 (core 3.1, ZEP 9): a name, its configuration, must_understand."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from zarrdask.errors import MetadataError, UnsupportedError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


#: The name of an extension: raw, or an http or https URI without query and fragment (conformance
#: C-20, C-21). The specification has a URN in an example.
_NAME = re.compile(r"[a-z0-9._-]+|https?://[^/?#]+[^?#]*|urn:.*", re.DOTALL)

#: Any scheme is accepted in the v3 draft: zarr-python wrote names that begin with "TODO:".
_ANY_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.")

#: The number at the end of a name, such as the number of bits in "r24".
_NUMBER = re.compile(r"\d+$")

_MEMBERS = {"name", "configuration", "must_understand"}


@dataclass(frozen=True)
class Definition:
    """The definition of a codec, data type, grid or other extension in a document (C-18).

    Attributes
    ----------
    name : str
        A registered or raw name, or a URI, which is never fetched (C-22, C-23).
    configuration : mapping
        An empty one means the same as none (C-19).
    must_understand : bool
        Whether a reader that doesn't know the name must refuse the node.
    """

    name: str
    configuration: Mapping[str, Any] = field(default_factory=dict)
    must_understand: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return the object form."""
        document: dict[str, Any] = {"name": self.name}
        if self.configuration:
            document["configuration"] = dict(self.configuration)
        if not self.must_understand:
            document["must_understand"] = False
        return document


def parse_definition(value: Any, key: str) -> Definition:
    """Return an extension definition from its JSON: an object, or a name as short-hand.

    Parameters
    ----------
    value : str or dict
        The JSON value.
    key : str
        The name of the member that has this value, for errors.

    Examples
    --------
    >>> parse_definition("int32", "data_type") == parse_definition({"name": "int32"}, "data_type")
    True
    """
    members = {"name": value} if isinstance(value, str) else value
    if not isinstance(members, dict) or not isinstance(members.get("name"), str):
        raise _bad(value, key)
    name = members["name"]
    if not _NAME.fullmatch(name):
        raise _bad_name(name, key)
    settings = members.get("configuration", {})
    must_understand = members.get("must_understand", True)
    if (
        not isinstance(settings, dict)
        or not isinstance(must_understand, bool)
        or not members.keys() <= _MEMBERS
    ):
        raise _bad(value, f"{key} {name}")
    return Definition(name, settings, must_understand)


def members_of(configuration: Any, key: str, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of an extension's configuration, with defaults filled in (C-28).

    Parameters
    ----------
    configuration : mapping or None
        The configuration in a document, if there is one.
    key : str
        What it is the configuration of, for errors.
    defaults : mapping
        The default of every permitted member; ``...`` stands for a required member.
    """
    members = {} if configuration is None else dict(configuration)
    for name in members:
        if name not in defaults:
            expected = ", ".join(defaults) or "none"
            raise MetadataError(
                "unknown member of the configuration", key=key, found=name, expected=expected
            )
    for name, default in defaults.items():
        if members.setdefault(name, default) is ...:
            raise MetadataError("a member of the configuration is missing", key=key, expected=name)
    return members


def is_uri(value: Any) -> bool:
    """Whether a JSON value can name an extension in the v3 draft: a URI, which is never fetched."""
    return isinstance(value, str) and bool(_ANY_URI.match(value))


def _bad(value: Any, key: str) -> MetadataError:
    return MetadataError(
        "invalid extension definition",
        key=key,
        found=value,
        expected='a name, or {"name": ..., "configuration": {...}, "must_understand": ...}',
    )


def _bad_name(name: str, key: str) -> MetadataError:
    kind, colon, level = name.partition(":")
    if colon and kind.isalnum() and level.isdigit():
        configuration = {"name": kind, "configuration": {"level": int(level)}}
        return MetadataError(
            "a name can't contain options; pass an object",
            key=key,
            found=name,
            expected=repr(configuration),
        )
    return MetadataError(
        "invalid name of an extension",
        key=key,
        found=name,
        expected="lower-case letters, digits, '-', '_' and '.', or an http(s) URI",
    )


def find_package(name: str, packages: Mapping[str, str]) -> str | None:
    """Return the package that has an extension, or None if none is known.

    Packages are given by names, and by beginnings of names that end with "_" or ".".

    >>> find_package("imagecodecs_jpeg", {"imagecodecs_": "imagecodecs"})
    'imagecodecs'
    """
    for start, package in packages.items():
        if name == start or (start[-1] in "_." and name.startswith(start)):
            return package
    return None


T = TypeVar("T")


class Registry(Generic[T]):
    """The implementations of one extension point, by name.

    They are built in, registered by the program, or declared as entry points by installed
    packages. One that the program registers replaces another of the same name, and nothing is ever
    fetched because a name is a URL (conformance C-22, B-19).

    Parameters
    ----------
    what : str
        The extension point as errors call it, such as "codec".
    key : str
        The metadata member that has the names, for errors.
    group : str
        The group of entry points.
    built_in : mapping of str to str
        ``module:attribute`` by name; the module is imported at the first use. The attribute is the
        implementation, or a mapping that has it under the name. A name that ends with ``*`` stands
        for all names with a number there.
    provider : callable, optional
        Returns how to get an unknown name, for errors, or None; then errors suggest similar names.
    """

    def __init__(
        self,
        what: str,
        key: str,
        group: str,
        built_in: Mapping[str, str],
        provider: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        self.what = what
        self.key = key
        self.group = group
        self._built_in = built_in
        self._provider = provider
        #: The extensions that the program registered, and the built-in ones that were used.
        self.registered: dict[str, T] = {}

    @cached_property
    def _installed(self) -> "dict[str, EntryPoint]":
        # Read at the first name that is not built in: most programs never need this slow import.
        from importlib.metadata import entry_points

        return {point.name: point for point in entry_points(group=self.group)}

    def register(self, name: str, item: T) -> None:
        """Register an implementation; one that had the same name is replaced."""
        if not _NAME.fullmatch(name):
            raise _bad_name(name, self.key)
        self.registered[name] = item

    def get(self, name: str) -> T | None:
        """Return the implementation with a name, or None if there is none.

        Raises
        ------
        UnsupportedError
            If it belongs to an installed package that can't be imported.
        """
        return self.registered.get(name) or self._load(name)

    def _load(self, name: str) -> T | None:
        built_in = name if name in self._built_in else _NUMBER.sub("*", name)
        if built_in in self._built_in:
            module, _, attribute = self._built_in[built_in].partition(":")
            item = getattr(import_module(module), attribute)
            item = item[name] if isinstance(item, Mapping) else item
            # Another thread may have registered an implementation of this name concurrently.
            return self.registered.setdefault(built_in, item)
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
        """Return the implementation with a name, as `get` does; an unknown name raises an error."""
        item = self.registered.get(name) or self._load(name)
        if item is None:
            raise self.unknown(name)
        return item

    def unknown(self, name: Any) -> UnsupportedError:
        """Return the error for an unknown name, which suggests similar names."""
        names = self.names()
        similar = ", ".join(get_close_matches(str(name), names) or names) or None
        expected = self._provider(str(name)) or similar
        return UnsupportedError(f"unknown {self.what}", key=self.key, found=name, expected=expected)

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted({*self._built_in, *self.registered, *self._installed})
