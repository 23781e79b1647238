"""All parts of the page, in its order."""

from benchmarks.published import exchange, growth, openings, pyramids, slabs, zarr_benchmarks
from benchmarks.published.jobs import Benchmark

BENCHMARKS: tuple[Benchmark, ...] = (
    *zarr_benchmarks.JOBS,
    *slabs.JOBS,
    *openings.JOBS,
    *exchange.JOBS,
    *pyramids.JOBS,
    *growth.JOBS,
)


def find(name: str) -> Benchmark:
    """Return the benchmark of that name."""
    return next(each for each in BENCHMARKS if each.name == name)
