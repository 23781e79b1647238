"""The model of arrays and groups, which is the same for all formats."""

from collections.abc import Iterator, Mapping, MutableMapping
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from zarrdask.display.words import value_text
from zarrdask.errors import MetadataError
from zarrdask.formats.codecs.array_to_bytes.sharding import Shard, shard_of
from zarrdask.formats.codecs.codec import ChunkSpec, Codec
from zarrdask.formats.codecs.numcodecs.adapter import ObjectCodec
from zarrdask.formats.codecs.pipeline import Pipeline
from zarrdask.formats.dtypes.data_type import DataType
from zarrdask.formats.extension import Definition
from zarrdask.formats.grids.chunk_grid import ChunkGrid, Index, Shape
from zarrdask.formats.grids.keys import ChunkKeyEncoding
from zarrdask.formats.grids.regular import RegularGrid
from zarrdask.formats.metadata.formats import find_format
from zarrdask.formats.metadata.storage_transformers import StorageTransformer

if TYPE_CHECKING:
    from zarrdask.formats.metadata.format import Format

#: The number of pipelines that are cached, one for each chunk shape of a rectilinear grid.
_MAX_PIPELINES = 1024
#: The number of different lengths along an axis up to which chunks of each are checked on opening.
_MAX_CHECKED_LENGTHS = 16

#: The attribute in which formats without dimension names keep them.
DIMENSIONS = "_ARRAY_DIMENSIONS"

Attributes = Mapping[str, Any]
#: 2, 3, "v3-draft" (of May 2022), or "v3-draft-protocol", the older dialect that real files use.
ZarrFormat = int | str


@dataclass(frozen=True)
class ArrayMetadata:
    """The metadata of an array: everything that its documents say.

    The stored object of a chunk or, in a sharded array, of a shard is called a unit.

    Attributes
    ----------
    zarr_format : int or str
        2, 3, "v3-draft" or "v3-draft-protocol".
    grid : ChunkGrid
        The shape of the array, and the grid of its shards or, without shards, of its chunks.
    data_type : DataType
        The type of the elements.
    keys : ChunkKeyEncoding
        The encoding of chunk indices as keys.
    fill_value : scalar or None
        The value of absent chunks; None if the document does not define it (they then read as
        zeros).
    codecs : tuple of Codec
        All codecs, in the order of encoding.
    attributes : mapping
        The user's attributes.
    dimension_names : tuple of (str or None), optional
        A name, or None, for each axis.
    transformers : tuple of StorageTransformer
        The storage transformers between the array and its store, the one next to the array first.
    extensions : tuple of Definition
        The extensions of the array as a whole (ZEP 9).
    extra : mapping
        Other members of the document, which v3 keeps when it is written again.

    Raises
    ------
    ZarrdaskError
        If the parts don't fit together: the codecs are bound to the chunk shape and type here.
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
    #: The documents that the metadata was parsed from, or stored as, by name; None without any.
    documents: Mapping[str, bytes | None] | None = field(
        init=False, compare=False, repr=False, default=None
    )
    #: Whether the stored documents are invalid, and the metadata was parsed from repaired ones.
    is_repaired: bool = field(init=False, compare=False, repr=False, default=False)
    #: The shape of the array, in elements.
    shape: Shape = field(init=False, compare=False, repr=False)
    #: The shape of the units; if they differ, the largest length along each axis.
    chunk_shape: Shape = field(init=False, compare=False, repr=False)
    #: The type of the elements in memory.
    dtype: np.dtype[Any] = field(init=False, compare=False, repr=False)
    #: The value of absent chunks: the fill value, or zero if that is undefined.
    fill: Any = field(init=False, compare=False, repr=False)
    #: The codec pipeline of the units, bound to the largest one if their shapes differ.
    pipeline: Pipeline = field(init=False, compare=False, repr=False)
    _pipelines: dict[Shape, Pipeline] = field(
        init=False, compare=False, repr=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        derive = partial(object.__setattr__, self)
        derive("shape", self.grid.shape)
        derive("chunk_shape", self.grid.chunk_shape)
        derive("dtype", self.data_type.dtype)
        # Some encodings can't name the chunks of such an array.
        self.keys.key((0,) * len(self.shape))
        derive("fill", self._zero() if self.fill_value is None else self.fill_value)
        if self.dimension_names is not None:
            self._check_names(self.dimension_names)
        derive("pipeline", self.pipeline_of(self.chunk_shape))
        if not self.grid.is_regular:
            self._check_lengths()

    def _check_names(self, names: tuple[str | None, ...]) -> None:
        if len(names) != len(self.shape) or not all(isinstance(n, str | None) for n in names):
            raise MetadataError(
                "there must be one name, or None, for each dimension",
                key="dimension_names",
                found=list(names),
                expected=f"{len(self.shape)} texts or None",
            )

    def _check_lengths(self) -> None:
        """Check that chunks of different shapes can be stored; there may be too many for each."""
        for shape in _sample_shapes(self.grid):
            self.pipeline_of(shape)
        if self.shard is None:
            return
        inner = self.read_grid.chunk_shape
        for axis, length in zip(self.grid.axes, inner, strict=True):
            if any(n % length for n in axis.lengths):
                raise MetadataError(
                    "the chunks must divide all shards",
                    key="sharding_indexed.chunk_shape",
                    found=list(inner),
                )

    def _zero(self) -> Any:
        """Return the zero of the data type; for objects the empty value, such as an empty text.

        The zero of times is NaT, as zarr-python reads it.
        """
        if self.dtype.kind in "mM":
            return np.array("NaT", self.dtype)[()]
        objects = (codec for codec in self.codecs if isinstance(codec, ObjectCodec))
        codec = next(objects, None) if self.data_type.dtype.hasobject else None
        return self.data_type.default if codec is None else codec.empty

    @property
    def format(self) -> "Format":
        """The format of the array."""
        return find_format(self.zarr_format)

    def render(self) -> dict[str, bytes | None]:
        """Return the documents that describe the array; None for those that should be absent."""
        return self.format.render(self)

    @cached_property
    def shard(self) -> Shard | None:
        """The layout of the shards, or None if the units can't be read in parts."""
        return shard_of(self.pipeline)

    @property
    def read_grid(self) -> ChunkGrid:
        """The grid of the smallest parts that can be read on their own."""
        shard = self.shard
        if shard is None:
            return self.grid
        axes = self.pipeline.axes
        inner = shard.codec.chunk_shape
        if axes is not None:
            inner = tuple(inner[axes.index(i)] for i in range(len(inner)))
        # This holds for shards of different shapes, too: the chunk shape divides all of them.
        return RegularGrid(self.shape, inner)

    def pipeline_of(self, shape: Shape) -> Pipeline:
        """Return the codec pipeline for units of a shape, if the codecs can encode such units."""
        pipeline = self._pipelines.get(shape)
        if pipeline is None:
            pipeline = Pipeline(self.codecs, ChunkSpec(shape, self.dtype, self.fill))
            if len(self._pipelines) >= _MAX_PIPELINES:
                self._pipelines.clear()
            self._pipelines[shape] = pipeline
        return pipeline

    def pipeline_at(self, index: Index) -> Pipeline:
        """Return the codec pipeline for the unit with an index."""
        grid = self.grid
        return self.pipeline if grid.is_regular else self.pipeline_of(grid.shape_of(index))

    def without_labels(self) -> "ArrayMetadata":
        """Return the metadata that determines the chunks: without attributes, names and the like.

        The codecs stay bound, so that this costs next to nothing.
        """
        metadata = copy(self)
        vars(metadata).update(
            attributes={}, dimension_names=None, extensions=(), extra={}, documents=None
        )
        return metadata

    def with_attributes(self, attributes: Attributes) -> "ArrayMetadata":
        """Return the metadata of an array with other attributes, without its documents.

        The codecs stay bound, so that this costs next to nothing.
        """
        metadata = object.__new__(type(self))
        vars(metadata).update(vars(self), attributes=attributes, documents=None)
        return metadata

    def resized(self, shape: Shape) -> "ArrayMetadata":
        """Return the metadata of the same array with another shape."""
        if shape == self.shape:
            return self
        return replace(self, grid=self.grid.resize(shape))

    def __repr__(self) -> str:
        shown = {each.name: getattr(self, each.name) for each in fields(self) if each.repr}
        texts = (f"{name}={value_text(value, repr)}" for name, value in shown.items())
        return f"{type(self).__name__}({', '.join(texts)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ArrayMetadata):
            return NotImplemented
        return self._identity() == other._identity()

    __hash__ = None  # type: ignore[assignment]

    def _identity(self) -> dict[str, Any]:
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.compare}
        fill = self.fill_value
        if isinstance(fill, np.generic):
            # Fill values are compared by their bytes, so that NaN is equal to NaN.
            values["fill_value"] = (fill.dtype, fill.tobytes())
        return values


def _sample_shapes(grid: ChunkGrid) -> Iterator[Shape]:
    """Yield chunk shapes that show whether the chunks of a grid can be stored.

    For each axis these have every length along it, or the shortest if there are many lengths; the
    other axes have their largest length.
    """
    for number, axis in enumerate(grid.axes):
        lengths = sorted({*axis.lengths[: axis.count]})
        for length in lengths if len(lengths) <= _MAX_CHECKED_LENGTHS else lengths[:1]:
            yield (*grid.chunk_shape[:number], length, *grid.chunk_shape[number + 1 :])


@dataclass(frozen=True)
class GroupMetadata:
    """The metadata of a group: everything that its documents say.

    Attributes
    ----------
    zarr_format : int or str
        2, 3, "v3-draft" or "v3-draft-protocol".
    attributes : mapping
        The user's attributes.
    extensions : tuple of Definition
        The extensions of the group (ZEP 9).
    extra : mapping
        Other members of the document, which are kept when it is written again.
    """

    zarr_format: ZarrFormat
    attributes: Attributes = field(default_factory=dict)
    extensions: tuple[Definition, ...] = ()
    extra: Attributes = field(default_factory=dict)
    #: Whether the stored document is invalid, and the metadata was parsed from a repaired one.
    is_repaired: bool = field(init=False, compare=False, repr=False, default=False)

    @property
    def format(self) -> "Format":
        """The format of the group."""
        return find_format(self.zarr_format)

    def render(self) -> dict[str, bytes | None]:
        """Return the documents that describe the group; None for those that should be absent."""
        return self.format.render(self)


Metadata = ArrayMetadata | GroupMetadata
#: Metadata of arrays, from which arrays with equal documents, or parts of these, take it: by the
#: documents, or by the part.
Known = MutableMapping[Any, ArrayMetadata]
