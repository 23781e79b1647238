"""What is computed together: writes of the same elements are refused, finished appends left out.

That is seen where it is known: when Dask has merged the graphs of one ``dask.compute``, and is
about to optimise them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from dask._task_spec import DataNode, convert_legacy_graph, cull
from dask.context import globalmethod
from dask.core import flatten
from dask.delayed import Delayed, delayed, optimize

from zarrdask.errors import SelectionError
from zarrdask.indexing import Region

#: What is done when blocks are written.
Action = Callable[[], object]


class Part(NamedTuple):
    """A part of a stored array that a write covers.

    Attributes
    ----------
    place : str
        Where the array's chunks are, as `zarrdask.locks.place_of` tells it.
    location : str
        Of the array, for people.
    region : tuple of slice
        Which part.
    """

    place: str
    location: str
    region: Region

    def __str__(self) -> str:
        return f"[{', '.join(f'{pick.start}:{pick.stop}' for pick in self.region)}]"

    @property
    def start(self) -> int:
        """Where it begins along the first axis."""
        return self.region[0].start if self.region else 0

    def overlaps(self, other: "Part") -> bool:
        """Whether it has elements in common with another part of what is at this place.

        An array and one of other axes that replaces it have.
        """
        return len(self.region) != len(other.region) or all(
            max(a.start, b.start) < min(a.stop, b.stop)
            for a, b in zip(self.region, other.region, strict=True)
        )


def overlapping(parts: Iterable[Part]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of those parts that have elements in common, two at a time.

    >>> parts = [Part("a/", "a", (slice(at, at + 4),)) for at in (0, 4, 7)]
    >>> list(overlapping(parts))
    [(1, 2)]
    """
    numbered = sorted(enumerate(parts), key=lambda each: (each[1].place, each[1].start))
    for _, group in groupby(numbered, lambda each: each[1].place):
        met: list[tuple[int, Part]] = []
        for number, part in group:
            met = [
                each for each in met if not each[1].region or each[1].region[0].stop > part.start
            ]
            yield from (_ordered(n, number) for n, other in met if other.overlaps(part))
            met.append((number, part))


def _ordered(one: int, other: int) -> tuple[int, int]:
    return min(one, other), max(one, other)


def check_apart(parts: Sequence[Part]) -> None:
    """Check that no two writes that are computed together have elements in common.

    Raises
    ------
    SelectionError
        If two have.
    """
    for one, other in overlapping(parts):
        raise _refused(parts[one], parts[other])


def _refused(one: Part, other: Part) -> SelectionError:
    return SelectionError(
        "two writes that are computed together have elements in common, and nothing tells which "
        "of them comes last; compute one after the other",
        key=one.location,
        found=f"{one} and {other}",
        expected="regions that do not overlap",
    )


# --------------------------------------------------------------------------------------------
# Graphs


class Finish:
    """The last task of writes: it stands for all of them, and does what is done afterwards.

    Parameters
    ----------
    commits : sequence of callable
        What is done.
    parts : sequence of Part
        What the writes cover.
    """

    # No tuple or dataclass: Dask would look into it.

    def __init__(self, commits: Sequence[Action | None], parts: Sequence[Part]) -> None:
        self.commits = [commit for commit in commits if commit is not None]
        self.parts = parts

    def __call__(self, *receipts: Any) -> None:
        """Do it: the task."""
        for commit in self.commits:
            commit()

    @property
    def is_done(self) -> bool:
        """Whether it is known that this was done, and is not to be done again."""
        return bool(self.commits) and all(getattr(c, "is_done", False) for c in self.commits)


def _optimized(dsk: Mapping[Any, Any], keys: Any, **options: Any) -> Any:
    """Optimise the merged graphs of writes, checked."""
    finishes = {
        key: task.func for key, task in dsk.items() if isinstance(getattr(task, "func", 0), Finish)
    }
    wanted = set(flatten(keys if isinstance(keys, list | set) else [keys]))
    _check_finishes(dsk, wanted, finishes)
    # What was appended already is not computed and written again, unless that is asked for.
    done = {key for key, finish in finishes.items() if finish.is_done and key not in wanted}
    if done:
        dsk = dict(dsk) | {key: DataNode(key, None) for key in done}
    return optimize(dsk, keys, **options)


def _check_finishes(
    dsk: Mapping[Any, Any], wanted: set[Any], finishes: Mapping[Any, Finish]
) -> None:
    """Check writes, given their last tasks, as far as something wanted comes of them."""
    found = [(key, part) for key, finish in finishes.items() for part in finish.parts]
    pairs = list(overlapping(part for _, part in found))
    needed = cull(convert_legacy_graph(dict(dsk)), wanted) if pairs else {}
    for one, other in pairs:
        (first, part), (second, another) = found[one], found[other]
        if first in needed and second in needed:
            raise _refused(part, another)


class Writing(Delayed):  # type: ignore[misc]
    """Writes, as one thing to compute."""

    __dask_optimize__ = globalmethod(_optimized, key="delayed_optimize")

    @classmethod
    def after(cls, finish: Finish, receipts: Iterable[Any], name: str) -> "Writing":
        """Return what computes receipts, then does what is done afterwards."""
        made = delayed(finish, pure=False, traverse=False)(*receipts, dask_key_name=name)
        return cls(made.key, made.dask)

    def _rebuild(self, dsk: Any, *, rename: Any = None) -> "Writing":
        found = super()._rebuild(dsk, rename=rename)
        return type(self)(found.key, found.dask, layer=found._layer)
