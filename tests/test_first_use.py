"""Two threads may be the first of a process to use any two parts that are imported when needed.

A server process has imported NumPy, Dask and zarrdask, but none of these parts. For each pair it
forks a child, in which two threads use one part each, at the same time.
"""

import json
import os
import subprocess
import sys
import threading
from itertools import combinations_with_replacement

import numpy as np
import pytest

import zarrdask
import zarrdask.storage.resolve
from zarrdask.formats.codecs.registry import CODECS

#: Packages that the server must not have imported.
LAZY = ("fsspec", "ml_dtypes", "numcodecs", "obstore", "pcodec", "zfpy")
NUMBERS = np.arange(64.0).reshape(8, 8)


def codec(values=NUMBERS, **options):
    """Return a function that writes and reads an array with codecs that are not loaded yet."""

    def use():
        options.setdefault("dtype", values.dtype)
        array = zarrdask.create_array({}, shape=values.shape, chunks=4, **options)
        array[...] = values
        np.testing.assert_array_equal(array[...], values)

    return use


def objects(name):
    values = np.array(["a", "bb", "ccc", "d"], object)
    return codec(values, zarr_format=2, filters=[{"id": name}], compressors=())


def small_floats():
    zarrdask.create_array({}, shape=8, dtype="bfloat16", compressors=())


def memory_of_fsspec():
    url = f"memory://{threading.get_ident()}"  # of two creators of one array, one gets an error
    zarrdask.create_array(url, shape=8, dtype="i4", compressors=())


def memory_of_obstore():
    from obstore.store import MemoryStore

    zarrdask.create_array(MemoryStore(), shape=8, dtype="i4", compressors=())


def url():
    zarrdask.storage.resolve.resolve("http://127.0.0.1:1/a")


PARTS = {
    "zstd": codec(compressors="zstd"),
    "blosc": codec(compressors="blosc"),
    "crc32c": codec(compressors="crc32c"),
    "delta": codec(zarr_format=2, filters=[{"id": "delta", "dtype": "<f8"}], compressors=()),
    "text": codec(np.array(["a", "bb"], object), dtype="string", compressors=()),
    "msgpack": objects("msgpack2"),
    "pcodec": codec(codecs=["numcodecs.pcodec"]),
    "zfp": codec(codecs=[{"name": "zfp", "configuration": {"mode": "reversible"}}]),
    "ml_dtypes": small_floats,
    "fsspec": memory_of_fsspec,
    "obstore": memory_of_obstore,
    "url": url,
}


def failures(pair):
    """Return what fails if two threads use the parts of a pair, in a child of this process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, json.dumps(_use_at_once(pair)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else ["the process died"]


def _use_at_once(pair):
    barrier, messages = threading.Barrier(len(pair)), []

    def run(name):
        barrier.wait()
        try:
            PARTS[name]()
        except BaseException as error:
            messages.append(f"{name}: {error!r}"[:300])

    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=run, args=[name]) for name in pair]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return messages


def serve():
    """Try all pairs and print those that fail, as JSON."""
    codec(compressors=())()
    for name in CODECS.names():
        CODECS.find(name)  # so that the threads come to the packages at the same time
    loaded = [name for name in LAZY if name in sys.modules]
    pairs = combinations_with_replacement(PARTS, 2)
    found = {" and ".join(pair): failures(pair) for pair in pairs}
    failed = {pair: messages for pair, messages in found.items() if messages}
    sys.stdout.write(json.dumps({"loaded": loaded, "failed": failed}))


@pytest.mark.stress
def test_two_threads_may_be_the_first_to_use_any_two_parts():
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", f"import {__name__} as m; m.serve()"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(run.stdout) == {"loaded": [], "failed": {}}
