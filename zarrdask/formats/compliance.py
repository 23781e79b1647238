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
from zarrdask.errors import ComplianceWarning, MetadataError, printable_lines, without_secrets

_strict: ContextVar[bool | None] = ContextVar("strict", default=None)

_quiet: ContextVar[bool] = ContextVar("quiet", default=False)

_deviations: ContextVar[list[str] | None] = ContextVar("deviations", default=None)


def is_strict() -> bool:
    """Whether deviations raise errors: by the innermost `strictness`, else by the setting."""
    strict = _strict.get()
    return bool(config.get("strict")) if strict is None else strict


def already_reported() -> bool:
    """Whether the documents that are parsed here were opened before, with their warnings.

    Then nothing is reported again, and what needs a setting was allowed where the node was opened.
    """
    return _quiet.get()


@contextmanager
def strictness(strict: bool | None, *, quiet: bool = False) -> Iterator[None]:  # noqa: FBT001
    """Set whether deviations raise errors, for the documents that are parsed in a ``with`` block.

    None keeps the current mode. `quiet` leaves out warnings, which were emitted when the node was
    opened.
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
    """Collect every deviation in a list of messages, instead of warning of the doubtful ones."""
    deviations: list[str] = []
    token = _deviations.set(deviations)
    try:
        with strictness(strict=False):
            yield deviations
    finally:
        _deviations.reset(token)


def report_deviation(
    rule: str,
    message: str,
    *,
    key: str,
    found: Any = None,
    expected: Any = None,
    warn: bool = False,
) -> None:
    """Report something that a rule forbids and that is read all the same; in strict mode, raise.

    `rule` is the id in the conformance list, such as "A-20", and `message` a description of the
    deviation. `warn` says that the interpretation is doubtful enough for a warning.
    """
    error = MetadataError(f"{message} ({rule})", key=key, found=found, expected=expected)
    if is_strict():
        raise error
    collected = _deviations.get()
    if collected is not None:
        collected.append(str(error))
    elif warn:
        warn_compliance(str(error))


def warn_compliance(text: str) -> None:
    """Warn that a document may have been read in another way than its writer meant."""
    text, collected = printable_lines(without_secrets(text)), _deviations.get()
    if collected is not None:
        collected.append(text)
    elif not _quiet.get():
        warnings.warn(text, ComplianceWarning, stacklevel=3)
