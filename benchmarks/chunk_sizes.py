"""Read an array with chunks of many sizes from an object store with latency.

``python -m benchmarks.chunk_sizes [--svg FILE]`` repeats the reads of Earthmover's "I/O-maxing"
with fewer bytes: random int64, one axis, zstd, chunks of 0.8 to 200 MB, in a server on loopback
that answers each request 5 or 50 ms late (`benchmarks.object_server`). It prints, and draws, the
best rate of each contestant. `loop` is what obstore and numcodecs do in 64 threads without a
library in between: each thread requests and decodes one chunk after another. With ``--clock cpu``
the rates are those for each second of CPU time, which others who use the machine affect less.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
import obstore
from obstore.store import S3Store

import zarrdask
from benchmarks.__main__ import run
from benchmarks.far import IN_FLIGHT, options, s3
from benchmarks.object_server import serving

SIZE = 400_000_000
#: The sizes of a chunk in bytes.
CHUNKS = {"0.8": 800_000, "3.1": 3_125_000, "12.5": 12_500_000, "50": 50_000_000, "200": 2 * 10**8}
#: How many times each process reads, after a first time; the fastest counts.
READS = 3
Read = Callable[[], Any]


def by_zarrdask(url: str) -> Read:
    z = zarrdask.open_array(s3(url), "x")
    return lambda: z[...]


def by_loop(url: str) -> Read:
    from numcodecs import Zstd

    store: S3Store = s3(url)
    z = zarrdask.open_array(store, "x")
    pool = ThreadPoolExecutor(IN_FLIGHT)

    def read() -> np.ndarray:
        out = np.empty(z.shape, z.dtype)

        def fetch(number: int) -> None:
            value = memoryview(obstore.get(store, f"x/c/{number}").bytes())
            start = number * z.chunks[0]
            Zstd().decode(value, out[start : start + z.chunks[0]])

        for _ in pool.map(fetch, range(z.shape[0] // z.chunks[0])):
            pass
        return out

    return read


def by_zarr(url: str) -> Read:
    import zarr

    zarr.config.set({"async.concurrency": IN_FLIGHT})
    z = zarr.open_array(zarr.storage.ObjectStore(s3(url)), path="x", mode="r")
    return lambda: z[...]


def by_tensorstore(url: str) -> Read:
    import tensorstore as ts

    store = {
        "driver": "s3",
        "bucket": "bench",
        "endpoint": url,
        "aws_region": "us-east-1",
        "aws_credentials": {"type": "anonymous"},
        "path": "x/",
    }
    context = {"s3_request_concurrency": {"limit": IN_FLIGHT}}
    z = ts.open({"driver": "zarr3", "kvstore": store, "context": context}).result()
    return lambda: z.read().result()


#: Each contestant, and its colour.
TOOLS = {
    "zarrdask": (by_zarrdask, "#0072b2"),
    "loop": (by_loop, "#999999"),
    "zarr+obstore": (by_zarr, "#e69f00"),
    "tensorstore": (by_tensorstore, "#009e73"),
}


def measure(tool: str, url: str, clock: str) -> float:
    """Return how many bytes a second a contestant reads, in a process that has read before."""
    read, now = TOOLS[tool][0](url), CLOCKS[clock]
    read()
    seconds = []
    for _ in range(READS):
        start = now()
        values = read()
        seconds.append(now() - start)
    if not np.array_equal(values[:1000], random(1000)):
        raise ValueError(f"{tool} read other values")
    return SIZE / min(seconds)


def random(count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(-(2**63), 2**63, count, "i8")


def prepare(url: str, chunk_bytes: int) -> None:
    zarrdask.create_array(
        "s3://bench",
        "x",
        shape=SIZE // 8,
        chunks=chunk_bytes // 8,
        dtype="i8",
        compressors=[{"name": "zstd", "configuration": {"level": 3, "checksum": False}}],
        overwrite=True,
        storage_options=options(url),
    )[...] = random(SIZE // 8)


#: The clocks that the speed can be measured by, and what they count.
CLOCKS = {"elapsed": time.perf_counter, "cpu": time.process_time}
UNITS = {"elapsed": "MB/s", "cpu": "MB per second of CPU time"}
Rates = dict[str, dict[str, dict[str, float]]]


def draw(rates: Rates, clock: str) -> str:
    """Return a picture: for each delay a panel, for each contestant a line."""
    width, height, left, top = 330, 200, 60, 54
    lines = [line for panel in rates.values() for line in panel.values()]
    most = max(rate for line in lines for rate in line.values())
    text = f"Reading {SIZE // 10**6} MB from an object store on loopback, by the size of chunks"

    def x(size: str) -> float:
        return 20 + (width - 60) * log2(CHUNKS[size] / CHUNKS["0.8"]) / 8

    def y(rate: float) -> float:
        return height * (1 - rate / most)

    def body() -> Iterator[str]:
        yield f'<text x="{left}" y="20" font-size="13" font-weight="600">{text}</text>'
        for number, (delay, panel) in enumerate(rates.items()):
            yield f'<g transform="translate({left + number * (width + 20)} {top})">'
            yield f'<text x="0" y="-10">{float(delay) * 1000:g} ms late; {UNITS[clock]}</text>'
            yield f'<path d="M0 0V{height}H{width - 10}" fill="none" stroke="currentColor"/>'
            for step in range(5):
                rate, right = most * step / 4, 'text-anchor="end"'
                yield f'<text x="-6" y="{y(rate) + 4:.0f}" {right}>{rate / 1e6:.0f}</text>'
            for size in CHUNKS:
                label, middle = f"{size} MB" if size == "200" else size, 'text-anchor="middle"'
                yield f'<text x="{x(size):.0f}" y="{height + 16}" {middle}>{label}</text>'
            for tool, line in panel.items():
                points = [(x(size), y(rate)) for size, rate in line.items()]
                path = "L".join(f"{at:.0f} {down:.0f}" for at, down in points)
                colour = TOOLS[tool][1]
                yield f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
                for at, down in points:
                    yield f'<circle cx="{at:.0f}" cy="{down:.0f}" r="3" fill="{colour}"/>'
            yield "</g>"
        for number, (tool, (_, colour)) in enumerate(TOOLS.items()):
            at = left + number * 130
            yield f'<rect x="{at}" y="{top + height + 30}" width="12" height="12" fill="{colour}"/>'
            yield f'<text x="{at + 18}" y="{top + height + 40}">{tool}</text>'

    size = f'width="{left + 2 * (width + 20)}" height="{top + height + 54}"'
    view = f'viewBox="0 0 {left + 2 * (width + 20)} {top + height + 54}"'
    # Grey is legible on light and dark pages.
    style = 'fill="currentColor" color="#7d8590" font-family="system-ui, sans-serif" font-size="11"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} {style} role="img"'
    return "\n".join([f'{head} aria-label="{text}">', *body(), "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--delays", default="0.005,0.05", help="seconds, separated by commas")
    parser.add_argument("--sizes", default=",".join(CHUNKS), help="MB, separated by commas")
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--svg", type=Path, help="where to write the picture")
    parser.add_argument("--clock", default="elapsed", choices=CLOCKS)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(*given.one)))
        return
    tools, delays = given.tools.split(","), given.delays.split(",")
    rates: Rates = {delay: {tool: {} for tool in tools} for delay in delays}
    print(f"| MB | ms | {' | '.join(tools)} |\n|---|---|{'---|' * len(tools)}")
    for size in given.sizes.split(","):
        for delay in delays:
            with serving(float(delay)) as url:
                prepare(url, CHUNKS[size])
                results: dict[str, list[float]] = {tool: [] for tool in tools}
                for _ in range(given.repeat):
                    for tool in tools:
                        results[tool].append(
                            float(run("chunk_sizes", "--one", tool, url, given.clock))
                        )
            for tool in tools:
                rates[delay][tool][size] = max(results[tool])
            cells = [f"{rates[delay][tool][size] / 1e6:.0f}" for tool in tools]
            print(f"| {size} | {float(delay) * 1000:g} | {' | '.join(cells)} |", flush=True)
    if given.svg:
        given.svg.write_text(draw(rates, given.clock))


if __name__ == "__main__":
    main()
