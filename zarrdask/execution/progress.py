"""A progress bar, drawn by tqdm, for work that is done by tasks in any thread or process."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Literal, TextIO

from tqdm import tqdm

#: The seconds between two updates of the bar: on a terminal, and in a log, where each is a line.
TERMINAL_INTERVAL, LOG_INTERVAL = 0.1, 10.0
#: The options of tqdm for each unit.
_UNITS: dict[str, dict[str, Any]] = {
    "chunk": {"unit": " chunks"},
    "region": {"unit": " regions"},
    "block": {"unit": " blocks"},
    "byte": {"unit": "B", "unit_scale": True, "unit_divisor": 1024},
}


class _Bar(tqdm):  # type: ignore[misc]
    # No thread that monitors all bars, and no lock that is shared with other processes.
    monitor_interval = 0
    _lock = threading.RLock()


class _Output:
    """The output file of a progress bar. If writing fails, the work continues without the bar."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self._file.write(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._file.flush()

    @property
    def encoding(self) -> str:
        return getattr(self._file, "encoding", None) or "ascii"

    def fileno(self) -> int:
        return self._file.fileno()

    def isatty(self) -> bool:
        return bool(getattr(self._file, "isatty", lambda: False)())


class Progress:
    """The amount of work that is done. Threads may share it.

    Parameters
    ----------
    bar : tqdm
        The bar that displays the amount.
    """

    def __init__(self, bar: tqdm) -> None:
        self._bar, self._mutex = bar, threading.Lock()
        self.done = 0

    @property
    def is_shown(self) -> bool:
        """Whether the bar is displayed."""
        return not self._bar.disable

    def advance(self, by: int = 1) -> None:
        """Add an amount of completed work; a negative amount if work has to be repeated."""
        with self._mutex:
            self.done += by
            if by >= 0:
                self._bar.update(by)
            else:
                # tqdm decides by `last_print_n` whether there is anything new to display.
                self._bar.n = self._bar.last_print_n = self._bar.n + by
                self._bar.refresh()


@contextmanager
def progress(
    total: int,
    label: str,
    show: bool | TextIO = False,  # noqa: FBT001, FBT002
    *,
    unit: Literal["chunk", "region", "block", "byte"] = "chunk",
) -> Iterator[Progress]:
    """Display a progress bar during the block.

    Parameters
    ----------
    total : int
        The total amount of work.
    label : str
        A word for the work.
    show : bool or file, default False
        Whether to display the bar on standard error, or the file to write it to. If the file is
        not a terminal, the bar is written every ten seconds.
    unit : {"chunk", "region", "block", "byte"}, default "chunk"
        The unit of `total`.
    """
    out = _Output(sys.stderr if isinstance(show, bool) else show)
    interval = TERMINAL_INTERVAL if out.isatty() else LOG_INTERVAL
    with _Bar(
        total=total,
        desc=label,
        file=out,
        disable=show is False,
        mininterval=interval,
        maxinterval=interval,
        miniters=1,
        **_UNITS[unit],
    ) as bar:
        yield Progress(bar)
