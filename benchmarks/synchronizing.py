"""Measure `zarrdask.sync` beside others: ``python -m benchmarks.synchronizing``.

An array on the disk is kept equal to a copy in an object store on loopback that answers each
request late (`benchmarks.object_server`). Each tool makes its own copy first. Then a part of the
chunks changes, and it makes the copy equal again: the table has the seconds, and the requests by
kind.
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter

import numpy as np

import zarrdask
from benchmarks.object_server import serving

CHUNK = 256
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
#: The server stores bodies as they are sent: without a checksum after each of their parts.
PLAIN = {"AWS_REQUEST_CHECKSUM_CALCULATION": "when_required", "AWS_DEFAULT_REGION": "us-east-1"}


def by_zarrdask(source: Path, name: str, url: str) -> None:
    options = {"key": "key", "secret": "secret", "endpoint_url": url}
    zarrdask.sync(source, f"s3://bench/{name}", storage_options=options)


def by_aws(source: Path, name: str, url: str) -> None:
    _run("aws", "s3", "sync", str(source), f"s3://bench/{name}", f"--endpoint-url={url}")


def by_rclone(source: Path, name: str, url: str, *options: str) -> None:
    connection = "provider=Other,env_auth,force_path_style,list_version=2"
    place = f":s3,{connection},endpoint='{url}':bench/{name}"
    how = ("--transfers=64", "--checkers=64", "--fast-list", *options)
    _run("rclone", "sync", str(source), place, *how)


def by_rclone_checksums(source: Path, name: str, url: str) -> None:
    by_rclone(source, name, url, "--checksum")


TOOLS: dict[str, tuple[str | None, Callable[[Path, str, str], None]]] = {
    "zarrdask.sync": (None, by_zarrdask),
    "aws s3 sync": ("aws", by_aws),
    "rclone sync": ("rclone", by_rclone),
    "rclone sync --checksum": ("rclone", by_rclone_checksums),
}


def _run(*command: str) -> None:
    # rclone's client takes no certificates from there.
    inherited = {name: value for name, value in os.environ.items() if name != "AWS_CA_BUNDLE"}
    environment = {**inherited, **KEYS, **PLAIN}
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)


def control(url: str, action: str) -> Mapping[str, int]:
    """Return the requests since the last control of the server, by their methods."""
    request = urllib.request.Request(f"{url}/-/{action}", method="POST")
    with urllib.request.urlopen(request) as answer:
        counts: Mapping[str, int] = json.load(answer)["requests"]
        return counts


def measure(name: str, work: Callable[[], None], url: str) -> None:
    """Do something once, and print a line of the table."""
    control(url, "set")
    start = perf_counter()
    work()
    seconds = perf_counter() - start
    counts = control(url, "stats")
    kinds = ", ".join(f"{count} {method}" for method, count in sorted(counts.items()))
    print(f"| {name} | {seconds:.1f} s | {sum(counts.values())} | {kinds} |", flush=True)


def main() -> None:
    """Measure all tools that are installed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.synchronizing", description=__doc__)
    parser.add_argument("--chunks", type=int, default=10_000, help="default: 10,000 of 1 KiB")
    parser.add_argument("--changed", type=float, default=0.01, help="the part; default: 0.01")
    parser.add_argument("--delay", type=float, default=0.005, help="seconds; default: 0.005")
    parser.add_argument("--only", help=f"tools, of {', '.join(TOOLS)}; default: all")
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else [*TOOLS]
    rng = np.random.default_rng(0)
    print("| | time | requests | by kind |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, serving(options.delay) as url:
        source = Path(folder, "source")
        z = zarrdask.create_array(
            source, shape=options.chunks * CHUNK, chunks=CHUNK, dtype="f4", compressors=[]
        )
        z[...] = rng.random(z.shape, "f4")
        for number, (title, (program, sync)) in enumerate(TOOLS.items()):
            if title not in chosen:
                continue
            if program is not None and shutil.which(program) is None:
                print(f"| {title} | not installed | | |")
                continue
            copy = f"copy-{number}"
            measure(f"{title}, first copy", lambda: sync(source, copy, url), url)  # noqa: B023
            for chunk in rng.choice(options.chunks, int(options.chunks * options.changed), False):  # noqa: FBT003
                z[int(chunk) * CHUNK : int(chunk + 1) * CHUNK] = rng.random(CHUNK, "f4")
            measure(f"{title}, changes", lambda: sync(source, copy, url), url)  # noqa: B023
            measure(f"{title}, no changes", lambda: sync(source, copy, url), url)  # noqa: B023


if __name__ == "__main__":
    main()
