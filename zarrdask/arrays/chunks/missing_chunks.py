"""How missing chunks are read: as the fill value, or as an error."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeVar

from zarrdask import config
from zarrdask.errors import ChunkNotFoundError, MetadataError, one_of
from zarrdask.formats.grids.chunk_grid import Index

T = TypeVar("T")

#: How missing chunks are read: as the fill value, or by raising an error.
Missing = Literal["fill", "error"]


def chosen_missing(missing: Missing | None) -> Missing | None:
    """Return how a user wants missing chunks to be read: `missing`, or by default the setting.

    None stands for the setting at the time of the read: opening an array imports no Dask for it.
    """
    if missing is None:
        return config.get("missing") if config.is_set() else None
    return one_of(missing, "missing", ("fill", "error"))  # type: ignore[no-any-return]


def check_skipping(missing: Missing | None) -> None:
    """Raise an error if the user wants to skip missing chunks, but they raise errors."""
    if missing == "error":
        raise MetadataError(
            "skip_missing=True reads missing chunks as the fill value, but they raise errors",
            key="missing",
            found="error",
            expected='missing="fill"',
        )


def stored_only(
    values: Iterable[T | None], names: Sequence[str], indices: Sequence[Index]
) -> Iterator[T]:
    """Yield the values of chunks, by name and index; raise an error for the first missing one."""
    for value, name, index in zip(values, names, indices, strict=True):
        if value is None:
            raise ChunkNotFoundError.of("chunk", index).within(name)
        yield value
