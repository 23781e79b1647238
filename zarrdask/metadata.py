"""The one description of an array or a group, whatever format it is stored in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from zarrdask.codecs.base import ChunkSpec, Codec
from zarrdask.codecs.pipeline import Pipeline
from zarrdask.codecs.sharding import Shard, shard_of
from zarrdask.dtypes.fill import zero
from zarrdask.errors import MetadataError
from zarrdask.grids import Index, RegularGrid, Shape

Attributes = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChunkKeys:
    """How a chunk's index becomes its key (conformance A-35, C-37, C-38).

    Attributes
    ----------
    name : {"default", "v2"}
        ``default`` puts a "c" before the index.
    separator : {"/", "."}
        Between the parts.
    """

    name: Literal["default", "v2"] = "default"
    separator: Literal["/", "."] = "/"

    def key(self, index: Index) -> str:
        """Return the key of a chunk, relative to its array.

        >>> ChunkKeys().key((1, 23)), ChunkKeys("v2", ".").key((1, 23)), ChunkKeys("v2").key(())
        ('c/1/23', '1.23', '0')
        """
        if self.name == "default":
            return self.separator.join(("c", *map(str, index)))
        return self.separator.join(map(str, index)) or "0"

    def names(self, indices: Sequence[Index]) -> list[str]:
        """Return the keys of many chunks."""
        if not indices or not indices[0]:
            return list(map(self.key, indices))
        form = self.separator.join(["%d"] * len(indices[0]))
        if self.name == "default":
            form = f"c{self.separator}{form}"
        return [form % index for index in indices]

    def index(self, key: str, ndim: int) -> Index | None:
        """Return the index that a key belongs to, or None if it is no chunk key."""
        parts = key.split(self.separator)
        if self.name == "default":
            if parts[0] != "c":
                return None
            parts = parts[1:]
        elif ndim == 0:
            return () if key == "0" else None
        if len(parts) != ndim or not all(p.isdecimal() and str(int(p)) == p for p in parts):
            return None
        return tuple(map(int, parts))


@dataclass(frozen=True)
class ArrayMetadata:
    """What is known of an array without its store.

    Attributes
    ----------
    zarr_format : int
        2 or 3.
    shape : tuple of int
        In elements.
    dtype : numpy.dtype
        Of the elements.
    chunk_shape : tuple of int
        Of the stored units: of the shards, where there are any.
    keys : ChunkKeys
        How chunk indices become keys.
    fill_value : scalar or None
        Of absent chunks; None if the document leaves it open (they then read as zeros).
    codecs : tuple of Codec
        All of them, in the order of encoding.
    attributes : mapping
        The user's.
    dimension_names : tuple of (str or None), optional
        One an axis.
    extra : mapping
        Other members of the document; v3 keeps them when it is written again.

    Raises
    ------
    ZarrdaskError
        If the parts don't fit together: the codecs are bound here.
    """

    zarr_format: int
    shape: Shape
    dtype: np.dtype[Any]
    chunk_shape: Shape
    keys: ChunkKeys
    fill_value: Any
    codecs: tuple[Codec, ...]
    attributes: Attributes = field(default_factory=dict)
    dimension_names: tuple[str | None, ...] | None = None
    extra: Attributes = field(default_factory=dict)
    grid: RegularGrid = field(init=False, compare=False, repr=False)
    pipeline: Pipeline = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        names = self.dimension_names
        if any(not isinstance(name, str | None) for name in names or ()):
            raise MetadataError(
                "a name is text, or None", key="dimension_names", found=list(names or ())
            )
        if names is not None and len(names) != len(self.shape):
            raise MetadataError(
                "there must be one name for each dimension",
                key="dimension_names",
                found=list(names),
                expected=f"{len(self.shape)} names",
            )
        object.__setattr__(self, "grid", RegularGrid(self.shape, self.chunk_shape))
        spec = ChunkSpec(self.chunk_shape, self.dtype, self.fill)
        object.__setattr__(self, "pipeline", Pipeline(self.codecs, spec))

    @property
    def fill(self) -> Any:
        """What absent chunks read as: the fill value, or zero where it is left open."""
        return zero(self.dtype) if self.fill_value is None else self.fill_value

    @property
    def shard(self) -> Shard | None:
        """The layout of the shards, or None if the stored units are not read in parts."""
        return shard_of(self.pipeline)

    @property
    def read_shape(self) -> Shape:
        """The shape of the smallest part that can be read by itself."""
        shard = self.shard
        if shard is None:
            return self.chunk_shape
        axes = self.pipeline.axes
        inner = shard.codec.chunk_shape
        return inner if axes is None else tuple(inner[axes.index(i)] for i in range(len(inner)))

    def resized(self, shape: Shape) -> "ArrayMetadata":
        """Return the metadata of the same array with another shape."""
        return replace(self, shape=shape)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ArrayMetadata):
            return NotImplemented
        return self._identity() == other._identity()

    __hash__ = None  # type: ignore[assignment]

    def _identity(self) -> tuple[Any, ...]:
        # Fill values are compared by their bytes, so that NaN equals NaN.
        fill = self.fill_value
        if isinstance(fill, np.generic):
            fill = (fill.dtype, fill.tobytes())
        return (
            self.zarr_format,
            self.shape,
            self.dtype,
            self.chunk_shape,
            self.keys,
            fill,
            self.codecs,
            dict(self.attributes),
            self.dimension_names,
            dict(self.extra),
        )


@dataclass(frozen=True)
class GroupMetadata:
    """What is known of a group without its store.

    Attributes
    ----------
    zarr_format : int
        2 or 3.
    attributes : mapping
        The user's.
    extra : mapping
        Other members of the document, kept when it is written again.
    """

    zarr_format: int
    attributes: Attributes = field(default_factory=dict)
    extra: Attributes = field(default_factory=dict)


Metadata = ArrayMetadata | GroupMetadata
