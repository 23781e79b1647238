"""Known deviations from the specifications: accepted with a warning, or errors in strict mode.

Code that reads more than the specifications allow calls `report_deviation` with the rule that is
broken, so that a single setting, ``zarrdask.strict``, turns all such deviations into errors.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from zarrdask import config
from zarrdask.errors import ComplianceWarning, MetadataError

_strict: ContextVar[bool | None] = ContextVar("strict", default=None)

_quiet: ContextVar[bool] = ContextVar("quiet", default=False)

_collected: ContextVar[list[str] | None] = ContextVar("collected", default=None)


def is_strict() -> bool:
    """Whether tolerances are errors: as the `strict` argument says, else as configured."""
    strict = _strict.get()
    return bool(config.get("strict")) if strict is None else strict


def already_reported() -> bool:
    """Whether what is parsed was opened before: what there was to say, or to allow, was then."""
    return _quiet.get()


@contextmanager
def strictness(strict: bool | None, *, quiet: bool = False) -> Iterator[None]:  # noqa: FBT001
    """Set whether tolerances are errors, for what is parsed within.

    Parameters
    ----------
    strict : bool or None
        None leaves it as it is.
    quiet : bool
        Whether warnings are left out: they were given where the node was opened.
    """
    tokens = (
        _strict.set(_strict.get() if strict is None else strict),
        _quiet.set(quiet or _quiet.get()),
    )
    try:
        yield
    finally:
        _strict.reset(tokens[0])
        _quiet.reset(tokens[1])


@contextmanager
def collect_deviations() -> Iterator[list[str]]:
    """Collect all that is accepted though a rule forbids it, instead of warning of some."""
    deviations: list[str] = []
    token = _collected.set(deviations)
    try:
        with strictness(strict=False):
            yield deviations
    finally:
        _collected.reset(token)


def report_deviation(
    rule: str,
    message: str,
    *,
    key: str,
    found: Any = None,
    expected: Any = None,
    warn: bool = False,
) -> None:
    """Note that something is accepted which a rule forbids.

    Parameters
    ----------
    rule : str
        Its id in the conformance list.
    message : str
        What is wrong, in words.
    key, found, expected
        As in `ZarrdaskError`.
    warn : bool
        Whether the reading is doubtful enough for a warning.

    Raises
    ------
    MetadataError
        In strict mode.
    """
    error = MetadataError(f"{message} ({rule})", key=key, found=found, expected=expected)
    if is_strict():
        raise error
    collected = _collected.get()
    if collected is not None:
        collected.append(str(error))
    elif warn:
        warn_compliance(str(error))


def warn_compliance(text: str) -> None:
    """Warn of a reading that may not be what the writer meant."""
    collected = _collected.get()
    if collected is not None:
        collected.append(text)
    elif not _quiet.get():
        warnings.warn(text, ComplianceWarning, stacklevel=3)
