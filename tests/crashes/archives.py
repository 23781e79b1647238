"""Zip archives that record the operations of the process on files, and let one of them go wrong.

An archive has no operations by key: each call writes a new file, which replaces the archive. What
can be interrupted is each operation on that file, and on the folder that has it.
"""

import builtins
import io
import os
import tempfile
from pathlib import Path
from typing import Any, ClassVar
from zipfile import ZipFile

import pytest

from tests.crashes.matrix import FOREIGN
from tests.crashes.stores import Mishap, Script
from zarrdask.storage.local import atomic, private
from zarrdask.storage.local.atomic import is_temporary
from zarrdask.storage.zip.store import ZipStore

#: The functions of `os` that change a folder, or the mode of a file.
_CHANGES = ("chmod", "link", "mkdir", "replace", "rmdir", "unlink")
_OPERATIONS = (*_CHANGES, "copy", "open", "truncate", "write")


class ScriptedArchive(ZipStore):
    """An archive in a folder of its own, which also has foreign files."""

    #: It also leaves temporary files, and parts of what it wrote.
    is_left_by_death: ClassVar = False
    #: The operations that can go wrong in each way.
    affected: ClassVar = {
        Mishap.DEATH: _OPERATIONS,
        Mishap.READ_ERROR: (),
        Mishap.ERROR: _OPERATIONS,
        Mishap.LATE_ERROR: (),
        Mishap.REFUSAL: (),
    }
    #: The folder of the folders of all archives.
    root: ClassVar[Path]
    current_script: ClassVar = Script()

    def __init__(self, values: dict[str, bytes]) -> None:
        self.script = Script()
        self.folder = Path(tempfile.mkdtemp(dir=self.root))
        super().__init__(self.folder / "a.zip")
        for key, value in FOREIGN.items():
            (self.folder / key).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / key).write_bytes(value)
        with self.batch():
            for key, value in values.items():
                if key not in FOREIGN:
                    self.set(key, value)

    @property
    def script(self) -> Script:
        """What happens to the operations of this process on files."""
        return self.current_script

    @script.setter
    def script(self, script: Script) -> None:
        ScriptedArchive.current_script = script

    @property
    def values(self) -> dict[str, bytes]:
        """The values in the archive, as another program reads them, and the other files."""
        found = dict[str, bytes]()
        for path in self.folder.rglob("*"):
            name = str(path.relative_to(self.folder))
            if any(map(is_temporary, path.relative_to(self.folder).parts)):
                continue  # the next process that writes removes it
            if path.suffix == ".zip":
                with ZipFile(path) as archive:
                    assert archive.testzip() is None
                    found |= {member: archive.read(member) for member in archive.namelist()}
            elif path.is_file():
                found[name] = path.read_bytes()
        return found


class _File(io.FileIO):
    """A file whose changes are operations of the script."""

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        return _run("write", super().write, (view,), (view[: len(view) // 2],))

    def truncate(self, size: int | None = None) -> int:
        return _run("truncate", super().truncate, (size,))


def _run(name: str, operation: Any, arguments: Any, part: Any = None) -> Any:
    """Run an operation as the script says: a process dies when it did that with `part`."""
    return ScriptedArchive.current_script.run(
        name,
        str(arguments[0]) if name in _CHANGES else "",
        lambda: operation(*arguments),
        lambda: part and operation(*part),
    )


def record(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Record the operations of this process on files in a folder, where archives are created.

    What a process left that died is removed by the next one at once.
    """
    monkeypatch.setattr(ScriptedArchive, "root", folder, raising=False)
    monkeypatch.setattr(atomic, "ABANDONED_AFTER", -1)
    monkeypatch.setattr(atomic, "is_alive", lambda process: False)
    # Called while the archive is written, by this process, which does live then.
    monkeypatch.setattr(private, "tidy", lambda folder: None)
    for name in _CHANGES:
        monkeypatch.setattr(os, name, _recorded(name, getattr(os, name)))
    copy, open_file = os.copy_file_range, builtins.open

    def copy_range(source: int, target: int, count: int) -> int:
        return _run("copy", copy, (source, target, count), (source, target, count // 2))

    def open_recorded(path: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if mode != "x+b" or not _is_recorded(path):
            return open_file(path, mode, *arguments, **options)
        opener = options.get("opener")
        file = _run("open", lambda *given: _File(*given, opener=opener), (path, mode))
        return io.BufferedRandom(file)

    monkeypatch.setattr(os, "copy_file_range", copy_range)
    monkeypatch.setattr(builtins, "open", open_recorded)


def _recorded(name: str, operation: Any) -> Any:
    def call(path: Any, *arguments: Any, **options: Any) -> Any:
        if not _is_recorded(path):
            return operation(path, *arguments, **options)
        return _run(name, lambda *given: operation(*given, **options), (path, *arguments))

    return call


def _is_recorded(path: Any) -> bool:
    # Names without a folder are those of a folder that is being removed.
    return not os.path.isabs(path) or Path(path).is_relative_to(ScriptedArchive.root)
