"""`dask.array.from_zarr` and `to_zarr` by zarrdask, for programs that can't be changed.

Call `install` once, or use `installed` as a context manager. A call with an argument that only
zarr-python has, or of an array that zarrdask can't read, is made by Dask's own function.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import partial, wraps
from inspect import Parameter, signature
from threading import RLock
from typing import Any, Literal

import dask  # noqa: F401
import dask.array as da
from dask.array import core

from zarrdask.arrays.nodes.open import open_array
from zarrdask.errors import UnsupportedError
from zarrdask.formats.metadata.array_options import ArrayOptions
from zarrdask.parallel.graph.from_zarr import from_zarr as read
from zarrdask.parallel.graph.to_zarr import to_zarr as write
from zarrdask.storage.adapters.zarr_python import is_zarr_object

#: Dask's own functions, by name, while ours are installed.
_ORIGINALS: dict[str, Callable[..., Any]] = {}
_LOCK = RLock()

#: The options of new arrays that zarr-python and Dask name differently.
_RENAMED = {"name": "component", "compressor": "compressors", "dimension_separator": "separator"}
#: The options for which zarr-python has a default, "auto".
_CODECS = {"compressors", "filters"}
#: The arguments of zarr-python that say how a store is opened for reading.
_MODES = {"mode": ("r", "r+", "a"), "read_only": (True, False)}
#: The options of `to_zarr`; the shape and the data type follow from the Dask array.
_WRITE_OPTIONS = {
    *signature(write).parameters,
    *(field.name for field in fields(ArrayOptions)),
} - {"shape", "dtype"}
_READ_OPTIONS = {*signature(read).parameters}


def install(*, chunks: Literal["auto", "stored"] = "auto") -> None:
    """Make `dask.array.from_zarr` and `to_zarr` call zarrdask, from now on and in this process.

    A name that was imported before, by ``from dask.array import from_zarr``, keeps Dask's function.

    Parameters
    ----------
    chunks : {"auto", "stored"}, default "auto"
        The blocks of a `from_zarr` without `chunks`: stored chunks or shards joined to blocks of
        ``zarrdask.block-size``, or, as in Dask, one block for each.

    Examples
    --------
    >>> import dask.array as da
    >>> from zarrdask.compat.dask import install, uninstall
    >>> install()
    >>> da.to_zarr(da.ones((4, 4), chunks=2), "ones.zarr")  # doctest: +SKIP
    >>> uninstall()
    """
    with _LOCK:
        if _ORIGINALS:
            return
        for verb, by_zarrdask in (
            ("from_zarr", partial(_from_zarr, chunks)),
            ("to_zarr", _to_zarr),
        ):
            original = getattr(core, verb)
            _ORIGINALS[verb] = original
            _replace(verb, _replacement(original, by_zarrdask))


def uninstall() -> None:
    """Give `dask.array.from_zarr` and `to_zarr` back to Dask."""
    with _LOCK:
        while _ORIGINALS:
            _replace(*_ORIGINALS.popitem())


@contextmanager
def installed(*, chunks: Literal["auto", "stored"] = "auto") -> Iterator[None]:
    """Make the functions of Dask call zarrdask in a ``with`` block, in all threads: see `install`.

    If they do already, nothing changes.
    """
    with _LOCK:
        was_installed = bool(_ORIGINALS)
        install(chunks=chunks)
    try:
        yield
    finally:
        if not was_installed:
            uninstall()


def _replace(verb: str, function: Callable[..., Any]) -> None:
    # `Array.to_zarr` calls the function of the module that defines it.
    for module in (core, da):
        setattr(module, verb, function)


def _replacement(
    original: Callable[..., Any], by_zarrdask: Callable[[dict[str, Any]], Any]
) -> Callable[..., Any]:
    """Return a function of Dask that calls zarrdask first, and Dask's own where that is needed."""

    @wraps(original)
    def verb(*args: Any, **kwargs: Any) -> Any:
        result = by_zarrdask(_arguments(original, args, kwargs))
        return original(*args, **kwargs) if result is NotImplemented else result

    return verb


def _arguments(
    verb: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a call by name: their order depends on the release of Dask."""
    bound = signature(verb).bind(*args, **kwargs)
    given = dict(bound.arguments)
    for parameter in bound.signature.parameters.values():
        if parameter.kind is Parameter.VAR_KEYWORD:
            given.update(given.pop(parameter.name, {}))
    return given


def _from_zarr(chunks: str, given: dict[str, Any]) -> Any:
    """Read by zarrdask; return NotImplemented if it does not support the arguments or the array."""
    for name, values in _MODES.items():
        if given.get(name, values[0]) not in values:
            return NotImplemented
        given.pop(name, None)
    if given.get("chunks") is None:
        given["chunks"] = chunks
    if not given.keys() <= _READ_OPTIONS:
        return NotImplemented
    try:
        return read(**given)
    except UnsupportedError:
        return NotImplemented


def _to_zarr(given: dict[str, Any]) -> Any:
    """Write by zarrdask; return NotImplemented if it does not support the call."""
    x, url = given.pop("arr"), given.pop("url")
    if is_zarr_object(url, "Array"):
        try:
            url = open_array(url, mode="r" if url.read_only else "r+")
        except UnsupportedError:
            return NotImplemented
        # These describe new arrays and stores.
        given = {name: given[name] for name in given.keys() & _OF_EXISTING}
    for name, ours in _RENAMED.items():
        if name in given:
            given[ours] = given.pop(name)
    for name in _CODECS & given.keys():
        value = given.pop(name)
        if not (isinstance(value, str) and value == "auto"):
            # In zarr-python, None means no codec.
            given[name] = () if value is None else value
    if not given.keys() <= _WRITE_OPTIONS:
        return NotImplemented
    return write(x, url, **given)


#: The arguments of `to_zarr` that count where an open array is overwritten.
_OF_EXISTING = {"region", "compute", "return_stored"}
