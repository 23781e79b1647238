"""The one description of an array or a group, whatever format it is stored in."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from zarrdask.codecs.array_to_bytes.sharding import Shard, shard_of
from zarrdask.codecs.base import ChunkSpec, Codec
from zarrdask.codecs.numcodecs.adapter import ObjectCodec
from zarrdask.codecs.pipeline import Pipeline
from zarrdask.dtypes.base import DataType
from zarrdask.errors import MetadataError
from zarrdask.extension import Definition
from zarrdask.grids.base import Axis, ChunkGrid, Index, Shape
from zarrdask.grids.keys import ChunkKeyEncoding
from zarrdask.grids.regular import RegularGrid
from zarrdask.storage.transformers import StorageTransformer

#: Of chunks of several shapes: pipelines that are kept, and lengths that are tried at once.
_MOST_PIPELINES = 1024
_FEW = 16

Attributes = Mapping[str, Any]
#: 2, 3, "v3-draft" (of May 2022), or "v3-draft-protocol": the dialect of it that real files use.
ZarrFormat = int | str


@dataclass(frozen=True)
class ArrayMetadata:
    """What is known of an array without its store.

    Attributes
    ----------
    zarr_format : int or str
        2, 3, "v3-draft" or "v3-draft-protocol".
    grid : ChunkGrid
        The array's shape, and the stored units': of the shards, where there are any.
    data_type : DataType
        Of the elements.
    keys : ChunkKeyEncoding
        How chunk indices become keys.
    fill_value : scalar or None
        Of absent chunks; None if the document leaves it open (they then read as zeros).
    codecs : tuple of Codec
        All of them, in the order of encoding.
    attributes : mapping
        The user's.
    dimension_names : tuple of (str or None), optional
        One an axis.
    transformers : tuple of StorageTransformer
        What stands between the array and its store, the one nearest the array first.
    extensions : tuple of Definition
        Of the array as a whole (ZEP 9).
    extra : mapping
        Other members of the document; v3 keeps them when it is written again.

    Raises
    ------
    ZarrdaskError
        If the parts don't fit together: the codecs are bound here.
    """

    zarr_format: ZarrFormat
    grid: ChunkGrid
    data_type: DataType
    keys: ChunkKeyEncoding
    fill_value: Any
    codecs: tuple[Codec, ...]
    attributes: Attributes = field(default_factory=dict)
    dimension_names: tuple[str | None, ...] | None = None
    transformers: tuple[StorageTransformer, ...] = ()
    extensions: tuple[Definition, ...] = ()
    extra: Attributes = field(default_factory=dict)
    #: Of the stored units; of the largest, where their shapes differ.
    pipeline: Pipeline = field(init=False, compare=False, repr=False)
    _pipelines: dict[Shape, Pipeline] = field(
        init=False, compare=False, repr=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        names = self.dimension_names
        if any(not isinstance(name, str | None) for name in names or ()):
            raise MetadataError(
                "the name of a dimension must be text or None",
                key="dimension_names",
                found=list(names or ()),
            )
        if names is not None and len(names) != len(self.shape):
            raise MetadataError(
                "there must be one name for each dimension",
                key="dimension_names",
                found=list(names),
                expected=f"{len(self.shape)} names",
            )
        object.__setattr__(self, "pipeline", self.pipeline_of(self.chunk_shape))
        if not self.grid.is_regular:
            self._check_lengths()

    def _check_lengths(self) -> None:
        """Check chunks of several shapes: those that tell, as there may be many."""
        for shape in _typical(self.grid):
            self.pipeline_of(shape)
        if self.shard is None:
            return
        inner = self.read_grid.chunk_shape
        for edges, length in zip(self.grid.axes, inner, strict=True):
            if not isinstance(edges, int) and (edges % length).any():
                raise MetadataError(
                    "the chunks must divide all shards",
                    key="sharding_indexed.chunk_shape",
                    found=list(inner),
                )

    @property
    def shape(self) -> Shape:
        """The lengths of the axes, in elements."""
        return self.grid.shape

    @property
    def chunk_shape(self) -> Shape:
        """The shape of the stored units; where they differ, the largest length along each axis."""
        return self.grid.chunk_shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements in memory."""
        return self.data_type.dtype

    @property
    def fill(self) -> Any:
        """What absent chunks read as: the fill value, or zero where it is left open.

        The zero of objects is what their codec has for nothing: an empty text, say.
        """
        if self.fill_value is not None:
            return self.fill_value
        if self.dtype.hasobject:
            for codec in self.codecs:
                if isinstance(codec, ObjectCodec):
                    return codec.empty
        return self.data_type.default

    @property
    def shard(self) -> Shard | None:
        """The layout of the shards, or None if the stored units are not read in parts."""
        return shard_of(self.pipeline)

    @property
    def read_grid(self) -> ChunkGrid:
        """The grid of the smallest parts that can be read by themselves."""
        shard = self.shard
        if shard is None:
            return self.grid
        axes = self.pipeline.axes
        inner = shard.codec.chunk_shape
        if axes is not None:
            inner = tuple(inner[axes.index(i)] for i in range(len(inner)))
        # Also in shards of several shapes: what divides them all lies at its multiples.
        return RegularGrid(self.shape, inner)

    @property
    def write_axes(self) -> tuple[Axis, ...]:
        """The grid of what must have one writer.

        That is a stored unit; or several, if a storage transformer keeps them in one value: it
        has an attribute `chunks_per_shard` then.
        """
        axes = self.grid.axes
        for layer in self.transformers:
            for dimension, count in enumerate(getattr(layer, "chunks_per_shard", ())):
                axes = (*axes[:dimension], _joined(axes[dimension], count), *axes[dimension + 1 :])
        return axes

    def pipeline_of(self, shape: Shape) -> Pipeline:
        """Return how units of a shape become bytes and back.

        Raises
        ------
        ZarrdaskError
            If a codec can't take them.
        """
        pipeline = self._pipelines.get(shape)
        if pipeline is None:
            pipeline = Pipeline(self.codecs, ChunkSpec(shape, self.dtype, self.fill))
            if len(self._pipelines) >= _MOST_PIPELINES:
                self._pipelines.clear()
            self._pipelines[shape] = pipeline
        return pipeline

    def pipeline_at(self, index: Index) -> Pipeline:
        """Return how a unit becomes bytes and back."""
        grid = self.grid
        return self.pipeline if grid.is_regular else self.pipeline_of(grid.shape_of(index))

    def resized(self, shape: Shape) -> "ArrayMetadata":
        """Return the metadata of the same array with another shape."""
        return replace(self, grid=self.grid.resize(shape))

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
            self.grid,
            self.data_type,
            self.keys,
            fill,
            self.codecs,
            dict(self.attributes),
            self.dimension_names,
            self.transformers,
            self.extensions,
            dict(self.extra),
        )


def _joined(axis: Axis, count: int) -> Axis:
    """Return the chunks along an axis, so many as one."""
    if isinstance(axis, int):
        return axis * count
    return axis if count == 1 else np.unique([*axis[::count], axis[-1]])


def _typical(grid: ChunkGrid) -> Iterator[Shape]:
    """Yield shapes that show whether a grid's chunks can be stored.

    They are of each length along an axis, if those are few, else of the shortest; the other
    lengths are the largest.
    """
    for axis, edges in enumerate(grid.axes):
        if not isinstance(edges, int):
            lengths = np.unique(np.diff(edges[: grid.counts[axis] + 1])).tolist()
            for length in lengths if len(lengths) <= _FEW else lengths[:1]:
                yield (*grid.chunk_shape[:axis], length, *grid.chunk_shape[axis + 1 :])


@dataclass(frozen=True)
class GroupMetadata:
    """What is known of a group without its store.

    Attributes
    ----------
    zarr_format : int or str
        2, 3, "v3-draft" or "v3-draft-protocol".
    attributes : mapping
        The user's.
    extensions : tuple of Definition
        Of the group (ZEP 9).
    extra : mapping
        Other members of the document, kept when it is written again.
    """

    zarr_format: ZarrFormat
    attributes: Attributes = field(default_factory=dict)
    extensions: tuple[Definition, ...] = ()
    extra: Attributes = field(default_factory=dict)


Metadata = ArrayMetadata | GroupMetadata
