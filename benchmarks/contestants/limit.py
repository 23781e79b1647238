"""The limit: two bare threads, files and the compressor, nothing else."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import google_crc32c
import numcodecs
import numpy as np
from isal import igzip_lib

import zarrdask
from benchmarks.rows import Layout, Shape

THREADS = 2
ABSENT = 2**64 - 1


def _run(work: Callable[[Iterator[Any]], Any], jobs: Iterable[Any]) -> Any:
    """Let two threads take jobs from one iterator; return the sum of what they return."""
    shared = iter(jobs)
    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(work, [shared] * THREADS))


def _codec(layout: Layout) -> Any:
    numcodecs.blosc.use_threads = False
    found = layout.configuration
    match layout.compressor:
        case "blosc":
            return numcodecs.Blosc(found["cname"], found["clevel"], numcodecs.Blosc.SHUFFLE)
        case "zstd":
            return numcodecs.Zstd(found["level"])
    return numcodecs.GZip(found["level"])


def _inflate(data: bytes, out: np.ndarray) -> np.ndarray:
    # It can't write to a buffer that is given; it is still the fastest that there is. With less
    # than a byte to spare it doubles its buffer before it sees that the stream has ended.
    decoded = igzip_lib.decompress(data, igzip_lib.DECOMP_GZIP, 15, out.nbytes + 1)
    return np.frombuffer(decoded, out.dtype)


def _decoder(layout: Layout) -> Callable[[bytes, np.ndarray], np.ndarray]:
    """Return the function that decodes a chunk, if possible into an array that it is given."""
    if layout.compressor == "gzip":
        return _inflate
    codec = _codec(layout)

    def decode(data: bytes, out: np.ndarray) -> np.ndarray:
        codec.decode(data, out)
        return out

    return decode


def prepare_read(store: Path, layout: Layout) -> Callable[[], int]:
    """Return what reads and decodes every chunk, and tells how many bytes they were."""
    return chunk_reader(store, layout, lambda chunk: chunk.nbytes)


def chunk_reader(
    store: Path, layout: Layout, use: Callable[[np.ndarray], Any]
) -> Callable[[], Any]:
    """Return what reads and decodes every chunk, and adds up what a function returns for each."""
    decode = _decoder(layout)
    files = [_file(store, index) for index in _indices(layout.shape, layout.units)]

    def work(shared: Iterator[str]) -> Any:
        out = np.empty(layout.chunks, np.float32)
        total = 0
        for file in shared:
            handle = os.open(file, os.O_RDONLY)
            data = os.read(handle, os.fstat(handle).st_size)
            os.close(handle)
            for chunk in _inner(data, layout) if layout.shards else (data,):
                total += use(decode(chunk, out))
        return total

    return partial(_run, work, files)


def prepare_write(a: np.ndarray, store: Path, layout: Layout) -> Callable[[], int]:
    """Return what compresses chunks that lie ready, and writes them to files by renaming."""
    # Metadata, so that the result can be checked.
    zarrdask.create_array(store, shape=a.shape, dtype=a.dtype, **layout.options())
    encode = _codec(layout).encode
    jobs = [
        (_file(store, index), [chunk for _, chunk in _cut(unit, layout.chunks)])
        for index, unit in _cut(a, layout.units)
    ]

    def work(shared: Iterator[tuple[str, list[np.ndarray]]]) -> int:
        for file, chunks in shared:
            parts = [encode(chunk) for chunk in chunks]
            if layout.shards:
                parts.append(_index(parts))
            os.makedirs(os.path.dirname(file), exist_ok=True)
            handle = os.open(f"{file}.part", os.O_WRONLY | os.O_CREAT)
            os.writev(handle, parts)
            os.close(handle)
            os.rename(f"{file}.part", file)
        return 0

    return partial(_run, work, jobs)


def rechunk(source: str, target: str, layout: Layout, onto: Layout, memory: int) -> None:
    """Decode every chunk into one array in memory, and encode the other chunks from there."""
    a = np.empty(layout.shape, np.float32)
    zarrdask.create_array(target, shape=a.shape, dtype=a.dtype, **onto.options())
    codec = _codec(layout)

    def read(shared: Iterator[Shape]) -> int:
        out = np.empty(layout.chunks, np.float32)
        for index in shared:
            with open(_file(Path(source), index), "rb", 0) as file:
                codec.decode(file.read(), out)
            place = _place(index, layout)
            a[place] = out[tuple(slice(0, n) for n in a[place].shape)]
        return 0

    def write(shared: Iterator[Shape]) -> int:
        chunk = np.zeros(onto.chunks, np.float32)
        for index in shared:
            part = a[_place(index, onto)]
            chunk[tuple(slice(0, n) for n in part.shape)] = part
            file = _file(Path(target), index)
            os.makedirs(os.path.dirname(file), exist_ok=True)
            with open(f"{file}.part", "wb", 0) as handle:
                handle.write(codec.encode(chunk))
            os.rename(f"{file}.part", file)
        return 0

    _run(read, _indices(layout.shape, layout.chunks))
    _run(write, _indices(onto.shape, onto.chunks))


def _place(index: Shape, layout: Layout) -> tuple[slice, ...]:
    return tuple(slice(i * n, i * n + n) for i, n in zip(index, layout.chunks, strict=True))


def _file(store: Path, index: tuple[int, ...]) -> str:
    return os.path.join(store, "c", *map(str, index))


def _indices(shape: Shape, units: Shape) -> list[tuple[int, ...]]:
    return list(np.ndindex(*(-(-n // unit) for n, unit in zip(shape, units, strict=True))))


def _cut(a: np.ndarray, units: Shape) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """Yield the index and a contiguous copy of each unit; those at the edges are padded."""
    for index in _indices(a.shape, units):
        part = a[tuple(slice(i * n, i * n + n) for i, n in zip(index, units, strict=True))]
        yield index, np.pad(part, [(0, n - m) for n, m in zip(units, part.shape, strict=True)])


def _inner(data: bytes, layout: Layout) -> Iterator[memoryview]:
    """Yield the chunks of a shard, whose last bytes are their places and a checksum."""
    count = len(_indices(layout.units, layout.chunks))
    places = np.frombuffer(data, "<u8", 2 * count, len(data) - 16 * count - 4)
    view = memoryview(data)
    for start, size in places.reshape(-1, 2).tolist():
        if size != ABSENT:
            yield view[start : start + size]


def _index(parts: list[bytes]) -> bytes:
    sizes = np.array([len(part) for part in parts], "<u8")
    places = np.stack([np.cumsum(sizes) - sizes, sizes], 1).tobytes()
    return places + google_crc32c.value(places).to_bytes(4, "little")
