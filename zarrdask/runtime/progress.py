"""Display progress: a bar on a terminal or in a notebook, lines in a log, calls of a function.

The work is done by tasks in any thread or process.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any, ClassVar, Literal, Protocol, TextIO
from uuid import uuid4

from zarrdask import config
from zarrdask.errors import MetadataError

#: The argument of a user: whether to show a bar, the file to write it to, or a function that is
#: called with the finished work, all work, and the bytes of the finished work.
Show = bool | TextIO | Callable[[int, int, int], object]
#: The seconds between two updates of a bar or a function, and between two lines of a log.
TERMINAL_INTERVAL, LOG_INTERVAL = 0.1, 10.0
#: Totals of this process whose growth is displayed beside the progress, by what they count. A room
#: above this one registers its function, such as one that counts refused requests.
TOTALS: dict[str, Callable[[], int]] = {}
#: The size in bytes below which no eager read or write shows a bar, for any setting.
_MIN_EAGER_BYTES = 2**20
#: The form of a line in a log or in a notebook, and of a bar on a terminal.
_LINE = "{desc}: {percentage:3.0f}% {n_fmt}/{total_fmt} [{elapsed}<{remaining}, RATE]"
_BAR = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}, RATE]"


class Progress:
    """The amount of work that is done. Threads may share it.

    The arguments are the same as for `progress`; `total` is counted in the `unit`.
    """

    def __init__(self, total: int, label: str, unit: str, nbytes: int) -> None:
        self.total, self.label, self.unit, self.nbytes = total, label, unit, nbytes
        self.done = self._before = 0
        self._start = self._shown_at = monotonic()
        self._mutex = threading.Lock()
        self._display: _Display | None = None
        #: The totals when the work began, if it is displayed.
        self._totals_before: dict[str, int] = {}

    @property
    def is_shown(self) -> bool:
        """Whether progress is displayed."""
        return self._display is not None

    @property
    def bytes_done(self) -> int:
        """The bytes of the work that is done; 0 if they are not known.

        If the work is not counted in bytes, all parts of it are assumed to have the same size.
        """
        if self.unit == "byte":
            return self.done
        return self.nbytes * self.done // max(self.total, 1)

    def advance(self, by: int = 1) -> None:
        """Add an amount of completed work; a negative amount if work has to be repeated."""
        with self._mutex:
            self.done += by
            display, now = self._display, monotonic()
            if display is not None and (by < 0 or now - self._shown_at >= display.interval()):
                self._shown_at = now
                display.show(self)

    def resume(self, by: int) -> None:
        """Add work that was done before: it counts as done, but not for the rate."""
        self._before += by
        self.advance(by)

    def line(self, template: str = _BAR, **layout: Any) -> str:
        """Return a line of text with the work that is done, the rate and the time left."""
        from tqdm import tqdm

        seconds = max(monotonic() - self._start, 1e-9)
        done = max(self.done - self._before, 0)
        nbytes = done if self.unit == "byte" else self.nbytes * done // max(self.total, 1)
        rates = [] if self.unit == "byte" else [_rate(done / seconds, self.unit)]
        if self.unit == "byte" or self.nbytes:
            rates.append(tqdm.format_sizeof(nbytes / seconds, "B/s"))
        for name, before in self._totals_before.items():
            growth = TOTALS[name]() - before
            rates += [f"{name}: {growth}"] if growth > 0 else []
        text: str = tqdm.format_meter(
            self.done,
            self.total,
            seconds,
            initial=self.done - done,
            prefix=self.label,
            bar_format=template.replace("RATE", ", ".join(rates)),
            unit="B",
            unit_scale=self.unit == "byte",
            **layout,
        )
        return text


def _rate(rate: float, unit: str) -> str:
    """Return a rate as text.

    >>> _rate(120.4, "chunk"), _rate(0.25, "region")
    ('120 chunks/s', '4.0 s/region')
    """
    if 0 < rate < 1:
        return f"{1 / rate:.1f} s/{unit}"
    return f"{rate:.{0 if rate >= 100 else 1}f} {unit}s/s"


class _Display(Protocol):
    """Shows the progress of work."""

    def interval(self) -> float:
        """Return the least number of seconds between two calls of `show`."""

    def show(self, progress: Progress) -> None:
        """Display the progress of the work."""

    def close(self, progress: Progress) -> None:
        """Show the last state."""


class _File:
    """A file that a bar or lines are written to. If that fails, the work continues without it."""

    def __init__(self, file: TextIO) -> None:
        self.file = file

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self.file.write(text)
            self.file.flush()


class _Bar(_File):
    """A bar on a terminal, in one line that is written again and again.

    If there are several bars on one terminal, only the first is shown until it is closed. A bar
    that is closed earlier leaves its last line above.
    """

    #: The bars of all terminals that are not closed yet, the oldest first.
    _open: ClassVar[list["_Bar"]] = []

    def __init__(self, file: TextIO, *, leave: bool) -> None:
        super().__init__(file)
        self._leave, self._width = leave, 0
        self._open.append(self)

    def interval(self) -> float:
        return TERMINAL_INTERVAL

    def show(self, progress: Progress) -> None:
        if self._shown() is self:
            text = self._line(progress)
            # Spaces cover what a longer text has left.
            self.write(f"\r{text.ljust(self._width)}")
            self._width = len(text)

    def _shown(self) -> "_Bar | None":
        return next((bar for bar in tuple(self._open) if bar.file is self.file), None)

    def _line(self, progress: Progress) -> str:
        from shutil import get_terminal_size

        encoding = getattr(self.file, "encoding", None) or "ascii"
        columns = max(get_terminal_size().columns - 1, 20)
        return progress.line(ncols=columns, ascii=not encoding.lower().startswith("utf"))

    def close(self, progress: Progress) -> None:
        shown = self._shown() or self
        try:
            if self._leave:
                self.write(f"\r{self._line(progress).ljust(shown._width)}\n")
            elif shown is self:
                self.show(progress)
                self.write(f"\r{' ' * self._width}\r")
        finally:
            self._open.remove(self)


class _Lines(_File):
    """Lines in a log or a pipe."""

    def interval(self) -> float:
        return LOG_INTERVAL

    def show(self, progress: Progress) -> None:
        self.write(f"{progress.line(_LINE)}\n")

    def close(self, progress: Progress) -> None:
        self.show(progress)


class _Notebook:
    """A bar in the output of a notebook's cell."""

    def __init__(self) -> None:
        self._id = f"zarrdask-{uuid4().hex}"
        self._is_new = True

    def interval(self) -> float:
        return 2 * TERMINAL_INTERVAL

    def show(self, progress: Progress) -> None:
        from IPython.display import display

        from zarrdask.display.html import progress_bar

        text = progress.line(_LINE)
        content = {
            "text/plain": text,
            "text/html": progress_bar(progress.done, progress.total, text),
        }
        display(content, raw=True, display_id=self._id, update=not self._is_new)
        self._is_new = False

    def close(self, progress: Progress) -> None:
        self.show(progress)


class _Call:
    """Calls of a user's function."""

    def __init__(self, function: Callable[[int, int, int], object]) -> None:
        self._function = function
        self._last_done: int | None = None

    def interval(self) -> float:
        return TERMINAL_INTERVAL

    def show(self, progress: Progress) -> None:
        self._last_done = progress.done
        self._function(progress.done, progress.total, progress.bytes_done)

    def close(self, progress: Progress) -> None:
        if self._last_done != progress.done:
            self.show(progress)


def _display(show: Show, *, leave: bool) -> _Display | None:
    if show is False:
        return None
    if callable(show):
        return _Call(show)
    if show is True and in_notebook():
        return _Notebook()
    file = sys.stderr if isinstance(show, bool) else show
    if file is None:  # the process was started without standard error
        return None
    if not hasattr(file, "write"):
        raise MetadataError(
            "invalid value for progress",
            key="progress",
            found=file,
            expected="True, False, a file, or a function of (done, total, bytes)",
        )
    is_terminal = bool(getattr(file, "isatty", lambda: False)())
    return _Bar(file, leave=leave) if is_terminal else _Lines(file)


def eager_show(nbytes: int) -> bool:
    """Whether an eager read or write shows a bar: if it is large, in a terminal or notebook."""
    if nbytes < _MIN_EAGER_BYTES or threading.current_thread() is not threading.main_thread():
        return False
    limit = config.get("progress-size")
    if limit is None or nbytes < limit:
        return False
    return in_notebook() or (sys.stderr is not None and sys.stderr.isatty())


def in_notebook() -> bool:
    """Whether the code runs in a cell of a notebook."""
    if "IPython" not in sys.modules:
        return False
    shell = sys.modules["IPython"].get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def progress(
    total: int,
    label: str,
    show: Show = False,  # noqa: FBT002
    *,
    unit: Literal["chunk", "region", "block", "byte"] = "chunk",
    nbytes: int = 0,
    leave: bool = True,
) -> Iterator[Progress]:
    """Display the progress of the work that is done in the block.

    Parameters
    ----------
    total : int
        The total amount of work.
    label : str
        A word for the work.
    show : bool, file or callable, default False
        Whether to show a bar: in the output of a notebook's cell, or on standard error; or the file
        to write it to. If the file is not a terminal, it gets a line every ten seconds. Or a
        function, which is called with the work that is done, the total, and the bytes of the work
        that is done (0 if they are not known), a few times a second and at the end.
    unit : {"chunk", "region", "block", "byte"}, default "chunk"
        The unit of `total`.
    nbytes : int, default 0
        The bytes of all work, if they are known.
    leave : bool, default True
        Whether the bar stays on the terminal.
    """
    work = Progress(total, label, unit, nbytes)
    work._display = display = _display(show, leave=leave)
    if display is None:
        yield work
        return
    work._totals_before = {name: total() for name, total in TOTALS.items()}
    try:
        yield work
    finally:
        display.close(work)
