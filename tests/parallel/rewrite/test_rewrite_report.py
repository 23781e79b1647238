"""The report of a copy."""

from zarrdask.parallel.plan.request_costs import RequestCosts
from zarrdask.parallel.rewrite.rewrite_report import CopiedArray, CopyReport

ARRAYS = (
    CopiedArray("t", "copied unchanged", 2, 2048, 2048),
    CopiedArray("u", "recoded", 3, 10, 1024, ("the fill value is lost",)),
    CopiedArray("", "metadata only", 0),
)


def test_numbers_are_those_of_all_arrays():
    report = CopyReport("a", "b", ARRAYS, groups=1)
    assert (report.objects, report.bytes_written) == (5, 3072)
    assert report.summary() == "a -> b: 3 arrays, 1 group"
    assert report.to_dict()["objects"] == 5


def test_the_text_has_a_line_for_each_array_and_each_note():
    report = CopyReport("a", "b", ARRAYS, skipped=(("x", "unknown codec"),), notes=("lost",))
    _, *lines = str(report).splitlines()
    assert lines == [
        "t: copied unchanged, 2 chunks or shards, 2 KiB read, 2 KiB written",
        "u: recoded, 3 chunks or shards, 10 B read, 1 KiB written",
        "  note: the fill value is lost",
        "/: metadata only",
        "note: lost",
        "skipped x: unknown codec",
    ]


def test_before_the_copy_has_run_it_has_no_numbers():
    assert str(CopiedArray("t", "recoded")) == "t: recoded"


def test_the_costs_of_a_dry_run_are_part_of_it():
    report = CopyReport("a", "b", ARRAYS, costs=RequestCosts({"GET": 5, "PUT": 4}, 10, 20))
    assert report.requests_by_class == {"GET": 5, "PUT": 4}
    without = CopyReport("a", "b", ARRAYS)
    assert without.price is None
    assert report.to_dict().keys() == without.to_dict().keys()
