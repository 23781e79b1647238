"""The properties of an array: from its metadata, and of its stored chunks."""

from math import prod
from typing import Any, Literal

import numpy as np

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.stored_keys import StoredUnits
from zarrdask.arrays.nodes.info import Info, array_info, dtype_name
from zarrdask.arrays.nodes.node import Node
from zarrdask.display.words import brief_lengths
from zarrdask.errors import one_of, printable
from zarrdask.formats.codecs.codec import Codec
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.formats.metadata.v2_codecs import codec_options


class ArrayProperties(Node):
    """An array as its metadata describes it; `Array` adds its elements."""

    _stored: StoredChunks

    @property
    def metadata(self) -> ArrayMetadata:
        """The parsed documents of the array."""
        raise NotImplementedError

    @property
    def shape(self) -> Shape:
        """The lengths of the axes, in elements."""
        return self.metadata.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The data type of the elements."""
        return self.metadata.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.metadata.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.metadata.shape)

    @property
    def nbytes(self) -> int:
        """The size of all elements, decoded, in bytes."""
        return self.size * self.dtype.itemsize

    @property
    def chunks(self) -> Shape | tuple[Shape, ...]:
        """The shape of the chunks, in elements; in a sharded array, the shape of the inner chunks.

        If the chunks differ in length along an axis, the lengths of all chunks along each axis, as
        in Dask.
        """
        return self.metadata.read_grid.chunks

    @property
    def shards(self) -> Shape | tuple[Shape, ...] | None:
        """The shape of the shards, given as in `chunks`, or None if the array is not sharded."""
        return None if self.metadata.shard is None else self.metadata.grid.chunks

    @property
    def fill_value(self) -> Any:
        """The value of elements in chunks that are not stored; None means undefined, read as 0."""
        return self.metadata.fill_value

    @property
    def dimension_names(self) -> tuple[str | None, ...] | None:
        """The names of the axes, or None if no axis has a name."""
        return self.metadata.dimension_names

    @property
    def nchunks(self) -> int:
        """The number of chunks, stored or not; in a sharded array, the chunks in all shards."""
        return self.metadata.read_grid.size

    @property
    def compressors(self) -> tuple[Codec, ...]:
        """The codecs on the bytes of a chunk; in v2 at most one."""
        return codec_options(self.metadata)[2]

    @property
    def filters(self) -> tuple[Codec, ...]:
        """The codecs on the elements of a chunk; in v2 all codecs before the compressor."""
        return codec_options(self.metadata)[1]

    @property
    def order(self) -> Literal["C", "F"]:
        """The order of the elements in a stored chunk."""
        return codec_options(self.metadata)[0]

    @property
    def info(self) -> Info:
        """The properties of the array as a table, which prints."""
        return array_info(self.node_path.location, self.metadata, self.store.identity.opened_by)

    def __repr__(self) -> str:
        shards = f", shards={brief_lengths(self.shards)}" if self.shards else ""
        chunks = f"chunks={brief_lengths(self.chunks)}{shards}"
        kind = f"{self.shape} {dtype_name(self.metadata)}, {chunks}"
        return printable(f"<zarrdask.Array {self.node_path.location} {kind}>")

    # ---- what is stored

    def nchunks_stored(self) -> int:
        """Count the chunks that are stored, by listing the store.

        The elements of other chunks are the fill value. If the array is sharded, all chunks in the
        shard indexes are counted, also those outside the array, so the number may be greater than
        `nchunks`.

        Raises
        ------
        UnsupportedError
            If the store can't be listed.
        """
        return StoredUnits(self._stored).count_chunks()

    def stored_map(self, *, per: Literal["shard", "chunk"] = "shard") -> np.ndarray:
        """Return which chunks are stored, by listing the store once.

        The elements of other chunks are the fill value.

        Parameters
        ----------
        per : {"shard", "chunk"}, default "shard"
            What an element of the result is for: a shard, or a chunk of an array without shards; or
            always a chunk, for which all shard indexes are read, many concurrently.

        Returns
        -------
        ndarray of bool
            One element for each shard, or chunk, along each axis; true if it is stored.

        Raises
        ------
        UnsupportedError
            If the store can't be listed.
        MetadataError
            If `per` has another value.

        Examples
        --------
        >>> import zarrdask
        >>> z = zarrdask.create_array({}, shape=(4, 6), dtype="i4", chunks=(2, 3))
        >>> z[:2, 3:] = 7
        >>> z.stored_map()
        array([[False,  True],
               [False, False]])
        """
        return StoredUnits(self._stored).map(one_of(per, "per", ("shard", "chunk")))

    def nbytes_stored(self) -> int:
        """Add up the sizes of the stored chunks or shards, by listing the store.

        Returns
        -------
        int
            The size of the encoded chunks in bytes, without the metadata documents.

        Raises
        ------
        UnsupportedError
            If the store can't be listed.
        """
        return StoredUnits(self._stored).totals()[1]
