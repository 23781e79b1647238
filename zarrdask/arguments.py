"""Options that a verb hands on to what it makes: one that is unknown is an error of the call."""

from collections.abc import Callable, Iterable
from dataclasses import fields
from difflib import get_close_matches
from inspect import signature
from typing import Any


def check_options(given: Iterable[str], verb: Callable[..., Any], kind: type) -> None:
    """Check that a verb has options of such names.

    Parameters
    ----------
    given : iterable of str
        The names.
    verb : callable
        What was called.
    kind : type
        A dataclass of the options that it hands on.

    Raises
    ------
    TypeError
        As for any unknown argument; it names the one that is meant perhaps, or else all.
    """
    known = {field.name for field in fields(kind)}
    unknown = [name for name in given if name not in known]
    if not unknown:
        return
    own = [p.name for p in signature(verb).parameters.values() if p.kind is not p.VAR_KEYWORD]
    names = sorted({*own, *known})
    meant = get_close_matches(unknown[0], names, 1)
    hint = f"did you mean {meant[0]!r}?" if meant else f"it has {', '.join(names)}"
    raise TypeError(f"{verb.__name__}() got an unexpected keyword argument {unknown[0]!r}; {hint}")
