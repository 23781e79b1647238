"""`Measurement`, the result of `zarrdask.measured`: requests, bytes, chunks and seconds."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from zarrdask.display.html import preformatted
from zarrdask.display.report import Displayed
from zarrdask.display.words import byte_size, counted
from zarrdask.errors import one_of, printable
from zarrdask.runtime.counters import Counts, Labels, add, total

#: The kinds of requests.
KINDS = ("GET", "HEAD", "LIST", "PUT", "DELETE")
#: The names of other counts in `Measurement.to_dict`.
_NAMES = {
    "refused": "refused",
    "repeated": "repeated",
    "fetched": "bytes_fetched",
    "stored": "bytes_stored",
    "decoded": "chunks_decoded",
    "encoded": "chunks_encoded",
    "cache_hits": "cache_hits",
    "waiting": "seconds_waiting",
    "decoding": "seconds_decoding",
    "encoding": "seconds_encoding",
    "locked": "seconds_locked",
    "elapsed": "seconds",
    "operations": "operations",
}
_SECONDS = ("waiting", "decoding", "encoding", "locked", "elapsed")
_COLUMNS = {
    **{kind: kind for kind in KINDS},
    **{name: name.replace("_", " ") for name in _NAMES if name != "operations"},
    "elapsed": "in all",
}
#: Bytes of a request from which on bandwidth takes more time than latency.
_LARGE_REQUEST = 2**20
#: The share of the time of the job that reads and writes take at least if they limit it.
_LEAST_SHARE = 0.5


class Measurement(Displayed):
    """The counts of a block, for each task prefix, array and store; `zarrdask.measured` yields it.

    Its attributes are the sums: `requests` (a dict by kind), `refused`, `repeated`,
    `bytes_fetched`, `bytes_stored`, `chunks_decoded`, `chunks_encoded`, `cache_hits`,
    `seconds_waiting` (for answers to requests), `seconds_decoding`, `seconds_encoding`,
    `seconds_locked` (waiting for locks of other writers), `seconds` (in reads and writes, summed
    over threads) and `operations` (reads and writes of regions).

    Attributes
    ----------
    seconds_elapsed : float
        The time for which was measured.
    """

    def __init__(self) -> None:
        self._ended = dict[Labels, Counts]()
        self._counted: Callable[[], Iterable[tuple[Labels, Counts]]] | None = None
        self.seconds_elapsed = 0.0

    def __getstate__(self) -> dict[str, Any]:
        # A copy is of the numbers so far.
        return vars(self) | {"_ended": self._rows, "_counted": None}

    def follow(self, counted: Callable[[], Iterable[tuple[Labels, Counts]]] | None) -> None:
        """Include the result of a function when numbers are requested; None keeps its last one."""
        if self._counted is not None:
            self.add_all(self._counted())
        self._counted = counted

    def add_all(self, rows: Iterable[tuple[Labels, Counts]]) -> None:
        """Add counts."""
        for labels, counts in rows:
            add(self._ended.setdefault(labels, {}), counts)

    @property
    def _rows(self) -> dict[Labels, Counts]:
        rows = {labels: dict(counts) for labels, counts in self._ended.items()}
        for labels, counts in () if self._counted is None else self._counted():
            add(rows.setdefault(labels, {}), counts)
        return rows

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in (*_NAMES.values(), "requests"):
            raise AttributeError(
                f"{type(self).__name__!r} has no attribute {name!r}; to_dict() has all numbers"
            )
        return _named(total(self._rows.values()))[name]

    # ---- results

    def by(self, *labels: str) -> dict[tuple[str, ...], dict[str, Any]]:
        """Return the numbers for each value of some of "task", "array" and "store".

        Parameters
        ----------
        *labels : {"task", "array", "store"}
            What the keys of the result consist of.

        Raises
        ------
        MetadataError
            If a label is none of these.
        """
        for label in labels:
            one_of(label, "labels", Labels._fields)
        groups = dict[tuple[str, ...], list[Counts]]()
        for row, counts in sorted(self._rows.items()):
            groups.setdefault(tuple(getattr(row, each) for each in labels), []).append(counts)
        return {key: _named(total(rows)) for key, rows in groups.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as values that JSON can represent."""
        rows = [
            {**dict(zip(Labels._fields, labels, strict=True)), **numbers}
            for labels, numbers in self.by(*Labels._fields).items()
        ]
        return {
            **_named(total(self._rows.values())),
            "seconds_elapsed": self.seconds_elapsed,
            "limited_by": self.limit[0],
            "rows": rows,
        }

    @property
    def limit(self) -> tuple[str, str]:
        """What limited the job, and why.

        "requests", "bandwidth", "decoding", "encoding", "locks" or "Dask" (and other code).
        """
        return _limit(total(self._rows.values()), self.seconds_elapsed)

    def _text(self) -> str:
        rows = self._rows
        is_one_store = len({labels.store for labels in rows}) <= 1
        fields = Labels._fields[:2] if is_one_store else Labels._fields
        names = [n for n in _COLUMNS if any(counts.get(n) for counts in rows.values())]
        groups = dict[tuple[str, ...], list[Counts]]()
        for labels, counts in sorted(rows.items(), key=lambda row: row[0].task == ""):
            groups.setdefault(tuple(getattr(labels, f) for f in fields), []).append(counts)
        table = [[*fields, *(_COLUMNS[name] for name in names)]]
        for key, each in groups.items():
            first = key[0] or "(no task)"
            table.append([first, *key[1:], *_cells(names, total(each))])
        if len(groups) != 1:
            everything = total(rows.values())
            table.append(["total", *("" for _ in fields[1:]), *_cells(names, everything)])
        limit, why = self.limit
        return f"{_columns(table, len(fields))}\nlimited by {limit}: {why}"

    def __repr__(self) -> str:
        return printable(f"<zarrdask.Measurement {self._summary()}>")

    def _summary(self) -> str:
        requests = counted(sum(self.requests.values()), "request")
        return f"{requests}, {byte_size(self.bytes_fetched)} fetched, limited by {self.limit[0]}"

    def _repr_html_(self) -> str:
        return preformatted(str(self))


def _named(counts: Counts) -> dict[str, Any]:
    """Return counts by the names of the attributes."""
    numbers = {
        long: round(counts.get(name, 0), 6) if name in _SECONDS else int(counts.get(name, 0))
        for name, long in _NAMES.items()
    }
    return {"requests": {kind: int(counts.get(kind, 0)) for kind in KINDS}, **numbers}


def _cells(names: Iterable[str], counts: Mapping[str, float]) -> list[str]:
    return [_cell(name, counts.get(name, 0)) for name in names]


def _cell(name: str, number: float) -> str:
    if name in _SECONDS:
        return f"{number:.3g} s"
    return byte_size(int(number)) if name in ("fetched", "stored") else str(int(number))


def _columns(table: list[list[str]], left: int) -> str:
    """Return rows of a table as text, with the first columns aligned to the left."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = (
        "  ".join(
            cell.ljust(width) if at < left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in table
    )
    return "\n".join(line.rstrip() for line in lines)


def _limit(counts: Counts, elapsed: float) -> tuple[str, str]:
    """Return the limit of a job that took `elapsed` seconds, and the reason."""
    busy = max(counts.get("elapsed", 0), sum(counts.get(n, 0) for n in _SECONDS[:-1]))
    if not busy or busy < _LEAST_SHARE * elapsed:
        took = f"reads and writes took {busy:.3g} of {elapsed:.3g} s"
        return "Dask", f"{took}; the rest is other code"
    longest = max(_SECONDS[:-1], key=lambda name: counts.get(name, 0))
    share = f"{counts.get(longest, 0) / busy:.0%} of the time of reads and writes"
    if longest != "waiting":
        return {"locked": "locks"}.get(longest, longest), f"{share} is spent on it"
    number = sum(counts.get(kind, 0) for kind in KINDS)
    nbytes = (counts.get("fetched", 0) + counts.get("stored", 0)) / max(number, 1)
    refused = int(counts.get("refused", 0))
    refusals = f", of which {refused} were refused" if refused else ""
    name = "bandwidth" if nbytes >= _LARGE_REQUEST and not refused else "requests"
    each = f"{counted(int(number), 'request')} of {byte_size(int(nbytes))} on average{refusals}"
    return name, f"{share} is waiting for {each}"
