"""The base of reports: text, HTML and JSON from one value."""

import json
from dataclasses import dataclass, field

import numpy as np
import pytest

import zarrdask
from zarrdask.display.report import Report, json_value


@dataclass(frozen=True)
class Part:
    path: str
    index: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Example(Report):
    derived = ("total",)
    parts: tuple[Part, ...]
    _store: object = field(default=None)

    @property
    def total(self):
        return len(self.parts)

    def __str__(self):
        return f"{self.total} < 3"


def test_a_report_is_text_html_and_json():
    report = Example((Part("a", (1, 2)), Part("b")), object())
    assert ">2 &lt; 3</pre>" in report._repr_html_()
    assert report.to_dict() == {
        "parts": [{"path": "a", "index": [1, 2]}, {"path": "b", "index": None}],
        "total": 2,
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        ({1: ("a", None)}, {"1": ["a", None]}),
        (np.dtype("f4"), "float32"),
    ],
)
def test_values_become_those_of_json(value, expected):
    assert json_value(value) == expected


def test_all_reports_have_one_base(tmp_path):
    z = zarrdask.create_array(tmp_path / "a", shape=4, dtype="i4")
    reports = [
        zarrdask.verify(z),
        zarrdask.verify(z, z),
        zarrdask.copy(z, tmp_path / "b"),
    ]
    for report in reports:
        assert isinstance(report, Report)
        assert str(report).splitlines()[0] in report._repr_html_().replace("&gt;", ">")
        assert json.loads(json.dumps(report.to_dict())) == report.to_dict()
    assert [report.to_dict().get("ok") for report in reports] == [True, True, None]
