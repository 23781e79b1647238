"""Processes that together ask a store for 20 times as many requests as it accepts.

``python -m benchmarks.crowd [--rate 200] [--chunks 600] [--processes 1,4,16] [--remote auto]``
prints, for each number of processes that each read an array of small chunks: the time relative to
that of the accepted requests alone, the share of refused requests, and the shares of the slowest
and the fastest process. The store is `benchmarks.object_server`, with a token bucket.
"""

import argparse
import json
import subprocess
import sys
import time
from urllib.request import Request, urlopen

from benchmarks.object_server import HERE, serving

#: Waits until all processes are there, reads, and prints how long that took.
READER = """
import sys, time
import dask, zarrdask
url, remote, name, start = sys.argv[1:]
dask.config.set({"zarrdask.remote": remote})
options = {"key": "key", "secret": "secret", "endpoint_url": url}
z = zarrdask.open_array("s3://crowd", name, storage_options=options)
print("ready", flush=True)
sys.stdin.readline()
begin = time.monotonic()
z[...]
print(time.monotonic() - begin, flush=True)
"""


def control(url: str, command: str) -> dict[str, int]:
    method = "GET" if command == "stats" else "POST"
    with urlopen(Request(f"{url}/-/{command}", method=method)) as answer:
        return dict(json.load(answer)["requests"])


def crowd(url: str, processes: int, args: argparse.Namespace) -> str:
    """Read with some processes at once, and return the row of the table."""
    control(url, f"set?delay={args.delay}")
    command = [sys.executable, "-c", READER, url, args.remote, "t", "0"]
    readers = [
        subprocess.Popen(command, cwd=HERE, stdin=-1, stdout=-1, text=True)
        for _ in range(processes)
    ]
    for reader in readers:
        reader.stdout.readline()  # type: ignore[union-attr]
    control(url, f"set?delay={args.delay}&rate={args.rate}")
    begin = time.monotonic()
    for reader in readers:
        reader.stdin.write("\n")  # type: ignore[union-attr]
        reader.stdin.flush()  # type: ignore[union-attr]
    outputs = [reader.communicate()[0].strip() for reader in readers]
    seconds = time.monotonic() - begin
    failed = sum(reader.returncode != 0 for reader in readers)
    stats = control(url, "stats")
    sent = stats["GET"]
    ideal = processes * args.chunks / args.rate
    times = [float(output) for output in outputs if output]
    return (
        f"| {processes} | {seconds / ideal:.2f} | {stats.get('refused', 0) / sent:.1%} "
        f"| {min(times):.1f} - {max(times):.1f} s | {failed} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--chunks", type=int, default=600)
    parser.add_argument("--delay", type=float, default=0.05)
    parser.add_argument("--processes", default="1,4,16")
    parser.add_argument("--remote", default="auto")
    args = parser.parse_args()
    import numpy as np

    import zarrdask

    with serving() as url:
        options = {"key": "key", "secret": "secret", "endpoint_url": url}
        z = zarrdask.create_array(
            "s3://crowd",
            "t",
            shape=args.chunks * 100,
            dtype="i4",
            chunks=100,
            storage_options=options,
        )
        z[...] = np.arange(args.chunks * 100)
        print("| processes | time | refused | of each | failed |\n|---|---|---|---|---|")
        for processes in map(int, args.processes.split(",")):
            print(crowd(url, processes, args), flush=True)


if __name__ == "__main__":
    main()
