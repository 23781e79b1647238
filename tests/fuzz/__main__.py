"""Run cases: some, named by their seeds, or ``--from SEED COUNT`` as a child of the test.

As a child it is limited in memory; it prints what case is next, and what went wrong, as JSON.
"""

import faulthandler
import json
import resource
import signal
import sys
import traceback
import tracemalloc
import warnings
from collections import Counter
from typing import Any

from tests.fuzz import cases

#: Bytes of address space; and what one case may take beside a few chunks: at most what zstd tries
#: for a frame of unknown size (2**28), and the values.
SPACE, MEMORY = 2**33, 2**28 + 2**26
#: Seconds. All cases take milliseconds, but the machine may be busy.
TIME = 20


class TooLongError(BaseException):
    """A case takes too long; no `except Exception` may swallow it."""


def stop(*_: Any) -> None:
    raise TooLongError


def attempt(case: cases.Case) -> tuple[str, str | None]:
    """Return how a case ended, and a traceback if it failed."""
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    signal.alarm(TIME)
    try:
        ended = cases.run(case)
    except (Exception, TooLongError):
        return "failed", traceback.format_exc()
    finally:
        signal.alarm(0)
    taken = tracemalloc.get_traced_memory()[1] - before
    # More than the space can't have been taken: NumPy counts what it was refused, too.
    too_much = MEMORY < taken < SPACE and taken > MEMORY + 3 * cases.unit_size(case)
    return ended, f"{taken} bytes were taken" if too_much else None


def run(seeds: Any) -> None:
    ends: Counter[str] = Counter()
    for seed in seeds:
        print(json.dumps({"seed": seed}), flush=True)
        faulthandler.dump_traceback_later(3 * TIME, exit=True)
        case = cases.make(seed)
        ended, failure = attempt(case)
        ends[ended] += 1
        if failure is not None:
            print(json.dumps({"case": str(case), "failure": failure}), flush=True)
    print(json.dumps({"ends": dict(ends.most_common())}))


def show(seed: int) -> None:
    case = cases.make(seed)
    print(case)
    print(*attempt(case), sep="\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, stop)
    faulthandler.enable()
    cases.prepare()
    resource.setrlimit(resource.RLIMIT_AS, (SPACE, SPACE))
    tracemalloc.start()
    if sys.argv[1] == "--from":
        first, count = map(int, sys.argv[2:])
        run(range(first, first + count))
    else:
        for argument in sys.argv[1:]:
            show(int(argument))
