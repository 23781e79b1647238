"""Errors for arguments: unknown names, and options that are neither True nor False."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

import numpy as np

from zarrdask.errors import MetadataError

P = ParamSpec("P")
R = TypeVar("R")

#: Names of arguments in other Zarr software, and the names of the same arguments here.
_SYNONYMS = {
    "array_path": "component",
    "attrs": "attributes",
    "chunk_shape": "chunks",
    "compressor": "compressors",
    "dims": "dimension_names",
    "dimension_separator": "separator",
    "filter": "filters",
    "max_memory": "max_mem",
    "name": "component",
    "object_codec": "filters",
    "path": "component",
    "serializer": "codecs",
    "shard_shape": "shards",
    "storage_option": "storage_options",
    "store": "url",
    "zarr_version": "zarr_format",
}


_SETTING = "use dask.config.set({'zarrdask.write-empty-chunks': True})"
#: Names of arguments in other software, and what does the same here.
_ELSEWHERE = {
    "data": "zarrdask.to_zarr(data, url) creates an array and stores values in it",
    "append_dim": "zarrdask.append makes an array longer, and zarrdask.xarray.to_zarr a dataset",
    "encoding": "pass the options of the array itself; zarrdask.xarray.to_zarr takes an encoding",
    "in_place": "zarrdask.upgrade(url) writes v3 metadata beside the metadata of v2",
    "other": "zarrdask.compare(a, b) compares two nodes",
    "remove_v2": "zarrdask.upgrade(url, remove_v2=True) removes the documents of v2",
    "cache_attrs": "attributes are read when the node is opened",
    "cache_metadata": "metadata is read when the node is opened",
    "config": f"{_SETTING}, for example",
    "read_only": "pass mode='r' or mode='r+'",
    "synchronizer": "nothing is needed: writers that share a chunk lock it",
    "write_empty_chunks": _SETTING,
    "group": "zarrdask.xarray takes one; here, component is the path of a node",
}
#: The replacement of an option of new arrays where a dataset is written.
_FOR_VARIABLE = "pass encoding={{'t': {{'{name}': ...}}}} for the variable 't'"
_FOR_ALL = ", or zarrdask.rechunk(ds, url, {name}=...) for all variables"
#: The same for arguments of one function, which others have.
_OF_FUNCTION = (
    {
        (function, name): text.format(name=name)
        for function, text in (
            ("to_zarr", _FOR_VARIABLE + _FOR_ALL),
            ("to_pyramid", _FOR_VARIABLE),
        )
        for name in ("chunks", "shards")
    }
    | {
        (function, name): "zarrdask.create_array(url, shape=..., dtype=...) creates an array"
        for function in ("open", "open_array")
        for name in ("shape", "dtype", "chunks", "fill_value", "compressor", "compressors")
    }
    | {
        (function, "shape"): "the shape is taken from the array"
        for function in ("to_zarr", "plan_write", "rechunk", "pyramid", "copy")
    }
)
#: The options of new arrays that functions which take an array take from it.
_FROM_ARRAY = {"shape"}
#: The replacement of positional arguments that a function took in earlier releases.
_POSITIONAL = {"verify": "zarrdask.compare(a, b) compares two nodes"}


def checks_booleans(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that options that are True or False take no other values."""
    booleans = _booleans(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        _check_booleans(kwargs, booleans)
        return function(*args, **kwargs)

    return call


def _booleans(function: Callable[..., Any]) -> dict[str, bool]:
    """Return the options of a function that are True or False, and whether None is permitted."""
    kinds = {bool: False, bool | None: True}
    parameters = signature(function).parameters.values()
    return {p.name: kinds[p.annotation] for p in parameters if p.annotation in kinds}


def _check_booleans(arguments: dict[str, Any], booleans: Mapping[str, bool]) -> None:
    for name, value in arguments.items():
        if type(value) is np.bool_:
            arguments[name] = bool(value)  # which may be compared by "is"
    for name in arguments.keys() & booleans.keys():
        value, optional = arguments[name], booleans[name]
        if not (isinstance(value, bool) or (value is None and optional)):
            # Any text, also "no", would count as True.
            raise MetadataError(
                "this option is either on or off",
                key=name,
                found=value,
                expected="True, False or None" if optional else "True or False",
            )


def suggests_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that its error for an unknown argument suggests a known one.

    Its options that are True or False take no other values.
    """
    parameters, booleans = signature(function).parameters, _booleans(function)
    # Functions that take any arguments pass them on to others, which check them.
    passes_on = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    hint = _POSITIONAL.get(function.__name__)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if hint is not None and len(args) > 1:
            raise TypeError(f"{function.__name__}() takes 1 positional argument; {hint}")
        if not (passes_on or kwargs.keys() <= parameters.keys()):
            check_options([name for name in kwargs if name not in parameters], function)
        _check_booleans(kwargs, booleans)
        return function(*args, **kwargs)

    return call


def check_options(
    options: Iterable[str],
    function: Callable[..., Any],
    kind: type | None = None,
    others: Iterable[str] = (),
) -> None:
    """Check that a function takes arguments of some names, or that a dataclass has such fields.

    `others` are more names that it takes. The error is the one that Python would raise; it names
    the argument that was probably meant.
    """
    known = {*others, *(() if kind is None else (field.name for field in fields(kind)))}
    known -= _FROM_ARRAY
    unknown = [name for name in options if name not in known]
    if not unknown:
        return
    parameters = signature(function).parameters.values()
    names = sorted({*(p.name for p in parameters if p.kind is not p.VAR_KEYWORD), *known})
    synonym = _SYNONYMS.get(unknown[0])
    suggestions = [synonym] if synonym in names else get_close_matches(unknown[0], names, 1)
    hint = f"did you mean {suggestions[0]!r}?" if suggestions else f"it has {', '.join(names)}"
    hint = _ELSEWHERE.get(unknown[0], hint)
    hint = _OF_FUNCTION.get((function.__name__, unknown[0]), hint)
    raise TypeError(
        f"{function.__name__}() got an unexpected keyword argument {unknown[0]!r}; {hint}"
    )
