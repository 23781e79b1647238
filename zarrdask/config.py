"""Settings, which are part of Dask's configuration, under ``zarrdask``."""

import os
import sys
import warnings
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib import import_module
from numbers import Integral
from typing import TYPE_CHECKING, Any

from zarrdask.errors import MetadataError, no_name, one_of

#: Names of zarr-python's settings, and what to use here.
OTHER_NAMES = dict.fromkeys(
    ("set", "reset", "enable_gpu"),
    'use dask.config.set({"zarrdask.threads": 4}); the page on configuration has all settings',
)
#: All sizes are less than this: no memory is larger, and libraries use 64 bits.
MAX_SIZE = 2**63

DEFAULTS: dict[str, Any] = {
    # Bytes: neighbouring chunks or shards are grouped into one Dask block up to this size.
    "block-size": 16 * 2**20,
    # Whether small blocks are fused to larger tasks, and equal tasks on missing blocks to one.
    "fuse": True,
    # Bytes, and a number: a fused task has several small blocks, up to these limits.
    "fuse-size": 16 * 2**20,
    "fuse-blocks": 256,
    # The number of threads of an eager read or write (z[...]); null means one for each core.
    "threads": None,
    # Bytes: an eager read or write of at least this size shows a progress bar on a terminal and in
    # a notebook; null shows none.
    "progress-size": 2**30,
    # Bytes: unused memory of blocks that is kept to be reused; 0 keeps none.
    "keep-memory": 256 * 2**20,
    # Whether a chunk or shard is stored even if it has no value but the fill value.
    "write-empty-chunks": False,
    # Which values are cast to the data type of an array: all that NumPy casts ("numpy"), or only
    # what its rules "same_kind" or "safe" permit; null means "numpy", except that rewrites check
    # each value.
    "casting": None,
    # How an append of a dataset is treated if its attributes `units` differ from the stored ones,
    # or its index does not continue the stored one: with a warning ("warn"), an "error", or neither
    # ("off").
    "append-checks": "warn",
    # The directory of the files by which processes lock chunks; null means one in the directory
    # for temporary files.
    "lock-directory": None,
    # Whether symbolic links below the root of a local store are followed.
    "follow-links": True,
    # Whether references (kerchunk, VirtualiZarr) may be to local files.
    "local-references": False,
    # Whether known deviations of other software from the specifications raise errors.
    "strict": False,
    # How NaN and infinities in new attributes, which JSON can't express, are treated: "write", as
    # zarr-python and xarray do, or "refuse".
    "non-finite-attributes": "write",
    # Whether the keys of a v2 array without a dimension separator are examined for nesting.
    "v2-nested-legacy": False,
    # How chunks that are not stored are read: as the fill value ("fill"), or by an "error".
    "missing": "fill",
    # The meaning of the answer "403 Forbidden" to a read: an "error", or a "missing" value.
    "forbidden": "error",
    # How consolidated metadata is treated when a node in it is changed: "drop" or "update".
    "consolidated-after-change": "drop",
    # Whether new arrays get a stored manifest, and all writes to an array keep it up to date.
    "manifests": False,
    # Whether a prefix without a document is read as a v3 group if there are keys below it.
    "implicit-groups": False,
    # Whether a new node may have another format than the groups above it, where other software does
    # not see it.
    "mixed-formats": False,
    # Whether an array of the v3 draft with an unknown data type is read as one of its fallbacks.
    "draft-fallback": False,
    # Whether an implicit group of the v3 draft gets a document when the last node below it is
    # erased; otherwise it vanishes.
    "draft-keep-groups": False,
    # Bytes: the target size of a chunk, and of a shard, for "auto".
    "chunk-size": 2**20,
    "shard-size": 64 * 2**20,
    # The order of the chunks in a written shard: "c", "f" or "morton".
    "shard-order": "c",
    # Bytes: ranges of a value with a smaller gap are read by one request (stores with latency).
    "coalesce-gap": 64 * 2**10,
    # Bytes: chunks, and shards that are read whole, of more than four times this size are read by
    # requests for ranges of it (stores with latency); 0 reads each by one request.
    "range-size": 8 * 2**20,
    # Bytes: the size of the cache of shard indexes and of headers of chunks that are read in parts
    # (of remote stores that send ETags); 0 for none.
    "index-cache-size": 32 * 2**20,
    # Bytes: decoded chunks that a process caches for later reads; 0 caches only chunks that
    # overlapping blocks share, up to half of keep-memory. The cache counts towards keep-memory.
    "cache-size": 0,
    # The directory of the cache of remote values, on a local disk; null caches none there. Its size
    # in bytes. Whether only the cache is used, and no request is sent. All three are read where an
    # array is opened.
    "cache-directory": None,
    "cache-bytes": 10 * 2**30,
    "cache-offline": False,
    # The number of simultaneous requests of one call (stores with latency).
    "requests": 64,
    # The number of requests per second that a process sends to a bucket or host at most, for reads
    # and for writes; 0 is no limit. Stores that refuse requests get fewer in any case.
    "requests-per-second": 0,
    # Prices for plans: a mapping with a price for 1,000 requests of a class ("GET", "PUT"), and for
    # each GiB that is fetched ("GiB"); null for none.
    "prices": None,
    # The package that opens URLs of object stores and of HTTP servers: "obstore", "fsspec", or
    # "auto": obstore, if it is installed and supports the URL and its options, else fsspec.
    "remote": "auto",
    # How often an operation is retried after a transient error, the longest pause before a retry,
    # and the time after the first attempt when no other one begins, in seconds.
    "retries": 10,
    "retry-delay": 10,
    "retry-time": 60,
}

#: The current names of settings that had others.
_RENAMED = {"bundle-size": "fuse-size", "bundle-blocks": "fuse-blocks"}
#: The values of settings that have a few.
_CHOICES = {
    "missing": ("fill", "error"),
    "forbidden": ("error", "missing"),
    "casting": ("numpy", "same_kind", "safe"),
    "append-checks": ("warn", "error", "off"),
}
#: The minimum values of settings that are numbers of something, not sizes in bytes.
_COUNTS = {"fuse-blocks": 0, "requests": 1, "retries": 0, "threads": 1}


#: The settings when all of them were valid.
_CHECKED: list[Mapping[str, Any]] = [DEFAULTS]


def _dask_module(name: str) -> Any:
    import_module("dask")  # first: two threads that import both in other orders deadlock
    return import_module(f"dask.{name}")


@cache
def _dask_config() -> Any:
    # Imported only when a setting is read, as that takes longer than opening an array.
    config = _dask_module("config")
    config.update_defaults({"zarrdask": DEFAULTS})
    return config


def is_set() -> bool:
    """Whether a program may have set something: not before Dask's configuration is imported."""
    return "dask.config" in sys.modules


@cache
def _warn_of(names: frozenset[str]) -> None:
    """Warn once of settings that do not exist, such as mistyped ones."""
    for name in sorted(names):
        matches = get_close_matches(name, DEFAULTS, 1)
        hint = f"; did you mean zarrdask.{matches[0]}?" if matches else ""
        hint = f"; it is now zarrdask.{_RENAMED[name]}" if name in _RENAMED else hint
        warnings.warn(f"zarrdask.{name}: there is no such setting{hint}", stacklevel=4)


def get(name: str) -> Any:
    """Return the setting ``zarrdask.<name>``; a size may be written as "16 MiB".

    Raises
    ------
    MetadataError
        If the value is invalid. The error names the key.

    Examples
    --------
    >>> get("block-size")
    16777216
    """
    # With the default, as leaving `with dask.config.set(...)` may remove all settings of zarrdask.
    default, settings = DEFAULTS[name], _dask_config().config.get("zarrdask", DEFAULTS)
    if not _is_same(settings, _CHECKED[-1]):
        _check(settings)
    if name in settings and settings[name] is default:
        return default  # soon, as some settings are read before each request
    return _current(name)


def _current(name: str) -> Any:
    value = _dask_config().get(f"zarrdask.{name}", DEFAULTS[name])
    if value is DEFAULTS[name]:
        return value
    # Others may be no keys of a dictionary.
    return _parsed(name, value) if type(value) in (int, str) else _parse(name, value)


def check() -> None:
    """Raise a MetadataError if any setting is invalid, before something is erased that needs it."""
    for name in DEFAULTS:
        _current(name)


def check_set() -> None:
    """Raise a MetadataError if any setting is invalid, unless a program can't have set any."""
    if is_set():
        get("strict")


def _check(settings: Mapping[str, Any]) -> None:
    """Check all settings when the first one is read after any has changed.

    So an invalid value raises an error in the next call, and not in one that happens to need it.
    """
    # Dask keeps the spelling that it met first: an environment variable has no hyphens.
    others = {str(name).replace("_", "-") for name in settings} - DEFAULTS.keys()
    if others:
        _warn_of(frozenset(others))
    checked = dict(settings)
    check()
    _CHECKED[:] = [checked]


def _is_same(settings: Mapping[str, Any], checked: Mapping[str, Any]) -> bool:
    try:
        return settings == checked
    except ValueError:  # an array, which is no valid value
        return False


def _parse(name: str, value: Any) -> Any:
    """Return the value of a setting that is not the default one."""
    key, default = f"zarrdask.{name}", DEFAULTS[name]
    if name in _CHOICES:
        return one_of(value, key, _CHOICES[name])
    if isinstance(default, bool):
        return _flag(value, key)
    if name in ("retry-delay", "retry-time"):
        return _positive(value, key, "time", "number of seconds")
    if name == "requests-per-second":
        return _positive(value, key, "rate", "number of requests per second")
    if name == "prices":
        return _prices(value, key)
    if name in ("progress-size", "threads") and value is None:
        return None
    if name in _COUNTS:
        return _count(value, key, _COUNTS[name])
    if isinstance(default, int):
        return parse_size(value, key)
    if not isinstance(value, str | os.PathLike | None):
        raise MetadataError(
            "the value of this setting has the wrong type", key=key, found=value, expected="text"
        )
    return value


#: The same, cached, as some settings are read for each chunk.
_parsed = lru_cache(typed=True)(_parse)


def _flag(value: Any, key: str) -> bool:
    if isinstance(value, bool | int) and value in (0, 1):
        return bool(value)
    raise MetadataError(
        "this setting is either on or off", key=key, found=value, expected="true or false"
    )


def _prices(value: Any, key: str) -> dict[str, float]:
    names = ("GET", "HEAD", "LIST", "PUT", "DELETE", "GiB")
    expected = f"a price for some of {', '.join(names)}"
    if not isinstance(value, Mapping):
        raise MetadataError(
            "this setting must be a mapping", key=key, found=value, expected=expected
        )
    if unknown := [name for name in value if name not in names]:
        raise MetadataError(
            "unknown kind of request or amount", key=key, found=unknown[0], expected=expected
        )
    return {n: _positive(price, f"{key}[{n!r}]", "price", "number") for n, price in value.items()}


def _count(value: Any, key: str, minimum: int) -> int:
    try:
        count = int(value)
    except (ValueError, TypeError, OverflowError):
        count = -1
    is_count = isinstance(value, str | int) or count == value
    if isinstance(value, bool) or not is_count or not minimum <= count < MAX_SIZE:
        raise MetadataError(
            "invalid value of this setting",
            key=key,
            found=value,
            expected=f"a whole number, at least {minimum}",
        )
    return count


def _positive(value: Any, key: str, kind: str, unit: str) -> float:
    # This condition is false for NaN.
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and 0 <= value < float("inf"):
        return float(value)
    raise MetadataError(
        f"invalid {kind} in this setting",
        key=key,
        found=value,
        expected=f"a finite {unit} that is not negative",
    )


def parse_size(value: Any, key: str) -> int:
    """Return the number of bytes for a number, or for a text with a unit; both must be finite.

    `key` is the name of the option or setting, for errors.

    >>> parse_size("256 MiB", "max_mem")
    268435456
    """
    try:
        is_number = isinstance(value, Integral)
        size = int(value if is_number else _dask_module("utils").parse_bytes(value))
    except (ValueError, TypeError, AttributeError, OverflowError):
        size = -1
    if isinstance(value, bool) or not 0 <= size < MAX_SIZE:
        raise MetadataError(
            "invalid size in bytes",
            key=key,
            found=value,
            expected=f'a number of bytes from 0 to {MAX_SIZE - 1}, or a text such as "256 MiB"',
        )
    return size


if not TYPE_CHECKING:  # For type checkers, every name would exist.

    def __getattr__(name: str) -> Any:
        raise no_name(__name__, name, OTHER_NAMES)
