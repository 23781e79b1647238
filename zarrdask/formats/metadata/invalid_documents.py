"""Repair documents that break a rule of their format, as older writers stored them. Pure.

A format calls these functions for a document that can't be parsed, so that valid documents cost
nothing. A repaired document has the meaning that other readers of Zarr give it. Each repair is
reported: it raises an error in strict mode, and warns where values could differ.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from math import inf, nan
from typing import Any, TypeVar

from zarrdask.errors import MetadataError
from zarrdask.formats.codecs.codec import Json
from zarrdask.formats.compliance import report_deviation
from zarrdask.formats.metadata.model import Metadata

Node = TypeVar("Node", bound=Metadata)
#: The rules of the conformance list that say which invalid documents are read.
_V2, _V3 = "X-A7", "X-C14"
#: The settings of codecs that are integers, and that only encoding needs.
LEVELS = ("level", "clevel", "blocksize", "acceleration", "preset")
_NON_FINITE = {"nan": nan, "inf": inf, "infinity": inf, "-inf": -inf, "-infinity": -inf}
#: The kinds of elements whose fill values may be infinite, by their names in v3.
_KINDS = {"float": "f", "complex": "c"}


def repaired(parse: Callable[[Json], Node], document: Json, repair: Callable[[Json], Json]) -> Node:
    """Parse a document; if that fails, repair it and parse it again."""
    try:
        return parse(document)
    except MetadataError:
        valid = repair(document)
        if valid is document:
            raise
    metadata = parse(valid)
    vars(metadata)["is_repaired"] = True
    return metadata


def repair_v2_array(document: Json) -> Json:
    """Return a ``.zarray`` without the known faults; the same object if it has none of them."""
    repaired = dict(document)
    for name in ("filters", "compressor"):
        if name not in document:
            _report(_V2, "the member is missing; null is assumed", name, None, "null")
            repaired[name] = None
    chunks = _lengths(_V2, document.get("chunks"), "chunks")
    repaired |= _present(document, chunks=_positive(_V2, chunks, document.get("shape"), ()))
    if isinstance(document.get("dtype"), str):
        kind = document["dtype"].lstrip("<>|=")[:1]
        fill = document.get("fill_value")
        repaired |= _present(document, fill_value=_fill(_V2, fill, "i" if kind in "mM" else kind))
    compressor, filters = repaired.get("compressor"), repaired.get("filters")
    repaired["compressor"] = _settings(_V2, compressor, "compressor")
    if isinstance(filters, list):
        repaired["filters"] = [_settings(_V2, item, "filters") for item in filters]
    return document if _same(repaired, document) else repaired


def repair_v2_group(document: Json) -> Json:
    """Return a ``.zgroup`` without the known fault: an empty object; or the same object."""
    if document:
        return document
    _report(_V2, "the member is missing; 2 is assumed", ".zgroup zarr_format", None, "2")
    return {"zarr_format": 2}


def repair_v3_array(document: Json) -> Json:
    """Return a ``zarr.json`` without the known faults; the same object if it has none of them."""
    repaired = dict(document)
    if isinstance(document.get("codecs"), list):
        repaired["codecs"] = _codecs(document["codecs"])
    data_type = document.get("data_type")
    if isinstance(data_type, str):
        kind = _KINDS.get(data_type.rstrip("0123456789"), "")
        fill = document.get("fill_value")
        if kind == "c" or (isinstance(fill, str) and fill.lower() in _NON_FINITE):
            repaired |= _present(document, fill_value=_fill(_V3, fill, kind))
    grid = document.get("chunk_grid")
    if isinstance(grid, dict) and isinstance(grid.get("configuration"), dict):
        inner = _inner_chunks(repaired.get("codecs"))
        shape = document.get("shape")
        repaired["chunk_grid"] = _grid(grid, grid["configuration"], shape, inner)
    return document if _same(repaired, document) else repaired


def _report(
    rule: str, message: str, key: str, found: Any, expected: str, *, warn: bool = False
) -> None:
    report_deviation(rule, message, key=key, found=found, expected=expected, warn=warn)


def _present(document: Json, **members: Any) -> Json:
    """Return those members that a document has."""
    return {name: value for name, value in members.items() if name in document}


def _same(a: Any, b: Any) -> bool:
    """Whether two JSON values are the same, also in their types: ``true`` is not 1."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(value, b[name]) for name, value in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b) or a is b


# --------------------------------------------------------------------------------------------
# Lengths


def _integer(value: Any) -> Any:
    """Return ``true`` and ``4.0`` as integers; any other value unchanged.

    >>> _integer(True), _integer(4.0), _integer(4.5), _integer("4")
    (1, 4, 4.5, '4')
    """
    is_integer = isinstance(value, bool) or (isinstance(value, float) and value.is_integer())
    return int(value) if is_integer else value


def _lengths(rule: str, value: Any, key: str, kinds: tuple[type, ...] = (bool,)) -> Any:
    """Return lengths as integers if they have other types; floats only in a list of edges."""
    if isinstance(value, list):
        return [
            _lengths(rule, item, key, (bool, float) if isinstance(item, list) else kinds)
            for item in value
        ]
    length = _integer(value) if isinstance(value, kinds) else value
    if type(length) is not type(value):
        _report(rule, "this length is not spelt as an integer", key, value, str(length))
    return length


def _positive(rule: str, chunks: Any, shape: Any, units: Sequence[int]) -> Any:
    """Return chunk lengths with the shortest possible one instead of 0.

    No chunk of length 0 can be stored, so the array has only its fill value. `units` are the
    lengths of the chunks in a shard, if there are any.
    """
    if not (isinstance(chunks, list) and isinstance(shape, list) and len(chunks) == len(shape)):
        return chunks
    shortest = units if len(units) == len(chunks) else [1] * len(chunks)
    repaired = [
        unit if type(length) is int and not length else length
        for length, unit in zip(chunks, shortest, strict=True)
    ]
    if repaired != chunks:
        # An empty axis has no elements that could be read in another way.
        is_empty = all(n == 0 for n, length in zip(shape, chunks, strict=True) if length == 0)
        message = "a chunk length of 0 stands for the shortest possible one"
        key = "chunks" if rule == _V2 else "chunk_shape"
        _report(rule, message, key, chunks, str(repaired), warn=not is_empty)
    return repaired


def _grid(grid: Json, configuration: Json, shape: Any, units: Sequence[int]) -> Json:
    """Return the chunk grid of v3."""
    if grid.get("name") == "rectilinear":
        lengths = _lengths(_V3, configuration.get("chunk_shapes"), "chunk_shapes")
        return {
            **grid,
            "configuration": configuration | _present(configuration, chunk_shapes=lengths),
        }
    if grid.get("name") != "regular":
        return grid
    chunks = _positive(
        _V3, _lengths(_V3, configuration.get("chunk_shape"), "chunk_shape"), shape, units
    )
    if isinstance(chunks, list) and any(isinstance(length, list) for length in chunks):
        _report(
            _V3,
            "a regular grid has lists of lengths; it is read as a rectilinear one",
            "chunk_grid",
            "regular",
            "'rectilinear'",
            warn=True,
        )
        inline = {"kind": "inline", "chunk_shapes": chunks}
        return {**grid, "name": "rectilinear", "configuration": inline}
    return {**grid, "configuration": configuration | _present(configuration, chunk_shape=chunks)}


def _inner_chunks(codecs: Any) -> Sequence[int]:
    """Return the shape of the chunks in shards; it is empty without shards."""
    for codec in codecs if isinstance(codecs, list) else ():
        if isinstance(codec, dict) and codec.get("name") == "sharding_indexed":
            configuration = codec.get("configuration")
            shape = configuration.get("chunk_shape") if isinstance(configuration, dict) else None
            if isinstance(shape, list) and all(type(n) is int and n > 0 for n in shape):
                return shape
    return ()


# --------------------------------------------------------------------------------------------
# Codecs


def _codecs(items: list[Any]) -> list[Any]:
    return [_codec(item) for item in items]


def _codec(item: Any) -> Any:
    configuration = item.get("configuration") if isinstance(item, dict) else None
    if not isinstance(configuration, dict):
        return item
    repaired = _settings(_V3, configuration, str(item.get("name")))
    if item.get("name") == "sharding_indexed":
        lengths = _lengths(_V3, configuration.get("chunk_shape"), "sharding_indexed.chunk_shape")
        repaired = repaired | _present(configuration, chunk_shape=lengths)
        for name in ("codecs", "index_codecs"):
            if isinstance(configuration.get(name), list):
                repaired[name] = _codecs(configuration[name])
    return {**item, "configuration": repaired}


def _settings(rule: str, settings: Any, key: str) -> Any:
    """Return the configuration of a codec with its levels as integers."""
    if not isinstance(settings, Mapping):
        return settings
    repaired = dict(settings)
    for name in LEVELS:
        value = settings.get(name)
        is_text = isinstance(value, str) and re.fullmatch(r"-?\d{1,9}", value)
        level = int(str(value)) if is_text else value
        if isinstance(value, float):
            level = _integer(value)
        if type(level) is not type(value):
            message = "this level is not spelt as an integer"
            _report(rule, message, f"{key}.{name}", value, str(level))
            repaired[name] = level
    return repaired


# --------------------------------------------------------------------------------------------
# Fill values


def _fill(rule: str, value: Any, kind: str) -> Any:
    """Return a fill value of a kind of elements, as NumPy calls it, with texts as numbers."""
    if kind == "c" and isinstance(value, list):
        return [_fill(rule, part, "f") for part in value]
    if not isinstance(value, str) or kind not in ("i", "u", "f"):
        return value
    number = _number(value, kind)
    if number is None:
        return value
    spelling = {nan: "NaN", inf: "Infinity", -inf: "-Infinity"}.get(number, number)
    is_clear = value.lower() in _NON_FINITE
    _report(
        rule,
        "a text stands for a number",
        "fill_value",
        value,
        repr(spelling),
        warn=not is_clear,
    )
    return spelling


def _number(text: str, kind: str) -> Any:
    """Return the number that a text spells, or None if it spells none."""
    if re.fullmatch(r"[+-]?\d{1,40}", text) and kind in "iu":
        return int(text)
    if kind == "f" and text.lower() in _NON_FINITE and text not in ("NaN", "Infinity", "-Infinity"):
        return _NON_FINITE[text.lower()]
    if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", text, re.IGNORECASE):
        return None
    number = float(text)
    if kind in "iu":
        return int(number) if number.is_integer() else None
    return number
