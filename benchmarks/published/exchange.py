"""dask#11162: sums of time series of an array that is stored as maps, on a cluster."""

from dataclasses import dataclass

from benchmarks import exchanged
from benchmarks.published.jobs import Outcome, Published, Runner

TIMES, TINY_TIMES = exchanged.SHAPE[0] // 2, 100
#: Contestant -> its job in `benchmarks.exchanged`.
NAMES = {
    "zarrdask": "zarrdask.rechunked",
    "dask, tasks": "dask tasks",
    "dask, p2p": "dask p2p",
}


@dataclass(frozen=True, kw_only=True)
class Exchange(Published):
    """The job on a cluster of two processes of 1 GiB."""

    timeout: float = 90

    def prepare_data(self, runner: Runner) -> None:
        (runner.root / "exchange").mkdir(exist_ok=True)
        times = TINY_TIMES if runner.tiny else TIMES
        exchanged.make(runner.root / "exchange" / "maps.zarr", times)

    def outcome(self, runner: Runner, case: str, tool: str) -> Outcome:
        data = runner.root / "exchange"
        return exchanged.measure(NAMES[tool], data, "1GiB", self.timeout)


JOBS = (
    Exchange(
        name="exchange",
        title="Other blocks within a computation",
        source="https://github.com/dask/dask/issues/11162",
        definition="An array of (96432, 721, 1440) float32, stored as a map for each hour, gets"
        " blocks of (8760, 72, 144), which are summed. It runs on a cluster of two processes with"
        " one thread and 1 GiB each; the memory is that of the larger worker.",
        scaled=f"({TIMES}, 181, 360), 1.2 GiB, to blocks of (876, 18, 36): the array by 20 along"
        " time, its blocks by 10, and both by 4 along the others. It exceeds the memory of a"
        " worker. What takes more than 90 s is ended.",
        cases={"sum": "sum of time series"},
        groups=(tuple(NAMES),),
        budget=90,
    ),
)
