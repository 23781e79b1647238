"""The record of how a pyramid was computed, stored in its group, for later updates."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, get_args

import numpy as np

from zarrdask.arrays.chunks.versions import UnitVersions
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.hierarchy.path import normalise_path
from zarrdask.errors import MetadataError, instance_of, one_of
from zarrdask.formats.grids.chunk_grid import parse_lengths
from zarrdask.formats.metadata.json import DAMAGE
from zarrdask.parallel.rewrite.pyramid_document import PyramidDocument
from zarrdask.tools.conventions.reference import Crs
from zarrdask.tools.pyramids.conventions import CONVENTIONS
from zarrdask.tools.pyramids.kernels import Missing, Reduction
from zarrdask.tools.pyramids.levels import Borders, Level

#: The version of its format.
_VERSION = 1


@dataclass(frozen=True)
class PyramidRecord:
    """How the levels of a pyramid were computed."""

    method: str
    borders: Borders
    missing: Missing | None
    levels: tuple[Level, ...]
    #: Whether level 0 is in the group.
    has_level_0: bool
    convention: str | None
    #: The arguments of the convention; None if JSON can't represent them.
    details: Mapping[str, Any] | None
    #: The versions of the chunks or shards of level 0 from which the levels were computed.
    versions: UnitVersions | None = None

    def write(self, node: NodePath) -> None:
        """Store the record."""
        missing = self.missing and {
            "values": [_rendered(value) for value in self.missing.values],
            "has_nan": self.missing.has_nan,
            "result": _rendered(self.missing.result),
        }
        record = {
            "version": _VERSION,
            "method": self.method,
            "borders": self.borders,
            "missing": missing,
            "levels": [[each.path, each.shape, each.factors] for each in self.levels],
            "has_level_0": self.has_level_0,
            "convention": self.convention,
            "versions": self.versions and self.versions.to_json(),
        }
        try:
            details = json.loads(json.dumps(self.details, default=_plain))
        except (AttributeError, TypeError, ValueError):
            details = None
        PyramidDocument(node).write({**record, "details": details})

    @classmethod
    def read(cls, node: NodePath) -> "PyramidRecord":
        """Read the record of a group."""
        try:
            record = PyramidDocument(node).read()
            parsed = None if record is None else cls._parse(record)
        except DAMAGE as error:
            raise MetadataError(
                "this record of a pyramid is damaged, or was written by another release; build the "
                "pyramid again with overwrite=True",
                key=f"{node.location}/{PyramidDocument.KEY}",
                found=str(error),
            ) from error
        if parsed is None:
            raise MetadataError(
                "there is no record of how these levels were computed; build the pyramid again by "
                "zarrdask.pyramid, which stores one",
                key=f"{node.location}/{PyramidDocument.KEY}",
                found=None,
            )
        return parsed

    @classmethod
    def _parse(cls, record: Any) -> "PyramidRecord":
        """Return the record that JSON values represent."""
        if record["version"] != _VERSION:
            raise ValueError(f"version {record['version']}")
        missing, details, versions = record["missing"], record["details"], record.get("versions")
        return cls(
            one_of(record["method"], "method", Reduction.METHODS),
            one_of(record["borders"], "borders", get_args(Borders)),
            None if missing is None else _missing(instance_of(missing, "missing", dict)),
            _levels(instance_of(record["levels"], "levels", list)),
            instance_of(record["has_level_0"], "has_level_0", bool),
            one_of(record["convention"], "convention", CONVENTIONS),
            None if details is None else instance_of(details, "details", dict),
            None if versions is None else UnitVersions.from_json(versions),
        )


def _levels(items: list[Any]) -> tuple[Level, ...]:
    """Return the levels of a record: factors are multiples of the factors of the level before."""
    levels = [
        Level(
            normalise_path(instance_of(path, "levels", str)),
            parse_lengths(shape, "levels", 0),
            parse_lengths(factors, "levels", 1),
        )
        for path, shape, factors in items
    ]
    if len({len(lengths) for each in levels for lengths in (each.shape, each.factors)}) != 1:
        raise ValueError("levels of different dimensions")
    for one, other in pairwise(levels):
        if any(b % a for a, b in zip(one.factors, other.factors, strict=True)):
            raise ValueError(f"factors {other.factors} after {one.factors}")
    return tuple(levels)


def _missing(document: dict[str, Any]) -> Missing:
    """Return the missing values of a record."""
    values = tuple(map(_parsed, instance_of(document["values"], "missing.values", list)))
    has_nan = instance_of(document["has_nan"], "missing.has_nan", bool)
    return Missing(values, has_nan, _parsed(document["result"]))


def _plain(value: Any) -> Any:
    """Return an argument of a convention as JSON represents it, such as an object of pyproj."""
    if isinstance(value, Crs):
        return value.definition
    if hasattr(value, "to_wkt"):
        return value.to_wkt()
    return value.tolist()  # of NumPy


def _rendered(value: Any) -> Any:
    """Return a number as JSON represents it: None for NaN, the two parts of a complex number."""
    if isinstance(value, complex):
        return [value.real, value.imag]
    return None if value != value else value  # noqa: PLR0124 - NaN


def _parsed(value: Any) -> Any:
    """Return the number that `_rendered` represents."""
    if isinstance(value, list):
        return complex(*value)
    if value is not None and not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return np.nan if value is None else value
