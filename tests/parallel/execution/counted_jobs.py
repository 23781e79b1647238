"""A store and a codec that write a line to a file for each request and chunk, in any process."""

import os
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import dask.array as da
import numpy as np

import zarrdask
from zarrdask.formats.codecs import Configured, Kind
from zarrdask.storage import Capabilities, Store

#: The names of the numbers that both count.
NAMES = ("GET", "HEAD", "LIST", "PUT", "DELETE", "fetched", "stored", "decoded", "encoded")
#: Names the file, in all processes.
VARIABLE = "COUNTED_JOBS_LOG"


def note(name, number=1):
    fd = os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, f"{name} {number}\n".encode())
    os.close(fd)


def noted():
    """Return what was counted, and begin anew."""
    path, counts = Path(os.environ[VARIABLE]), Counter()
    for line in path.read_text().splitlines() if path.exists() else ():
        name, number = line.split()
        counts[name] += int(number)
    path.unlink(missing_ok=True)
    return counts


class LoggingStore(Store):
    """Files in a directory; it knows nothing of zarrdask's other stores."""

    capabilities = Capabilities(concurrent=True)

    def __init__(self, root):
        self.root = root

    @property
    def url(self):
        return f"logging://{self.root}"

    def _file(self, key):
        return Path(self.root, key.replace("/", "+"))

    def _read(self, key):
        path = self._file(key)
        return path.read_bytes() if path.exists() else None

    def get(self, key):
        value = self._read(key)
        note("GET")
        note("fetched", len(value or b""))
        return value

    def get_range(self, key, start, length=None):
        value = self._read(key)
        note("GET")
        if value is None:
            return None
        begin = max(len(value) + start, 0) if start < 0 else start
        part = value[begin : None if length is None else begin + length]
        note("fetched", len(part))
        return part

    def set(self, key, value):
        path = self._file(key)
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(value)
        note("PUT")
        note("stored", len(value))

    def erase(self, key):
        self._file(key).unlink(missing_ok=True)
        note("DELETE")

    def list_prefix(self, prefix):
        note("LIST")
        names = os.listdir(self.root) if os.path.isdir(self.root) else []
        keys = sorted(name.replace("+", "/") for name in names)
        return (key for key in keys if key.startswith(prefix))

    def __eq__(self, other):
        return isinstance(other, LoggingStore) and self.root == other.root

    def __hash__(self):
        return hash(self.root)


@dataclass(frozen=True)
class Noted(Configured):
    """A codec that changes nothing."""

    name: ClassVar[str] = "test.noted"
    kind: ClassVar[Kind] = Kind.BYTES_BYTES

    def encode(self, data):
        note("encoded")
        return bytes(data)

    def decode(self, data, limit, out=None):
        note("decoded")
        return bytes(data)

    def encoded_size(self, size):
        return size


def register(log):
    """Name the file in this process, which imports the module, and so registers the codec."""
    os.environ[VARIABLE] = log


zarrdask.register.codec(Noted)


def random_job(seed, root):
    """Create an array, read and write regions of it; return a Dask array of the last read."""
    pick = random.Random(seed)
    shape = (pick.randint(1, 24), pick.randint(1, 24))
    chunks = tuple(pick.randint(1, 8) for _ in shape)
    options = {}
    if pick.random() < 0.5:
        options["shards"] = tuple(n * pick.randint(1, 3) for n in chunks)
    url = pick.choice([LoggingStore(root), zarrdask.storage.LocalStore(root)])
    z = zarrdask.create_array(
        url, "x", shape=shape, dtype="f4", chunks=chunks, compressors="test.noted", **options
    )
    values = np.random.default_rng(seed).random(shape, "f4") + 1
    zarrdask.to_zarr(
        da.from_array(values, chunks=tuple(pick.randint(1, n) for n in shape)), z, region=...
    ) if pick.random() < 0.3 else z.__setitem__(..., values)
    for _ in range(pick.randint(0, 3)):
        region = tuple(slice(*sorted(pick.choices(range(n + 1), k=2))) for n in shape)
        if pick.random() < 0.5:
            z[region] = pick.choice([0, 7])
        else:
            z[region]
    region = tuple(slice(0, pick.randint(1, n), pick.randint(1, 3)) for n in shape)
    return url, zarrdask.from_zarr(url, "x", chunks=pick.choice([chunks, -1]))[region]
