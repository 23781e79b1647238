"""Settings. They live in Dask's configuration, under ``zarrdask``, so one mechanism serves both."""

import os
from functools import cache
from importlib import import_module
from numbers import Integral
from typing import Any

from zarrdask.errors import MetadataError

#: Sizes are less than this: no memory is larger, and libraries take 64 bits.
MAX_SIZE = 2**63

DEFAULTS: dict[str, Any] = {
    # Bytes: neighbouring stored units are grouped into one Dask block up to this size.
    "block-size": 16 * 2**20,
    # Threads of an eager read or write (z[...]); null means one for each core.
    "threads": None,
    # Bytes: memory of blocks that is kept, to be used again; 0 keeps none.
    "keep-memory": 256 * 2**20,
    # Whether a unit that holds only the fill value is stored all the same.
    "write-empty-chunks": False,
    # Where the files are by which processes lock stored units; null is the temporary directory.
    "lock-directory": None,
    # Whether symbolic links below the root of a local store are followed.
    "follow-links": True,
    # Whether what the specifications forbid, but real writers make, is refused.
    "strict": False,
    # What becomes of NaN and infinities in new attributes, which JSON can't express: "write", as
    # zarr-python and xarray do, or "refuse".
    "non-finite-attributes": "write",
    # Whether a v2 array that does not name its separator is looked at, whether it is nested.
    "v2-nested-legacy": False,
    # What becomes of consolidated metadata when a node that they tell of is changed: "drop" or
    # "update".
    "consolidated-after-change": "drop",
    # Whether a prefix without a document is read as a v3 group if something is below it.
    "implicit-groups": False,
    # Whether an unknown data type of the v3 draft is read as one of its fallbacks.
    "draft-fallback": False,
    # Whether a group of the v3 draft that has no document gets one when the last node below it
    # is erased; it vanishes otherwise.
    "draft-keep-groups": False,
    # Bytes: the size of a chunk, and of a shard, that "auto" aims at.
    "chunk-size": 2**20,
    "shard-size": 64 * 2**20,
    # Ranges of one value closer than this many bytes are read as one (stores with latency).
    "coalesce-gap": 64 * 2**10,
    # Requests that one call keeps in flight (stores with latency).
    "requests": 64,
    # The package that opens URLs of object stores and of HTTP servers: "fsspec" or "obstore".
    "remote": "fsspec",
    # How often an operation is tried again that failed for a passing reason, and the longest
    # pause before that, in seconds.
    "retries": 5,
    "retry-delay": 10,
}

#: The least values of settings that can't be 0.
_LEAST = {"requests": 1}


@cache
def _dask_config() -> Any:
    # The one use of Dask below graph/, and only when a setting is asked for: opening a store
    # and looking at it must not pay for the import.
    config = import_module("dask.config")
    config.update_defaults({"zarrdask": DEFAULTS})
    return config


def get(name: str) -> Any:
    """Return the setting ``zarrdask.<name>``; a size may be written as "16 MiB".

    Raises
    ------
    MetadataError
        If its value is none that it can have. The error names its key.

    Examples
    --------
    >>> get("block-size")
    16777216
    """
    # With the default again: leaving `with dask.config.set(...)` may take all of ours away.
    default = DEFAULTS[name]
    value = _dask_config().get(f"zarrdask.{name}", default)
    if value is default:
        return value
    key = f"zarrdask.{name}"
    if isinstance(default, bool):
        return _flag(value, key)
    if name == "retry-delay":
        return _seconds(value, key)
    if isinstance(default, int):
        return _count(value, key, least=_LEAST.get(name, 0))
    if name == "threads":
        return None if value is None else _count(value, key, least=1)
    if not isinstance(value, str | os.PathLike | None):
        raise MetadataError(
            "this setting has a value of another type", key=key, found=value, expected="text"
        )
    return value


def _flag(value: Any, key: str) -> bool:
    if isinstance(value, bool | int) and value in (0, 1):
        return bool(value)
    raise MetadataError(
        "this setting is either on or off", key=key, found=value, expected="true or false"
    )


def _count(value: Any, key: str, *, least: int = 0) -> int:
    number = parse_size(value, key)
    if number < least:
        raise MetadataError(
            "this setting is too small", key=key, found=value, expected=f"at least {least}"
        )
    return number


def _seconds(value: Any, key: str) -> float:
    # Written so that NaN does not pass.
    if isinstance(value, int | float) and 0 <= value < float("inf"):
        return value
    raise MetadataError(
        "this setting is a time", key=key, found=value, expected="a number of seconds from 0"
    )


def parse_size(value: Any, key: str) -> int:
    """Return a number of bytes that a user wrote as a number, or as text with a unit.

    Parameters
    ----------
    value : int, float or str
    key : str
        The option or setting, for errors.

    Raises
    ------
    MetadataError
        If it is not a finite number, is negative, or is larger than any memory.

    Examples
    --------
    >>> parse_size("256 MiB", "max_mem")
    268435456
    """
    try:
        size = int(value if isinstance(value, Integral) else _parse_bytes(value))
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise _no_size(value, key) from error
    if isinstance(value, bool) or not 0 <= size < MAX_SIZE:
        raise _no_size(value, key)
    return size


def _parse_bytes(value: Any) -> Any:
    return import_module("dask.utils").parse_bytes(value)


def _no_size(value: Any, key: str) -> MetadataError:
    return MetadataError(
        "not a size in bytes",
        key=key,
        found=value,
        expected=f'a number of bytes from 0 to {MAX_SIZE - 1}, or a text such as "256 MiB"',
    )
