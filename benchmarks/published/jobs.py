"""What a published benchmark is: its definition, how it is measured, and its part of the page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from benchmarks import plots
from benchmarks.packages import missing
from benchmarks.timing import Job, outcome, rounds

#: Contestant -> its module in `benchmarks.contestants`, if that has another name.
MODULES = {"dask+zarrdask": "zarrdask", "zarrdask+uncached": "zarrdask"}
#: Of one measurement: seconds and more, or why it failed.
Outcome = dict[str, Any]
#: Case -> contestant -> the outcome of each round.
Results = dict[str, dict[str, list[Outcome]]]


@dataclass(frozen=True)
class Runner:
    """How measurements run: each in a process of its own; tiny ones only try the programs."""

    root: Path
    repeat: int
    tiny: bool = False
    #: Contestants to measure; all, if there are none.
    tools: tuple[str, ...] = ()

    def rounds(
        self, cases: Mapping[str, list[str]], budget: float, measure: Callable[[str, str], Outcome]
    ) -> Results:
        """Measure each case with its contestants in turn, in rounds that end within the budget."""
        results: Results = {case: {tool: [] for tool in tools} for case, tools in cases.items()}
        for _ in rounds(self.repeat, budget):
            for case, tools in results.items():
                for tool, outcomes in tools.items():
                    if any("failed" in found for found in outcomes):
                        continue
                    outcomes.append(measure(case, tool))
                    print(f"  {case}, {tool}: {describe(outcomes[-1])}", flush=True)
        return results


class Benchmark(Protocol):
    """A part of the page: what is measured, and how its results are shown."""

    @property
    def name(self) -> str:
        """What `--only` names it by."""

    @property
    def title(self) -> str:
        """The heading of its section."""

    def measure(self, runner: Runner) -> Any:
        """Return its results, which can be stored as JSON."""

    def description(self) -> str:
        """Return what it measures, as Markdown."""

    def table(self, results: Any) -> str:
        """Return its results, as Markdown."""

    def picture(self, results: Any) -> str:
        """Return its plot as SVG."""


@dataclass(frozen=True, kw_only=True)
class Published:
    """A benchmark of others that compares contestants in several cases.

    The contestants of a group are compared with its first one, zarrdask.
    """

    name: str
    title: str
    source: str
    definition: str
    scaled: str
    cases: dict[str, str]
    groups: tuple[tuple[str, ...], ...]
    #: Seconds within which more than one round has to end.
    budget: float = 120
    #: Remarks about contestants.
    remarks: tuple[str, ...] = ()

    @property
    def tools(self) -> list[str]:
        """All contestants."""
        return [tool for group in self.groups for tool in group]

    def measure(self, runner: Runner) -> Results:
        """Measure all contestants that can run here."""
        chosen = [tool for tool in self.tools if not runner.tools or tool in runner.tools]
        tools = [tool for tool in chosen if not missing(tool)]
        self.prepare_data(runner)
        measure = partial(self.outcome, runner)
        return runner.rounds(dict.fromkeys(self.cases, tools), self.budget, measure)

    def prepare_data(self, runner: Runner) -> None:
        """Make the data that all contestants read."""

    def outcome(self, runner: Runner, case: str, tool: str) -> Outcome:
        """Measure a contestant once."""
        raise NotImplementedError

    def description(self) -> str:
        """Return its definition, and what is scaled."""
        remarks = (f"\n\n{remark}" for remark in self.remarks)
        source = f"([source]({self.source}))"
        return f"{self.definition} {source}\n\nScaled: {self.scaled}{''.join(remarks)}"

    def table(self, results: Results) -> str:
        """Return the table, and where zarrdask is not first."""
        cases = [case for case in self.cases if case in results]
        lines = [
            f"| contestant | {' | '.join(self.cases[case] for case in cases)} |",
            "|---|" + "---|" * len(cases),
        ]
        for group in self.groups:
            for tool in group:
                cells = (_cell(results[case], group[0], tool) for case in cases)
                lines.append(f"| {tool} | {' | '.join(cells)} |")
        return "\n".join([*lines, "", *self.verdicts(results)])

    def verdicts(self, results: Results) -> list[str]:
        """Return in which columns zarrdask is first, and which contestants are faster in others."""
        sentences = []
        for group in self.groups:
            ours = group[0]
            ratios = {case: self._faster(results.get(case, {}), group) for case in self.cases}
            measured = {case: each for case, each in ratios.items() if each is not None}
            first = [self.cases[case] for case, faster in measured.items() if not faster]
            if len(first) == len(measured) > 1:
                sentences.append(f"- **{ours}** is first in all columns.")
            elif first:
                sentences.append(f"- **{ours}** is first in: {'; '.join(first)}.")
            for case, faster in measured.items():
                if faster:
                    each = (f"{tool} takes {ratio:.2f}" for tool, ratio in faster)
                    sentences.append(
                        f"- **{ours} is not first** ({self.cases[case]}): {', '.join(each)} times "
                        "as long."
                    )
        return sentences

    def _faster(
        self, outcomes: Mapping[str, Any], group: Sequence[str]
    ) -> list[tuple[str, float]] | None:
        """Return the faster contestants of a group, with the ratios; None without a result."""
        ours = best(outcomes.get(group[0], []))
        if ours is None:
            return None
        # Other ways to use zarrdask are no competitors.
        others = {t: best(outcomes.get(t, [])) for t in group[1:] if "zarrdask" not in t}
        faster = {t: s / ours for t, s in others.items() if s is not None and s < ours}
        return sorted(faster.items(), key=lambda item: item[1])

    def picture(self, results: Results) -> str:
        """Return the bars of all contestants, a panel for each case."""
        panels = {
            label: [
                (tool, best(results[case][tool])) for tool in self.tools if results[case].get(tool)
            ]
            for case, label in self.cases.items()
            if case in results
        }
        return plots.bars(f"{self.title}, seconds", panels, {group[0] for group in self.groups})


@dataclass(frozen=True, kw_only=True)
class Timed(Published):
    """A benchmark whose jobs are functions, each timed in a process of its own.

    `prepare(case, tool, root, tiny=...)` returns the job of a contestant, and
    `make(root, tiny=...)` makes the data of all, which have `nbytes`.
    """

    prepare: Callable[..., Job]
    make: Callable[..., None] | None = None
    nbytes: int = 0
    timeout: float = 120

    def prepare_data(self, runner: Runner) -> None:
        if self.make is not None:
            self.make(runner.root, tiny=runner.tiny)

    def outcome(self, runner: Runner, case: str, tool: str) -> Outcome:
        flags = ["--tiny"] if runner.tiny else []
        what = (self.name, case, tool, runner.root, *flags)
        return outcome("published.worker", *what, timeout=self.timeout)


def best(outcomes: list[Outcome]) -> float | None:
    """Return the least time, or None if there is none."""
    return min((outcome["seconds"] for outcome in outcomes if "seconds" in outcome), default=None)


def _cell(tools: dict[str, list[Outcome]], ours: str, tool: str) -> str:
    """Return a contestant's least time, its ratio to zarrdask's, and its memory."""
    outcomes = tools.get(tool, [])
    if not outcomes:
        return "not measured"
    time = best(outcomes)
    if time is None:
        return f"failed: {outcomes[-1]['failed']}"
    reference = best(tools.get(ours, []))
    ratio = f" ({time / reference:.2f})" if reference and tool != ours else ""
    least = min(outcome["memory"] for outcome in outcomes if "memory" in outcome)
    return f"{plots.seconds(time)}{ratio}, {least / 2**20:.0f} MiB"


def describe(outcome: Outcome) -> str:
    """Return an outcome for the terminal."""
    return outcome["failed"] if "failed" in outcome else plots.seconds(outcome["seconds"])


def module(tool: str) -> str:
    """Return the module of a contestant."""
    return "benchmarks.contestants." + MODULES.get(tool, tool.replace("+", "_"))
