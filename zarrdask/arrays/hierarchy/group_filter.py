"""Choose groups of a hierarchy by glob patterns of their paths. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from zarrdask.errors import MetadataError

#: The characters that make a name a pattern.
_MAGIC = frozenset("*?[")


@dataclass(frozen=True)
class GroupFilter:
    """The groups whose paths match one of some patterns.

    In a pattern, ``*``, ``?`` and ``[...]`` stand for characters of one name, and the name ``**``
    for any number of names. Paths are relative to the group that is opened.

    Attributes
    ----------
    patterns : tuple of tuple of str
        The names that each pattern consists of.
    """

    patterns: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, patterns: "str | Iterable[str] | GroupFilter") -> "GroupFilter":
        """Return the filter of one pattern or several.

        >>> each = GroupFilter.of("/*/sweep_0")
        >>> each.accepts("a/sweep_0"), each.accepts("a"), each.leads_to("a")
        (True, False, True)
        >>> each.next_names("a"), each.next_names("")
        (frozenset({'sweep_0'}), None)

        Raises
        ------
        MetadataError
            If a pattern is not text.
        """
        if isinstance(patterns, GroupFilter):
            return patterns
        is_one = isinstance(patterns, str) or not isinstance(patterns, Iterable)
        texts: list[Any] = [patterns] if is_one else [*patterns]
        if not texts or not all(isinstance(text, str) for text in texts):
            raise MetadataError(
                "a filter of groups must be a pattern or a list of patterns",
                key="group_filter",
                found=patterns,
                expected='a text such as "/*/sweep_0", or a list of them',
            )
        return cls(tuple(tuple(name for name in text.split("/") if name) for text in texts))

    def accepts(self, path: str) -> bool:
        """Whether a group is one of the chosen ones."""
        names = _names(path)
        return any(_matches(pattern, names) for pattern in self.patterns)

    def leads_to(self, path: str) -> bool:
        """Whether chosen groups may be below a group."""
        names = _names(path)
        return any(any(_rests(pattern, names)) for pattern in self.patterns)

    def may_have(self, path: str) -> bool:
        """Whether a group is one of the chosen ones, or may have some below it."""
        return self.accepts(path) or self.leads_to(path)

    def below(self, path: str) -> "GroupFilter":
        """Return the filter of the groups below a group, whose paths are relative to it."""
        names = _names(path)
        rests = {rest for pattern in self.patterns for rest in _rests(pattern, names)}
        return GroupFilter(tuple(sorted(rests)))

    def next_names(self, path: str) -> frozenset[str] | None:
        """Return the names that members of a group may have on the way to chosen groups.

        None, if they follow from a listing only.
        """
        names = _names(path)
        heads = {rest[0] for each in self.patterns for rest in _rests(each, names) if rest}
        return None if any(_MAGIC & {*head} for head in heads) else frozenset(heads)

    def paths_below(self, names: Iterable[str]) -> "Iterator[tuple[str, bool]]":
        """Yield the paths to read, as far as they follow from the names of members.

        With each comes whether the members of the group there have to be listed.

        >>> list(GroupFilter.of("/*/sweep_0").paths_below(["a", "b"]))
        [('a', False), ('a/sweep_0', True), ('b', False), ('b/sweep_0', True)]
        """
        for name in filter(self.may_have, names):
            below = self.below(name)
            following = None if below.accepts("") else below.next_names("")
            yield name, following is None
            for path, is_listed in below.paths_below(sorted(following or ())):
                yield f"{name}/{path}", is_listed


def _names(path: str) -> tuple[str, ...]:
    return tuple(path.split("/")) if path else ()


def _matches(pattern: tuple[str, ...], names: tuple[str, ...]) -> bool:
    """Whether a pattern matches all of some names."""
    return any(all(name == "**" for name in rest) for rest in _rests(pattern, names))


def _rests(pattern: tuple[str, ...], names: tuple[str, ...]) -> set[tuple[str, ...]]:
    """Return the possible rests of a pattern after it has matched some names."""
    rests = {pattern}
    for name in names:
        rests = {after for rest in rests for after in _after(rest, name)}
    return rests


def _after(pattern: tuple[str, ...], name: str) -> set[tuple[str, ...]]:
    """Return the possible rests of a pattern after it has matched a name."""
    if not pattern:
        return set()
    if pattern[0] == "**":
        return {pattern} | _after(pattern[1:], name)
    return {pattern[1:]} if fnmatchcase(name, pattern[0]) else set()
