"""One measurement of a published benchmark: a fresh process that does a job once."""

import json
import sys
from functools import partial
from pathlib import Path

from benchmarks.published.registry import find
from benchmarks.timing import timed


def measure(name: str, case: str, tool: str, root: Path, *, tiny: bool) -> dict[str, float]:
    """Do the job on a tiny array, then on the array."""
    job = find(name)
    if tool.startswith("dask+"):
        import dask

        dask.config.set(scheduler="threads", num_workers=2)
    prepare = partial(job.prepare, case, tool, root)
    return timed(
        f"{name}, {case}, {tool}",
        partial(prepare, tiny=True),
        partial(prepare, tiny=tiny),
        0 if tiny else getattr(job, "nbytes", 0),
    )


if __name__ == "__main__":
    name, case, tool, root, *flags = sys.argv[1:]
    print(json.dumps(measure(name, case, tool, Path(root), tiny="--tiny" in flags)))
