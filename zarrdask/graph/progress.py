"""How far long work has come, in one line on a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TextIO

#: In seconds: how often the line is written.
_PAUSE = 0.1
_WIDTH = 30


class Progress:
    """Counts what is done, and tells.

    Parameters
    ----------
    total : int
        How much there is to do.
    label : str
        What it is.
    out : file, optional
        Where it is told; nowhere, if absent.
    """

    def __init__(self, total: int, label: str, out: TextIO | None) -> None:
        self.done = 0
        self._total, self._label, self._out = total, label, out
        self._start, self._told = monotonic(), 0.0

    def advance(self, by: int = 1) -> None:
        """Count what was done."""
        self.done += by
        if self._out is not None and monotonic() - self._told >= _PAUSE:
            self._tell()

    def _tell(self, end: str = "") -> None:
        if self._out is None:
            return
        self._told = monotonic()
        part = self.done / self._total if self._total else 1.0
        bar = ("=" * int(part * _WIDTH)).ljust(_WIDTH)
        spent = self._told - self._start
        left = f", {spent / part - spent:.0f} s left" if 0 < part < 1 else ""
        line = f"{self._label} [{bar}] {part:4.0%} {self.done}/{self._total} {spent:.1f} s{left}"
        try:
            self._out.write(f"\r{line:<79}{end}")
            self._out.flush()
        except OSError:
            self._out = None  # whoever was told has gone: that is no reason to stop the work


@contextmanager
def progress(total: int, label: str, show: bool | TextIO = False) -> Iterator[Progress]:  # noqa: FBT001, FBT002
    """Count what is done of long work, and tell how far it has come.

    Parameters
    ----------
    total : int
        How much there is to do.
    label : str
        What it is.
    show : bool or file
        Whether it is told on standard error, or where.
    """
    out = sys.stderr if show is True else show or None
    told = Progress(total, label, out)
    told._tell()
    try:
        yield told
    finally:
        told._tell("\n")
