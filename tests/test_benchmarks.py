"""The programs of published benchmarks are consistent, and their page renders from any results."""

from importlib.util import find_spec
from xml.etree import ElementTree

import pytest

from benchmarks.plots import Panel, exponents, lines
from benchmarks.published import page
from benchmarks.published.growth import Growth
from benchmarks.published.jobs import Published, Runner, Timed, module
from benchmarks.published.registry import BENCHMARKS, find


def outcomes(benchmark):
    """Return results in which the last contestant is the fastest."""
    if isinstance(benchmark, Growth):
        jobs = list(benchmark.jobs)
        return {
            f"{size:.0f}": {job: [{"seconds": 2.0 + size, "memory": 2**20}] for job in jobs}
            for size in benchmark.sizes
        }
    tools = list(enumerate(benchmark.tools))
    return {
        case: {tool: [{"seconds": 100.0 - n, "memory": 2**20}] for n, tool in tools}
        for case in benchmark.cases
    }


def results(**about):
    facts = {"date": "1 May 2026", "machine": "2 cores", "versions": {"zarr": "3.4"}, **about}
    return {each.name: {"about": facts, "results": outcomes(each)} for each in BENCHMARKS}


def test_definitions():
    assert len({each.name for each in BENCHMARKS}) == len(BENCHMARKS)
    for benchmark in BENCHMARKS:
        assert find(benchmark.name) is benchmark
        assert benchmark.description()
        if isinstance(benchmark, Published):
            assert all("zarrdask" in group[0] for group in benchmark.groups)
            assert benchmark.source.startswith("https://")
            assert benchmark.scaled.endswith(".")
    for name in ("read_all", "round_trip", "by_chunks", "slabs"):
        assert all(find_spec(module(tool)) for tool in find(name).tools)


def test_page_without_results(tmp_path):
    page.write({}, tmp_path / "page.md", tmp_path / "images")
    text = (tmp_path / "page.md").read_text()
    assert text.count("no results yet") == len(BENCHMARKS)
    assert "![" not in text


def test_page(tmp_path):
    given = results(missing={"zarrista": "zarrista"})
    given["read_all"]["results"]["raw"]["zarr"] = [{"failed": "MemoryError: no memory"}]
    page.write(given, tmp_path / "page.md", tmp_path / "images")
    text = (tmp_path / "page.md").read_text()
    for benchmark in BENCHMARKS:
        assert f"(images/published/{benchmark.name}.svg)" in text
        picture = ElementTree.parse(tmp_path / "images" / f"{benchmark.name}.svg").getroot()
        assert picture.get("viewBox")
    assert "**zarrdask is not first** (64 rows): zarr+fused takes 0.94" in text
    assert "failed: MemoryError: no memory" in text
    assert "zarrista could not run: zarrista is not installed." in text
    assert "mean nothing" not in text
    page.write(results(trial=True), tmp_path / "page.md", tmp_path / "images")
    assert "mean nothing" in (tmp_path / "page.md").read_text()


def test_rounds_end_with_the_budget_and_after_a_failure(tmp_path, capsys):
    calls = []

    def measure(case, tool):
        calls.append(tool)
        return {"failed": "?"} if tool == "b" else {"seconds": 1.0}

    runner = Runner(tmp_path, repeat=3)
    found = runner.rounds({"case": ["a", "b"]}, 60, measure)
    assert {tool: len(each) for tool, each in found["case"].items()} == {"a": 3, "b": 1}
    calls.clear()
    runner.rounds({"case": ["a", "b"]}, -1, measure)
    assert calls == ["a", "b"]


@pytest.mark.parametrize("logarithmic", [True, False])
def test_lines_of_zero_and_one_point(logarithmic):
    panel = Panel("seconds", "n", {"a": [(0, 0.0)], "b": []}, logarithmic)
    ElementTree.fromstring(lines("title", [panel, panel, panel]))


def test_exponents():
    assert exponents([(10, 1), (100, 10), (1000, 1000)]) == pytest.approx([1, 2])


def test_tiny_jobs(tmp_path, setting):
    setting({"zarrdask.cache-size": 0})  # which one of them changes
    job = find("slabs")
    assert isinstance(job, Timed)
    job.prepare_data(Runner(tmp_path, 1, tiny=True))
    run, is_right = job.prepare("16", "zarrdask", tmp_path, tiny=True)
    assert is_right(run())
    growth = find("chunks")
    growth.make(tmp_path, 100)
    for name in growth.jobs:
        run, is_right = growth.prepare("100", name, tmp_path, tiny=False)
        assert is_right(run()), name
