"""One case: a damaged store, what is done with it, and what may come of that."""

import json
import re
from dataclasses import dataclass
from functools import cache
from math import prod
from random import Random
from typing import Any

import dask.config
import numpy as np

import zarrdask
from tests.fuzz import corpus, mutate
from tests.fuzz.corpus import Member, Values
from zarrdask import ZarrdaskError

#: Arrays with more elements or chunks than this are read at their corners only.
MOST = 2**18
#: Codecs that notice any damage to what is stored; sums of 32 bits that are weaker stand apart.
CHECKED = ("crc32c", "crc32", "gzip", "bz2", "lzma")
CHECKED_FOR_FLIPS = ("adler32", "fletcher32", "jenkins_lookup3")


#: What does not keep the values that it is given: part of a codec's name.
LOSSY = ("quantize", "bitround", "scale", "cast_value", "astype", "zfp", "categorize")


class WrongError(Exception):
    """Damage was not noticed, or zarrdask contradicts itself."""


@dataclass(frozen=True)
class Case:
    """A damaged store.

    Attributes
    ----------
    member : Member
        The array that is opened.
    key : str
        What is damaged.
    damage : str
        How.
    value : bytes
        What it was replaced with.
    """

    seed: int
    member: Member
    key: str
    damage: str
    value: bytes

    @property
    def store(self) -> Values:
        return {**corpus.stores()[self.member.store], self.key: self.value}

    @property
    def is_data(self) -> bool:
        return self.key in self.member.data

    def __str__(self) -> str:
        shown = self.value.hex() if self.is_data else repr(self.value)
        shown = shown if len(shown) < 4000 else f"{shown[:2000]} ... {shown[-200:]}"
        where = f"{self.member.store}: {self.key} of {self.member.path or 'the root'}"
        return f"seed {self.seed}: {where}: {self.damage}\n{shown}"


def make(seed: int) -> Case:
    """Return the case of a seed."""
    random = Random(seed)
    member = random.choice(corpus.members())
    values = corpus.stores()[member.store]
    if member.data and random.random() < 0.5:
        key = random.choice(member.data)
        damage, value = mutate.damage_bytes(values[key], random, chunks())
    else:
        near = [key for key in values if key.endswith((".zattrs", ".zgroup", "zarr.json", ".json"))]
        key = random.choice(near) if near and random.random() < 0.1 else member.document
        if random.random() < 0.85:
            damage, value = mutate.damage_document(values[key], random, documents())
        else:
            damage, value = mutate.damage_text(values[key], random, chunks())
    return Case(seed, member, key, damage, value)


@cache
def chunks() -> list[bytes]:
    return [
        corpus.stores()[member.store][key] for member in corpus.members() for key in member.data
    ]


@cache
def documents() -> list[Any]:
    return [json.loads(corpus.stores()[m.store][m.document]) for m in corpus.members()]


@cache
def undamaged(member: Member) -> np.ndarray | None:
    """Return an array's values, or None if it can't be read."""
    try:
        return np.asarray(
            zarrdask.open_array(dict(corpus.stores()[member.store]), member.path)[...]
        )
    except ZarrdaskError:
        return None


# --------------------------------------------------------------------------------------------
# What is done


def run(case: Case) -> str:
    """Do one thing with a damaged store, and return how it ended.

    Raises
    ------
    Exception
        Anything but a ZarrdaskError: that is what is looked for.
    """
    random = Random(-case.seed)
    expected = undamaged(case.member) if case.is_data else None
    name = random.choice(["read", "read", "read", *ACTIONS])
    try:
        ACTIONS[name](case, random, expected)
    except ZarrdaskError as error:
        str(error)
        return f"{name}: {type(error).__name__}"
    return f"{name}: ok"


def unit_size(case: Case) -> int:
    """Return the bytes of a chunk, or shard, as the damaged metadata has it: 0 if it has none."""
    try:
        z = zarrdask.open_array(case.store, case.member.path)
    except ZarrdaskError:
        return 0
    return prod(n for n in z.shards or z.chunks if isinstance(n, int)) * z.dtype.itemsize


def is_small(z: Any) -> bool:
    return z.size <= MOST and z.nchunks <= MOST and z.nbytes <= 64 * MOST


def corners(z: Any) -> list[tuple[slice, ...]]:
    return [tuple(slice(0, 2) for _ in z.shape), tuple(slice(-1, None) for _ in z.shape)]


def look(z: Any) -> None:
    """Ask for everything that there is to know of an array."""
    repr(z), dict(z.attrs), z.fill_value, z.dimension_names, z.zarr_format, z.shards, z.nbytes
    if len(z.chunks) != z.ndim:
        raise WrongError(f"chunks {z.chunks} of an array of shape {z.shape}")


def read(case: Case, random: Random, expected: np.ndarray | None) -> None:
    z = zarrdask.open_array(case.store, case.member.path)
    look(z)
    if not is_small(z):
        for corner in corners(z):
            z[corner]
        return
    found = z[...]
    compare(case, z, np.asarray(found), expected)


def compare(case: Case, z: Any, found: np.ndarray, expected: np.ndarray | None) -> None:
    """Check that damage to one chunk is seen, or does no harm elsewhere."""
    if (found.shape, found.dtype) != (z.shape, z.dtype):
        raise WrongError(f"{found.shape} {found.dtype} of an array {z.shape} {z.dtype}")
    if expected is None:
        return
    if (found.shape, found.dtype) != (expected.shape, expected.dtype):
        raise WrongError(f"{found.shape} {found.dtype}, not {expected.shape} {expected.dtype}")
    outside = np.ones(found.shape, bool)
    if not is_checked(case):
        outside[extent(case, z)] = False
    if not same(found[outside], expected[outside]):
        raise WrongError("wrong values" if is_checked(case) else "wrong values in another chunk")


def same(found: np.ndarray, expected: np.ndarray) -> bool:
    if found.dtype.kind == "b":
        return np.array_equal(found, expected)  # any byte but 0 is true
    if found.dtype.hasobject:
        return repr(found.tolist()) == repr(expected.tolist())
    return found.tobytes() == expected.tobytes()


def extent(case: Case, z: Any) -> tuple[slice, ...]:
    """Return what the damaged chunk or shard holds."""
    index = [int(n) for n in re.findall(r"\d+", case.key.removeprefix(case.member.prefix))]
    unit = z.shards or z.chunks
    if len(index) != z.ndim or not all(isinstance(n, int) for n in unit):
        return (slice(None),) * z.ndim
    return tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, unit, strict=True))


def is_checked(case: Case) -> bool:
    """Whether a checksum covers everything that is stored, and no other chunk is there instead."""
    if case.damage == "swap":
        return False
    document = json.loads(corpus.stores()[case.member.store][case.member.document])
    if "codecs" in document:
        return covers(document["codecs"], case)
    chain = [*(document.get("filters") or []), document.get("compressor") or {}]
    return any(covers_codec(codec.get("id"), codec, case) for codec in chain)


def covers(codecs: list[Any], case: Case) -> bool:
    return any(
        covers_codec(codec["name"], codec.get("configuration", {}), case)
        for codec in codecs
        if isinstance(codec, dict)
    )


def covers_codec(name: Any, options: Any, case: Case) -> bool:
    if name == "sharding_indexed":
        return covers(options["codecs"], case) and covers(options["index_codecs"], case)
    if name == "zstd":
        return bool(options.get("checksum"))
    return name in CHECKED or (case.damage == "flip" and name in CHECKED_FOR_FLIPS)


def keeps_values(case: Case) -> bool:
    """Whether values that are read and written again must be the same."""
    document = case.store[case.member.document]
    return not any(name.encode() in document for name in LOSSY)


def through_dask(case: Case, random: Random, expected: np.ndarray | None) -> None:
    z = zarrdask.open_array(case.store, case.member.path)
    x = zarrdask.from_zarr(z, chunks=random.choice(["auto", "stored"]) if is_small(z) else "auto")
    if not is_small(z):
        x[corners(z)[1]].compute(scheduler="sync")
        return
    found = np.asarray(x.compute(scheduler="sync"))
    compare(case, z, found, expected)


def select(case: Case, random: Random, expected: np.ndarray | None) -> None:
    z = zarrdask.open_array(case.store, case.member.path)
    if not z.ndim or not z.size or not is_small(z):
        return
    places = [[random.randrange(n) for _ in range(3)] for n in z.shape]
    for found in (
        z[tuple(slice(random.randrange(3), None, random.choice([1, 2, 3])) for _ in z.shape)],
        z[tuple(row[0] for row in places)],
        z.oindex[tuple(places)],
        z.vindex[tuple(places)],
        z.blocks[(0,) * z.ndim],
    ):
        np.asarray(found)
    if z.nchunks_stored() < 0:
        raise WrongError("fewer than no chunks")


def walk(case: Case, random: Random, expected: np.ndarray | None) -> None:
    store = case.store
    above = random.choice(["", case.member.path.rpartition("/")[0]])
    group = zarrdask.open_group(store, above)
    dict(group.attrs), len(group), list(group)
    [path for path, _ in group.groups()], group.tree()
    for name in group:
        zarrdask.open(store, f"{above}/{name}")


def rewrite(case: Case, random: Random, expected: np.ndarray | None) -> None:
    """Write an element and an attribute: both can be read again, and nothing else changes."""
    store = case.store
    z = zarrdask.open_array(store, case.member.path, mode="r+")
    if not z.size or not is_small(z):
        return
    before = np.asarray(z[...])
    at = tuple(random.randrange(n) for n in z.shape)
    z.attrs["late"] = {"a": [1]}
    z[at] = before[at]
    again = zarrdask.open_array(store, case.member.path)
    if again.attrs["late"] != {"a": [1]}:
        raise WrongError(f"attributes {again.attrs}")
    if not same(np.asarray(again[...]), before) and keeps_values(case):
        raise WrongError("other values after an element was written as it was")


def resize(case: Case, random: Random, expected: np.ndarray | None) -> None:
    store = case.store
    z = zarrdask.open_array(store, case.member.path, mode="r+")
    if not z.ndim or not is_small(z):
        return
    before = np.asarray(z[...])
    shape = tuple(max(0, n + random.choice([-2, -1, 0, 1, 5])) for n in z.shape)
    z.resize(shape)
    common = tuple(slice(0, min(pair)) for pair in zip(shape, before.shape, strict=True))
    found = np.asarray(zarrdask.open_array(store, case.member.path)[...])
    kept = same(found[common], before[common]) or not keeps_values(case)
    if found.shape != shape or not kept:
        raise WrongError("other values after a resize")


ACTIONS = {
    function.__name__: function for function in (read, through_dask, select, walk, rewrite, resize)
}


def prepare() -> None:
    """Set up for cases: undamaged arrays must be readable, or not, before limits count."""
    dask.config.set({"zarrdask.threads": 1})
    for member in corpus.members():
        undamaged(member)
