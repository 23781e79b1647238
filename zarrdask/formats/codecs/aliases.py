"""Old names of codecs, in files of 2023 and of writers that used a codec before its registration.

Codecs are read by their old names, too, but written by their current names only.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from zarrdask.formats.compliance import report_deviation
from zarrdask.formats.extension import Definition

#: Codecs of numcodecs that files of zarrs from 2024 name without the prefix ``numcodecs.``.
_BARE = (
    *("adler32", "astype", "bz2", "crc32", "delta", "fixedscaleoffset", "fletcher32"),
    *("jenkins_lookup3", "lz4", "lzma", "pcodec", "quantize", "shuffle", "zfpy", "zlib"),
)
#: zarrs named codecs by the URL of their documentation.
_ZARRS = "https://codec.zarrs.dev/"
#: For each old name, the current name and the conformance rule.
OLD_NAMES: Mapping[str, tuple[str, str]] = {
    "endian": ("bytes", "X-C7"),
    **{name: (f"numcodecs.{name}", "C-67") for name in _BARE},
    "zarrs.bitround": ("bitround", "C-67"),
    "zarrs.zfp": ("zfp", "C-67"),
    f"{_ZARRS}array_to_array/bitround": ("bitround", "C-67"),
    f"{_ZARRS}array_to_bytes/pcodec": ("numcodecs.pcodec", "C-67"),
    f"{_ZARRS}array_to_bytes/vlen_bytes": ("vlen-bytes", "C-67"),
    f"{_ZARRS}array_to_bytes/vlen_utf8": ("vlen-utf8", "C-67"),
    f"{_ZARRS}array_to_bytes/zfp": ("zfp", "C-67"),
    f"{_ZARRS}bytes_to_bytes/bz2": ("numcodecs.bz2", "C-67"),
    f"{_ZARRS}bytes_to_bytes/fletcher32": ("numcodecs.fletcher32", "C-67"),
    f"{_ZARRS}bytes_to_bytes/zlib": ("numcodecs.zlib", "C-67"),
}


def renamed(definition: Definition) -> Definition:
    """Return the definition of a codec with its current name (conformance C-67, X-C7)."""
    name, rule = OLD_NAMES[definition.name]
    report_deviation(
        rule, "an old name of a codec", key="codecs", found=definition.name, expected=repr(name)
    )
    return replace(definition, name=name)


def with_axes(definition: Definition, ndim: int | None) -> Definition:
    """Return the definition of a transposition with axes instead of "C" or "F" (X-C11)."""
    order = definition.configuration.get("order")
    if order not in ("C", "F") or ndim is None:
        return definition
    axes = list(range(ndim)) if order == "C" else list(reversed(range(ndim)))
    report_deviation("X-C11", "axes as a letter", key="transpose.order", found=order, expected=axes)
    return replace(definition, configuration={**definition.configuration, "order": axes})


def full_name(name: Any) -> Any:
    """Return the full name of a codec of numcodecs; any other name unchanged.

    >>> full_name("bz2"), full_name("zstd")
    ('numcodecs.bz2', 'zstd')
    """
    return f"numcodecs.{name}" if name in _BARE else name
