"""ngff-zarr#48: pyramids of images, by the program of `benchmarks.pyramids`."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.published.jobs import Outcome, Published, Runner
from benchmarks.timing import outcome

#: The case here -> its job in `benchmarks.pyramids`.
CASES = {"image": "ngff-zarr#48"}


@dataclass(frozen=True, kw_only=True)
class Pyramids(Published):
    """Pyramids of the images of `benchmarks.pyramids`."""

    timeout: float = 120

    def prepare_data(self, runner: Runner) -> None:
        from benchmarks.pyramids import make

        place(runner).mkdir(exist_ok=True)
        for job in {"tiny", *map(partial(job_of, runner), self.cases)}:
            make(place(runner), job)

    def outcome(self, runner: Runner, case: str, tool: str) -> Outcome:
        job = job_of(runner, case)
        return outcome("pyramids", place(runner), "--run", tool, job, timeout=self.timeout)


def place(runner: Runner) -> Path:
    """Return the folder of the images."""
    return runner.root / "pyramids"


def job_of(runner: Runner, case: str) -> str:
    """Return the job of `benchmarks.pyramids` for a case."""
    return "tiny" if runner.tiny else CASES[case]


JOBS = (
    Pyramids(
        name="pyramids",
        title="Pyramids of images",
        source="https://github.com/fideus-labs/ngff-zarr/issues/48",
        definition="Pyramids of five levels are made of images of 2 to 30 x 3000² and 15,000²"
        " uint8, and written. The largest took ngff-zarr 1000 to 2026 s and 6.4 to 16.2 GB there."
        " `zarrdask` copies the encoded bytes of level 0; `zarrdask, encoded` encodes it as well,"
        " as the others do.",
        scaled="30 x 3750² elements, a quarter of the length and of the width of the largest."
        " topozarr, ngff-zarr and ome-zarr-py are installed by"
        " `pip install topozarr xproj ngff-zarr ome-zarr`.",
        cases={"image": "30 x 3750 x 3750"},
        groups=(("zarrdask, encoded", "zarrdask", "topozarr", "ngff-zarr", "ome-zarr-py"),),
        budget=60,
    ),
)
