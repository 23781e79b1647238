"""The user's attributes of a node: a mapping whose changes are stored immediately."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from copy import deepcopy
from typing import Any

#: Returns the attributes of a node after a change, given those before.
Change = Callable[[Mapping[str, Any]], dict[str, Any]]


class Attributes(MutableMapping[str, Any]):
    """The user's attributes of an array or a group.

    Each change writes the documents of the node once; `update` and `put` are a single change.

    Parameters
    ----------
    load : callable
        Returns all attributes.
    save : callable
        Takes a function that returns the new attributes, given those that are stored at present:
        another writer may have changed some. It raises an error if the node was opened for reading
        only.
    """

    def __init__(
        self, load: Callable[[], Mapping[str, Any]], save: Callable[[Change], None]
    ) -> None:
        self._load = load
        self._save = save

    def __getitem__(self, name: str) -> Any:
        # A copy, as changes inside the value would not be stored.
        return deepcopy(self._load()[name])

    def __setitem__(self, name: str, value: Any) -> None:
        self._save(lambda stored: {**stored, name: value})

    def __delitem__(self, name: str) -> None:
        if name not in self._load():
            raise KeyError(name)
        self._save(lambda stored: {key: stored[key] for key in stored if key != name})

    def __iter__(self) -> Iterator[str]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())

    def update(self, *args: Any, **names: Any) -> None:
        """Set several attributes in one write; the arguments are those of `dict`."""
        changed = dict(*args, **names)
        self._save(lambda stored: {**stored, **changed})

    def put(self, attributes: Mapping[str, Any]) -> None:
        """Replace all attributes by others in one write."""
        self._save(lambda _: dict(attributes))

    def asdict(self) -> dict[str, Any]:
        """Return a copy of all attributes as a dict."""
        return deepcopy(dict(self._load()))

    def __repr__(self) -> str:
        return repr(dict(self._load()))
