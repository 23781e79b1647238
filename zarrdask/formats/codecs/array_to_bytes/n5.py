"""``n5_default``: blocks of N5 in the mode "default", each with its own shape (C-65)."""

from dataclasses import dataclass, replace
from math import prod
from struct import Struct
from typing import Any, ClassVar, Self

import numpy as np

from zarrdask.errors import CodecError, MetadataError
from zarrdask.formats.codecs.array_to_array.transpose import TransposeCodec
from zarrdask.formats.codecs.array_to_bytes.bytes import BytesCodec
from zarrdask.formats.codecs.codec import (
    SLACK,
    Buffer,
    ChunkSpec,
    Codec,
    Configured,
    Kind,
    Serializer,
    complete,
    parse_configuration,
    refused,
)
from zarrdask.formats.codecs.pipeline import Pipeline
from zarrdask.formats.codecs.registry import parse_codecs
from zarrdask.formats.dtypes.ml import name_of
from zarrdask.formats.grids.chunk_grid import Shape

#: The mode and the number of dimensions.
_HEAD = Struct(">HH")
#: The maximum ratio of the elements of a block to the elements of a chunk. A valid block has at
#: most as many elements as a chunk.
_MAX_RATIO = 16


@dataclass(frozen=True)
class N5DefaultCodec(Configured):
    """Array -> bytes.

    Parameters
    ----------
    codecs : tuple of Codec
        ``transpose`` with all axes reversed, ``bytes`` with the byte order "big", and at most one
        bytes -> bytes codec.
    """

    codecs: tuple[Codec, ...]

    name: ClassVar[str] = "n5_default"
    kind: ClassVar[Kind] = Kind.ARRAY_BYTES

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        return cls(
            parse_codecs(parse_configuration(configuration, cls.name, {"codecs": ...})["codecs"])
        )

    def complete(self, spec: ChunkSpec) -> Self:
        codecs = list(self.codecs)
        if len(codecs) > 1 and codecs[1] == BytesCodec(None) and spec.dtype.itemsize > 1:
            codecs[1] = BytesCodec("big")
        return replace(self, codecs=complete(codecs, spec))

    def bind(self, spec: ChunkSpec) -> "Blocks":
        self._check_codecs(spec)
        kind, size = spec.dtype.kind, spec.dtype.itemsize
        if kind not in "iuf" or name_of(spec.dtype) or (kind == "f" and size < 4):
            expected = "integers of 8 to 64 bits, or floats of 32 or 64"
            raise refused(spec.dtype, expected)
        return Blocks(self.codecs, spec)

    def _check_codecs(self, spec: ChunkSpec) -> None:
        reverse = TransposeCodec(tuple(reversed(range(len(spec.shape)))))
        orders = ("big",) if spec.dtype.itemsize > 1 else ("big", "little", None)
        codecs = self.codecs
        fits = (
            len(codecs) in (2, 3)
            and codecs[0] == reverse
            and isinstance(codecs[1], BytesCodec)
            and codecs[1].endian in orders
            and all(codec.kind is Kind.BYTES_BYTES for codec in codecs[2:])
        )
        if not fits:
            raise MetadataError(
                "invalid codecs for an N5 block",
                key="n5_default.codecs",
                found=[codec.to_json() for codec in self.codecs],
                expected=f"{reverse.to_json()}, bytes with 'big', at most one bytes->bytes codec",
            )


class Blocks(Serializer):
    """The n5_default codec, bound to chunks."""

    def __init__(self, codecs: tuple[Codec, ...], spec: ChunkSpec) -> None:
        self.spec = spec
        ndim = len(spec.shape)
        self.header = _HEAD.pack(0, ndim) + np.array(spec.shape, ">u4").tobytes()
        self.codecs = codecs
        self.whole = Pipeline(codecs, spec)
        self.whole.is_counted = False
        size = self.whole.encoded_size
        size = self.whole.most if size is None else size
        self.most = len(self.header) + _MAX_RATIO * size + SLACK

    def encode(self, chunk: np.ndarray) -> Buffer:
        """Return the chunk as a block of its whole shape."""
        return self.header + bytes(self.whole.encode(chunk))

    def decode(self, data: Buffer) -> np.ndarray:
        """Return the chunk: a smaller block with fill values, or part of a larger block."""
        view = memoryview(data)
        shape = self._shape(view)
        try:
            block = self._pipeline(shape).decode(view[len(self.header) :])
        except CodecError as error:
            raise error.within(f"N5 block of {shape}") from error.__cause__
        if shape == self.spec.shape:
            return block
        chunk = np.full(self.spec.shape, self.spec.fill_value, self.spec.dtype)
        common = tuple(slice(0, min(*lengths)) for lengths in zip(shape, chunk.shape, strict=True))
        chunk[common] = block[common]
        return chunk

    def _pipeline(self, shape: Shape) -> Pipeline:
        if shape == self.spec.shape:
            return self.whole
        return Pipeline(self.codecs, replace(self.spec, shape=shape))

    def _shape(self, view: memoryview) -> Shape:
        """Return the shape of a block, from its header."""
        if len(view) < len(self.header):
            raise CodecError(
                "the value is shorter than the header of an N5 block", found=f"{len(view)} bytes"
            )
        mode, ndim = _HEAD.unpack_from(view)
        for name, value, expected in (
            ("mode", mode, 0),
            ("number of dimensions", ndim, len(self.spec.shape)),
        ):
            if value != expected:
                raise CodecError(
                    f"the N5 block has the wrong {name}", found=value, expected=expected
                )
        lengths = np.frombuffer(view[_HEAD.size : len(self.header)], ">u4").tolist()
        if prod(lengths) > _MAX_RATIO * prod(self.spec.shape):
            raise CodecError(
                "the N5 block is much larger than a chunk",
                found=tuple(lengths),
                expected=f"about {self.spec.shape}",
            )
        return tuple(lengths)
