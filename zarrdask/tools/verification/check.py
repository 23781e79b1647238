"""Check that each stored unit (a chunk or shard) can be read and decoded, and describe faults.

A unit is what one key of a store holds: a chunk, or a shard.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import starmap
from operator import add
from typing import NamedTuple

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.display.report import Displayed
from zarrdask.errors import CodecError, StoreError, TruncatedError, ZarrdaskError
from zarrdask.formats.byte_ranges import Buffer, Value
from zarrdask.formats.codecs.array_to_bytes.sharding import Shard, shard_of
from zarrdask.formats.codecs.byte_source import PartOfValue
from zarrdask.formats.codecs.pipeline import Pipeline
from zarrdask.formats.codecs.shard_index import ShardIndex
from zarrdask.formats.dtypes.fill_values import only_fill
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.remote.failures import is_transient
from zarrdask.storage.zarr.draft_store import layout_of

#: The kinds of problems that make a unit bad: it can't be read, ends early, or does not decode.
BAD_KINDS = ("unreadable", "truncated", "corrupt")
#: How many units in a row may fail with transient errors before the store counts as unreachable.
_MAX_TRANSIENT_FAILURES = 4


@dataclass(frozen=True)
class Problem(Displayed):
    """A problem, or a remark, about one key of a store.

    Attributes
    ----------
    kind : str
        The kind of problem, such as "corrupt"; see `VerifyReport`.
    path : str
        The path of the node that the key belongs to.
    key : str
        The key in the store.
    message : str
        A description of the problem.
    index : tuple of int, optional
        The index of the chunk or shard, if the key holds one.
    """

    kind: str
    path: str
    key: str
    message: str
    index: Index | None = None

    def _text(self) -> str:
        return f"{self.kind:<10} {self.key or '/'}: {self.message}"


#: The kind and the message of a problem of a unit, or of one chunk in a shard.
Fault = tuple[str, str]


@dataclass(frozen=True)
class Verdict:
    """The result of checking one unit."""

    #: The bytes that were read; None if the unit is not stored.
    size: int | None
    #: The number of chunks that are stored in the unit: one, unless it is a shard.
    chunks: int = 1
    #: Whether the unit holds only the fill value.
    empty: bool = False
    #: The problems of the unit.
    faults: tuple[Fault, ...] = ()
    #: The transient error of the store that prevented the check of the unit.
    failure: StoreError | None = None

    @property
    def is_bad(self) -> bool:
        """Whether the unit, or a part of it, can't be read."""
        return any(kind in BAD_KINDS for kind, _ in self.faults)


class Tally(NamedTuple):
    """The counts and the problems of some units of an array."""

    stored: int = 0
    missing: int = 0
    fill_only: int = 0
    chunks: int = 0
    size: int = 0
    problems: tuple[Problem, ...] = ()

    def __add__(self, other: "Tally") -> "Tally":  # type: ignore[override]
        return Tally(*map(add, self, other))


def check_units(chunks: StoredChunks, indices: Sequence[Index], *, every: bool = False) -> Tally:
    """Check some units of an array.

    A bad unit is read a second time, as a writer may have been replacing it. If the store fails to
    return a unit, even after retries, the unit is unreadable, and the check continues.
    """
    path, total, problems, failures = chunks.prefix.rstrip("/"), Tally(), list[Problem](), 0
    for index, first in zip(indices, _verdicts(chunks, indices), strict=True):
        # The store has already retried requests that failed with transient errors.
        verdict = _verdict(chunks, index) if first.is_bad and first.failure is None else first
        failures = 0 if verdict.failure is None else failures + 1
        if verdict.failure is not None and failures == _MAX_TRANSIENT_FAILURES:
            raise verdict.failure
        is_missing, faults = verdict.size is None and not verdict.faults, [*verdict.faults]
        if is_missing:
            total += Tally(missing=1)
        else:
            total += Tally(1, 0, int(verdict.empty), verdict.chunks, verdict.size or 0)
        if every and is_missing:
            faults.append(("missing", "not stored: it reads as the fill value"))
        elif every and verdict.empty:
            faults.append(("fill-only", "it holds only the fill value"))
        key = layout_of(chunks.store).real(chunks.key(index))
        problems += [Problem(kind, path, key, text, tuple(index)) for kind, text in faults]
    return total + Tally(problems=tuple(problems))


def check_unit(chunks: StoredChunks, index: Index) -> Verdict:
    """Check one unit."""
    verdict = _verdict(chunks, index)
    if verdict.failure is not None:
        raise verdict.failure
    return verdict


def _verdict(chunks: StoredChunks, index: Index) -> Verdict:
    pipeline, key = chunks.metadata.pipeline_at(index), chunks.key(index)
    shard = shard_of(pipeline)
    try:
        if shard is not None:
            with chunks.units.reading(key, Scratch()) as value:
                return _check_shard(shard, value)
        data = chunks.units.get(key)
    except StoreError as error:
        return _unreadable(error)
    return Verdict(None) if data is None else _check_chunk(pipeline, data)


def _verdicts(chunks: StoredChunks, indices: Sequence[Index]) -> Iterator[Verdict]:
    if chunks.metadata.shard is not None:
        yield from (_verdict(chunks, index) for index in indices)
        return
    done, scratch = 0, Scratch()
    while done < len(indices):
        left = indices[done:]
        values = chunks.units.get_many([chunks.key(index) for index in left], scratch)
        try:
            for index, value in zip(left, values, strict=True):
                done += 1
                pipeline = chunks.metadata.pipeline_at(index)
                yield Verdict(None) if value is None else _check_chunk(pipeline, value)
        except StoreError as error:
            done += 1
            yield _unreadable(error)


def _unreadable(error: StoreError) -> Verdict:
    failure = error if is_transient(error) else None
    return Verdict(None, 0, faults=(("unreadable", str(error)),), failure=failure)


def _check_chunk(pipeline: Pipeline, data: Buffer) -> Verdict:
    """Decode a chunk, and check whether it holds only the fill value."""
    size, expected_size = len(data), pipeline.encoded_size
    if size < (1 if expected_size is None else expected_size):
        expected = "more" if expected_size is None else f"{expected_size} bytes"
        text = f"the value is truncated; found {size} bytes; expected {expected}"
        return Verdict(size, faults=(("truncated", text),))
    try:
        chunk = pipeline.decode_counted(data)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - codecs that users register may raise anything
        return Verdict(size, faults=(_fault(error),))
    return Verdict(size, empty=only_fill(chunk, pipeline.spec.fill_value))


def _fault(error: Exception) -> Fault:
    text = str(error) if isinstance(error, ZarrdaskError) else f"{type(error).__name__}: {error}"
    return "truncated" if isinstance(error, TruncatedError) else "corrupt", text


# --------------------------------------------------------------------------------------------
# Shards


def _check_shard(shard: Shard, value: Value) -> Verdict:
    """Decode the chunks of a shard one after another: the shard may be larger than the memory."""
    try:
        index = shard.read_index(value)
    except CodecError as error:
        return Verdict(0, 0, faults=(_fault(error),))
    if index is None:
        return Verdict(None)
    places, faults = _chunk_places(index)
    faults += _overlaps(shard, places)
    ranges = [(start, size) for start, size, _ in places]
    nested = shard_of(shard.chunks)
    if nested is None:
        verdicts: Iterable[Verdict] = map(
            _check_inner_chunk, [shard] * len(places), value.parts(ranges), ranges
        )
    else:
        parts = starmap(PartOfValue, ((value, start, size) for start, size in ranges))
        verdicts = (_check_shard(nested, part) for part in parts)
    size, chunks, empty = shard.index_size, 0, not faults
    for verdict, (_, _, name) in zip(verdicts, places, strict=True):
        size, chunks = size + (verdict.size or 0), chunks + verdict.chunks
        empty = empty and verdict.empty
        faults += [(kind, f"inner chunk {name}: {text}") for kind, text in verdict.faults]
    return Verdict(size, chunks, empty, tuple(faults))


def _check_inner_chunk(shard: Shard, data: Buffer | None, place: tuple[int, int]) -> Verdict:
    length, (start, size) = 0 if data is None else len(data), place
    if data is None or length != size:
        text = (
            f"the index of the shard points outside it, to bytes {start} to {start + size}; "
            f"found {length} bytes; expected {size} bytes"
        )
        return Verdict(length, faults=(("truncated", text),))
    return _check_chunk(shard.chunks, data)


#: The start, the size and the index of an inner chunk.
Place = tuple[int, int, Index]


def _chunk_places(index: ShardIndex) -> tuple[list[Place], list[Fault]]:
    """Return the byte ranges of the chunks in a shard, sorted by start, and invalid entries."""
    places, faults = list[Place](), list[Fault]()
    for name, (start, size), is_possible in index.unchecked():
        if is_possible:
            places.append((start, size, name))
        else:
            text = f"inner chunk {name}: invalid entry in the shard index; found {(start, size)}"
            faults.append(("corrupt", text))
    return sorted(places), faults


def _overlaps(shard: Shard, places: list[Place]) -> list[Fault]:
    """Return the chunks that share bytes with other chunks or with the index (S-8)."""
    faults, last = list[Fault](), "the index"
    end = shard.index_size if shard.codec.index_location == "start" else 0
    for start, size, name in places:
        if start < end and size:
            text = f"inner chunk {name}: bytes {start} to {start + size} also belong to {last}"
            faults.append(("overlap", text))
        if start + size > end:
            end, last = start + size, f"inner chunk {name}"
    return faults
