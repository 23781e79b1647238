"""Check stored units: whether each decodes as a whole, and what is wrong with it if not."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import starmap

from zarrdask.chunks.stored import StoredChunks, StoredValue
from zarrdask.codecs.array_to_bytes.sharding import Shard, shard_of
from zarrdask.codecs.base import Buffer
from zarrdask.codecs.byte_source import PartOfValue, Value
from zarrdask.codecs.pipeline import Pipeline
from zarrdask.dtypes.fill_values import only_fill
from zarrdask.errors import CodecError, StoreError, TruncatedError, ZarrdaskError
from zarrdask.grids.base import Index
from zarrdask.storage.base import Scratch, Store
from zarrdask.storage.retry import is_transient
from zarrdask.storage.shard_index import ShardIndex, is_possible
from zarrdask.storage.v3_draft import real_key

#: What makes a stored unit bad: it can't be read, ends early, or does not decode.
BAD = ("unreadable", "truncated", "corrupt")
#: How many units in a row fail for a transient reason where a store can't be reached.
_UNREACHABLE = 4


@dataclass(frozen=True)
class Problem:
    """Something about one key of a store.

    Attributes
    ----------
    kind : str
        What sort of problem it is, in a word; see `zarrdask.verify`.
    path : str
        Of the node that it belongs to, in the store.
    key : str
        As the store has it.
    message : str
        What is wrong, in words.
    index : tuple of int, optional
        Of the stored unit, if it is one.
    """

    kind: str
    path: str
    key: str
    message: str
    index: Index | None = None

    def __str__(self) -> str:
        return f"{self.kind:<10} {self.key or '/'}: {self.message}"


@dataclass(frozen=True)
class Fault:
    """What is wrong with a stored unit, or with one of the chunks in a shard."""

    kind: str
    message: str


@dataclass(frozen=True)
class Verdict:
    """What a look at one stored unit showed.

    Attributes
    ----------
    size : int or None
        Of what was read, in bytes; None if nothing is stored.
    chunks : int
        How many chunks are stored in it: one, but in a shard.
    empty : bool
        Whether it holds nothing but the fill value.
    faults : tuple of Fault
    failure : StoreError, optional
        The transient failure of the store because of which nothing is known of the unit.
    """

    size: int | None
    chunks: int = 1
    empty: bool = False
    faults: tuple[Fault, ...] = ()
    failure: StoreError | None = None

    @property
    def is_bad(self) -> bool:
        """Whether the unit, or a part of it, can't be read as what was written."""
        return any(fault.kind in BAD for fault in self.faults)


@dataclass(frozen=True)
class Tally:
    """What was found of some units of an array.

    Attributes
    ----------
    stored, missing, fill_only : int
        How many units are stored, are not, and hold only the fill value.
    chunks : int
        How many chunks are stored: in shards, those that their indices name.
    size : int
        In bytes, encoded.
    problems : tuple of Problem
    """

    stored: int = 0
    missing: int = 0
    fill_only: int = 0
    chunks: int = 0
    size: int = 0
    problems: tuple[Problem, ...] = field(default=())

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            self.stored + other.stored,
            self.missing + other.missing,
            self.fill_only + other.fill_only,
            self.chunks + other.chunks,
            self.size + other.size,
            (*self.problems, *other.problems),
        )


def check_units(chunks: StoredChunks, indices: Sequence[Index], *, every: bool = False) -> Tally:
    """Look at some units of an array.

    A bad unit is read once more: it may have been about to be written. A unit that the store fails
    to give, also after retries, is reported as unreadable, and the others are looked at.

    Parameters
    ----------
    chunks : Chunks
    indices : sequence of tuple of int
        Of the units.
    every : bool
        Whether units that are missing, or hold only the fill value, are listed, too.

    Raises
    ------
    StoreError
        If the store can't be reached: several units in a row fail for a transient reason.
    """
    total, problems, failures = Tally(), list[Problem](), 0
    for index, seen in zip(indices, _verdicts(chunks, indices), strict=True):
        # What failed for a transient reason was retried already.
        verdict = _look(chunks, index) if seen.is_bad and seen.failure is None else seen
        failures = 0 if verdict.failure is None else failures + 1
        if verdict.failure is not None and failures == _UNREACHABLE:
            raise verdict.failure
        total += _tally(verdict)
        faults = [*verdict.faults, *(_ordinary(verdict) if every else ())]
        problems += [problem(chunks, index, fault) for fault in faults]
    return total + Tally(problems=tuple(problems))


def _tally(verdict: Verdict) -> Tally:
    if verdict.size is None and not verdict.faults:
        return Tally(missing=1)
    return Tally(1, 0, int(verdict.empty), verdict.chunks, verdict.size or 0)


def _ordinary(verdict: Verdict) -> Iterator[Fault]:
    """Yield what is no fault of a unit, but may be of interest."""
    if verdict.size is None and not verdict.faults:
        yield Fault("missing", "not stored: it reads as the fill value")
    elif verdict.empty:
        yield Fault("fill-only", "it holds only the fill value")


def problem(chunks: StoredChunks, index: Index, fault: Fault) -> Problem:
    """Return what is wrong with a unit, with the place where it is."""
    path, key = chunks.prefix.rstrip("/"), real_key(chunks.store, chunks.key(index))
    return Problem(fault.kind, path, key, fault.message, tuple(index))


def check_unit(chunks: StoredChunks, index: Index) -> Verdict:
    """Look at one unit.

    Raises
    ------
    StoreError
        If the store fails for a transient reason: nothing is known of the unit then.
    """
    verdict = _look(chunks, index)
    if verdict.failure is not None:
        raise verdict.failure
    return verdict


def _look(chunks: StoredChunks, index: Index) -> Verdict:
    pipeline, key = chunks.metadata.pipeline_at(index), chunks.key(index)
    shard = shard_of(pipeline)
    try:
        if shard is not None:
            return _check_shard(shard, StoredValue(chunks.units, key, Scratch()))
        data = chunks.units.get(key)
    except StoreError as error:
        return _unreadable(error)
    return Verdict(None) if data is None else _check_chunk(pipeline, data)


def _verdicts(chunks: StoredChunks, indices: Sequence[Index]) -> Iterator[Verdict]:
    if chunks.metadata.shard is not None:
        yield from (_look(chunks, index) for index in indices)
        return
    keys = [chunks.key(index) for index in indices]
    for index, value in zip(indices, _values(chunks.units, keys), strict=True):
        if isinstance(value, StoreError):
            yield _unreadable(value)
        elif value is None:
            yield Verdict(None)
        else:
            yield _check_chunk(chunks.metadata.pipeline_at(index), value)


def _values(store: Store, keys: list[str]) -> Iterator[Buffer | StoreError | None]:
    """Yield each key's value, or the error for it; one is valid until the next is asked for."""
    at, scratch = 0, Scratch()
    while at < len(keys):
        values = iter(store.get_many(keys[at:], scratch))
        while at < len(keys):
            try:
                value: Buffer | StoreError | None = next(values)
            except StoreError as error:
                value = error
            at += 1
            yield value
            if isinstance(value, StoreError):
                break


def _unreadable(error: StoreError) -> Verdict:
    failure = error if is_transient(error) else None
    return Verdict(None, 0, faults=(Fault("unreadable", str(error)),), failure=failure)


def _check_chunk(pipeline: Pipeline, data: Buffer) -> Verdict:
    """Decode a chunk, and see what it holds."""
    size = len(data)
    wanted = pipeline.encoded_size
    if size < (1 if wanted is None else wanted):
        least = "more" if wanted is None else f"{wanted} bytes"
        text = f"the value is cut off; found {size} bytes; expected {least}"
        return Verdict(size, faults=(Fault("truncated", text),))
    try:
        chunk = pipeline.decode(data)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a codec of somebody's own may raise anything
        return Verdict(size, faults=(_fault(error),))
    return Verdict(size, empty=only_fill(chunk, pipeline.spec.fill_value))


def _fault(error: Exception) -> Fault:
    text = str(error) if isinstance(error, ZarrdaskError) else f"{type(error).__name__}: {error}"
    return Fault("truncated" if isinstance(error, TruncatedError) else "corrupt", text)


# --------------------------------------------------------------------------------------------
# Shards


def _check_shard(shard: Shard, value: Value) -> Verdict:
    """Decode every chunk of a shard, one after another: it may be larger than the memory."""
    try:
        index = shard.read_index(value)
    except CodecError as error:
        return Verdict(0, 0, faults=(_fault(error),))
    if index is None:
        return Verdict(None)
    places, faults = _placed(index)
    faults += _overlaps(shard, places)
    ranges = [(start, size) for start, size, _ in places]
    nested = shard_of(shard.chunks)
    if nested is None:
        looks: Iterable[Verdict] = map(
            _check_part, [shard] * len(places), value.parts(ranges), ranges
        )
    else:
        parts = starmap(PartOfValue, ((value, start, size) for start, size in ranges))
        looks = (_check_shard(nested, part) for part in parts)
    size, chunks, empty = shard.index_size, 0, not faults
    for look, (_, _, name) in zip(looks, places, strict=True):
        size, chunks, empty = size + (look.size or 0), chunks + look.chunks, empty and look.empty
        faults += [Fault(f.kind, f"inner chunk {name}: {f.message}") for f in look.faults]
    return Verdict(size, chunks, empty, tuple(faults))


def _check_part(shard: Shard, data: Buffer | None, place: tuple[int, int]) -> Verdict:
    found, (start, size) = 0 if data is None else len(data), place
    if data is None or found != size:
        text = (
            f"the index of the shard points outside it, to bytes {start} to {start + size}; "
            f"found {found} bytes; expected {size} bytes"
        )
        return Verdict(found, faults=(Fault("truncated", text),))
    return _check_chunk(shard.chunks, data)


Place = tuple[int, int, Index]


def _placed(index: ShardIndex) -> tuple[list[Place], list[Fault]]:
    """Return where chunks are in a shard, by rising start, and entries that can't be."""
    places, faults = list[Place](), list[Fault]()
    for name, (start, size) in index.unchecked():
        if is_possible((start, size)):
            places.append((start, size, name))
        else:
            text = f"inner chunk {name}: an impossible entry in the index; found {(start, size)}"
            faults.append(Fault("corrupt", text))
    return sorted(places), faults


def _overlaps(shard: Shard, places: list[Place]) -> list[Fault]:
    """Return which chunks share bytes, with others or with an index before them (S-8)."""
    faults, last = list[Fault](), "the index"
    end = shard.index_size if shard.codec.index_location == "start" else 0
    for start, size, name in places:
        if start < end and size:
            text = f"inner chunk {name}: bytes {start} to {start + size} are also of {last}"
            faults.append(Fault("overlap", text))
        if start + size > end:
            end, last = start + size, f"inner chunk {name}"
    return faults
