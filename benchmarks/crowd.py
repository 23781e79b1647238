"""Processes that together ask a store for 20 times as many requests as it accepts.

``python -m benchmarks.crowd [--rate 200] [--chunks 600] [--processes 1,4,16] [--remote auto]``
prints, for each number of processes that each read an array of small chunks: the time relative to
that of the accepted requests alone, the share of refused requests, the times of the fastest and
the slowest process, and by which factor the processes differ in the requests that were accepted
later than 5 s, until the first one ends. The store is `benchmarks.object_server`, with a token
bucket; each row begins without what is known of its limit.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from urllib.request import Request, urlopen

from benchmarks.object_server import HERE, serving

#: Waits until all processes are there, reads, and prints when requests were accepted.
READER = """
import json, sys, time
import dask, zarrdask
from zarrdask.storage.remote.rates import RequestRate
url, remote, name = sys.argv[1:]
dask.config.set({"zarrdask.remote": remote})
options = {"key": "key", "secret": "secret", "endpoint_url": url}
z = zarrdask.open_array("s3://crowd", name, storage_options=options)
accept, times = RequestRate.accept, []
RequestRate.accept = lambda rate: (times.append(time.monotonic()), accept(rate))
print("ready", flush=True)
sys.stdin.readline()
z[...]
print(json.dumps(times), flush=True)
"""
#: Seconds after which all processes should get about the same share.
SETTLED = 5


def control(url: str, command: str) -> dict[str, int]:
    method = "GET" if command == "stats" else "POST"
    with urlopen(Request(f"{url}/-/{command}", method=method)) as answer:
        return dict(json.load(answer)["requests"])


def crowd(url: str, processes: int, args: argparse.Namespace) -> str:
    """Read with some processes at once, and return the row of the table."""
    with tempfile.TemporaryDirectory() as locks:
        return _crowd(url, processes, args, {**os.environ, "DASK_ZARRDASK__LOCK_DIRECTORY": locks})


def _crowd(url: str, processes: int, args: argparse.Namespace, env: dict[str, str]) -> str:
    control(url, f"set?delay={args.delay}")
    command = [sys.executable, "-c", READER, url, args.remote, "t"]
    readers = [
        subprocess.Popen(command, cwd=HERE, env=env, stdin=-1, stdout=-1, text=True)
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
    failed = sum(reader.returncode != 0 for reader in readers)
    stats = control(url, "stats")
    sent = stats["GET"]
    ideal = processes * args.chunks / args.rate
    accepted = [json.loads(output) for output in outputs if output]
    ends = [times[-1] - begin for times in accepted]
    settled = [sum(SETTLED < time - begin <= min(ends) for time in times) for times in accepted]
    shares = f"{max(settled) / min(settled):.2f}" if min(settled) else ""
    return (
        f"| {processes} | {max(ends) / ideal:.2f} | {stats.get('refused', 0) / sent:.1%} "
        f"| {min(ends):.1f} - {max(ends):.1f} s | {shares} | {failed} |"
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
        print(
            "| processes | time | refused | of each | shares | failed |\n|---|---|---|---|---|---|"
        )
        for processes in map(int, args.processes.split(",")):
            print(crowd(url, processes, args), flush=True)


if __name__ == "__main__":
    main()
