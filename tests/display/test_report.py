"""The base of reports: text, HTML and JSON from one value."""

import json
from dataclasses import dataclass, field

import dask.array as da
import numpy as np

import zarrdask
from tests.covering import for_each
from zarrdask.display.report import Report, json_value
from zarrdask.tools.verification.statistics import statistics


@dataclass(frozen=True)
class Part:
    path: str
    index: tuple[int, ...] | None = None


@dataclass(frozen=True, repr=False)
class Example(Report):
    derived = ("total",)
    parts: tuple[Part, ...]
    _store: object = field(default=None)

    @property
    def total(self):
        return len(self.parts)

    def __str__(self):
        return f"{self.total} < 3\nand more"


def test_a_report_is_text_html_and_json():
    report = Example((Part("a", (1, 2)), Part("b")), object())
    assert repr(report) == "<zarrdask.Example 2 < 3>"
    assert ">2 &lt; 3\nand more</pre>" in report._repr_html_()
    assert report.to_dict() == {
        "parts": [{"path": "a", "index": [1, 2]}, {"path": "b", "index": None}],
        "total": 2,
    }


@for_each(
    ("value", "expected"),
    [
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (True, True),
        (np.float32("nan"), "nan"),
        (np.complex64(1j), "1j"),
        (np.array((1,), [("a", "i4")])[()], "(1,)"),
        ({1: ("a", None)}, {"1": ["a", None]}),
        (np.dtype("f4"), "float32"),
        (np.datetime64("2020-01-01", "ns"), "2020-01-01T00:00:00.000000000"),
    ],
)
def test_values_become_those_of_json(value, expected):
    assert json_value(value) == expected


def test_all_reports_have_one_base(tmp_path):
    root = zarrdask.create_group(tmp_path / "r")
    z = root.create_array("a", shape=4, dtype="i4")
    reports = [
        zarrdask.verify(z),
        zarrdask.compare(z, z),
        zarrdask.copy(z, tmp_path / "b"),
        statistics(z),
        zarrdask.plan_read(z),
        zarrdask.plan_write(da.ones(4), z),
        zarrdask.rechunk(z, tmp_path / "c", chunks=2),
        zarrdask.rechunk(root, tmp_path / "d", chunks=2),
    ]
    for report in reports:
        assert isinstance(report, Report)
        assert repr(report).startswith(f"<zarrdask.{type(report).__name__} ")
        assert "\n" not in repr(report)
        assert json.loads(json.dumps(report.to_dict())) == report.to_dict()
    assert "NOT THE SAME" not in repr(reports[1])
    for report in reports[:3]:
        assert str(report).splitlines()[0] in report._repr_html_().replace("&gt;", ">")
    assert [report.to_dict().get("ok") for report in reports[:3]] == [True, True, None]


@for_each("dtype", ["M8[25s]", "M8[2000000000Y]", [("a", "i4"), ("b", "M8[25s]")]])
def test_times_for_which_numpy_has_no_date_are_shown_as_counts(dtype):
    far = np.array([2**63 - 1], "M8[25s]" if isinstance(dtype, list) else dtype)[0]
    fill = np.array([(1, far)], dtype)[0] if isinstance(dtype, list) else far
    z = zarrdask.create_array({}, shape=3, dtype=dtype, fill_value=fill)
    other = zarrdask.create_array({}, shape=3, dtype=dtype)
    comparison = zarrdask.compare(z, other)
    texts = [z.info, z.metadata, comparison, comparison.to_dict(), json_value(fill)]
    assert all("9223372036854775807 (datetime64[" in str(text) for text in texts)
    assert z._repr_html_()
    error = zarrdask.errors.MetadataError("invalid", found=fill)
    assert "invalid" in str(error)
