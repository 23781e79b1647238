"""Modules display more of a group, by its attributes."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from zarrdask.arrays.nodes import sections


@pytest.fixture
def module(monkeypatch):
    module = ModuleType("section_of_a_test")
    module.rows = lambda group: [("levels", str(group.levels))]
    module.html = lambda group: f"<p>{group.levels}</p>"
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(sections, "SECTIONS", dict.fromkeys(("one", "two"), module.__name__))


def group(**attributes):
    return SimpleNamespace(metadata=SimpleNamespace(attributes=attributes), levels=3)


@pytest.mark.usefixtures("module")
def test_a_module_displays_a_group_once_whatever_attributes_name_it():
    assert sections.rows_of(group(one=1, two=2)) == [("levels", "3")]
    assert sections.html_of(group(two=2)) == "<p>3</p>"


@pytest.mark.usefixtures("module")
def test_other_groups_have_no_more():
    assert sections.rows_of(group(three=3)) == []
    assert sections.html_of(group()) == ""
