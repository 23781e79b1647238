"""A package is imported before its modules."""

import builtins
import sys

import pytest

from zarrdask.runtime.packages import load_module


def test_packages_come_first(tmp_path, monkeypatch):
    (tmp_path / "outer" / "inner").mkdir(parents=True)
    note = "import builtins; builtins.seen_imports.append(__name__)\n"
    for path in ("outer/__init__.py", "outer/inner/__init__.py", "outer/inner/leaf.py"):
        (tmp_path / path).write_text(note)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(builtins, "seen_imports", [], raising=False)
    try:
        assert load_module("outer.inner.leaf").__name__ == "outer.inner.leaf"
        assert builtins.seen_imports == ["outer", "outer.inner", "outer.inner.leaf"]
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "outer"]:
            del sys.modules[name]


def test_a_package_that_is_not_installed_is_named():
    with pytest.raises(ModuleNotFoundError) as caught:
        load_module("package_that_nobody_has.module")
    assert caught.value.name == "package_that_nobody_has"
