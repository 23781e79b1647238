"""Errors for arguments that a verb does not have: they name the one that was meant."""

from collections.abc import Callable, Iterable
from dataclasses import fields
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

#: Names that other Zarr software has for the same.
_SYNONYMS = {
    "attrs": "attributes",
    "compressor": "compressors",
    "dims": "dimension_names",
    "dimension_separator": "separator",
    "filter": "filters",
    "max_memory": "max_mem",
    "object_codec": "filters",
    "path": "component",
    "serializer": "codecs",
    "shard_shape": "shards",
    "storage_option": "storage_options",
    "zarr_version": "zarr_format",
}


def suggests_arguments(verb: Callable[P, R]) -> Callable[P, R]:
    """Let a verb name the argument that was probably meant by one that it does not have."""
    known = set(signature(verb).parameters)

    @wraps(verb)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not kwargs.keys() <= known:
            check_options([name for name in kwargs if name not in known], verb)
        return verb(*args, **kwargs)

    return call


def check_options(
    options: Iterable[str], verb: Callable[..., Any], kind: type | None = None
) -> None:
    """Check that a verb has options of such names.

    Parameters
    ----------
    options : iterable of str
        The names.
    verb : callable
        What was called.
    kind : type, optional
        A dataclass of the options that it hands on.

    Raises
    ------
    TypeError
        As for any unknown argument. It names the one that was probably meant, or else all.
    """
    known = set() if kind is None else {field.name for field in fields(kind)}
    unknown = [name for name in options if name not in known]
    if not unknown:
        return
    own = [p.name for p in signature(verb).parameters.values() if p.kind is not p.VAR_KEYWORD]
    names = sorted({*own, *known})
    synonym = _SYNONYMS.get(unknown[0])
    meant = [synonym] if synonym in names else get_close_matches(unknown[0], names, 1)
    hint = f"did you mean {meant[0]!r}?" if meant else f"it has {', '.join(names)}"
    raise TypeError(f"{verb.__name__}() got an unexpected keyword argument {unknown[0]!r}; {hint}")
