"""``numcodecs.pcodec``: lossless compression of numbers, by the package pcodec (C-66)."""

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from zarrdask.errors import CodecError, MetadataError, one_of
from zarrdask.formats.codecs.codec import (
    SLACK,
    Buffer,
    ChunkSpec,
    Configured,
    Kind,
    Serializer,
    failed,
    integer,
    load_package,
    refused,
)
from zarrdask.formats.codecs.numeric import native

#: Imported by its name, as it is not an attribute of the package before pcodec 1.1.
_STANDALONE = "pcodec.standalone"
_DELTAS = ("auto", "none", "try_consecutive", "try_lookback")


@dataclass(frozen=True)
class PcodecCodec(Configured):
    """Array -> bytes.

    Parameters
    ----------
    level : int
        The level of compression, from 0 (fastest) to 12 (smallest); 8 by default.
    mode_spec : {"auto", "classic"}
        Whether the codec searches for structure within the numbers.
    delta_spec : {"auto", "none", "try_consecutive", "try_lookback"}
        Whether, and how, the codec stores differences between numbers.
    paging_spec : {"equal_pages_up_to"}
        How numbers are divided into pages.
    equal_pages_up_to : int
        The maximum number of elements of a page.
    delta_encoding_order : int, optional
        The order of the differences, from 0 to 7, for "try_consecutive".
    """

    level: int = 8
    mode_spec: str = "auto"
    delta_spec: str = "auto"
    paging_spec: str = "equal_pages_up_to"
    equal_pages_up_to: int = 262144
    delta_encoding_order: int | None = None

    name: ClassVar[str] = "numcodecs.pcodec"
    kind: ClassVar[Kind] = Kind.ARRAY_BYTES

    def __post_init__(self) -> None:
        integer(self.level, "pcodec.level", 0, 12)
        one_of(self.mode_spec, "pcodec.mode_spec", ("auto", "classic"))
        one_of(self.delta_spec, "pcodec.delta_spec", _DELTAS)
        one_of(self.paging_spec, "pcodec.paging_spec", ("equal_pages_up_to",))
        integer(self.equal_pages_up_to, "pcodec.equal_pages_up_to", 1, 2**31 - 1)
        if self.delta_encoding_order is not None:
            integer(self.delta_encoding_order, "pcodec.delta_encoding_order", 0, 7)
            one_of(self.delta_spec, "pcodec.delta_spec", ("auto", "try_consecutive"))
        elif self.delta_spec == "try_consecutive":
            raise MetadataError(
                "delta_spec 'try_consecutive' requires delta_encoding_order",
                key="pcodec.delta_encoding_order",
                expected="an integer from 0 to 7",
            )

    def bind(self, spec: ChunkSpec) -> "Numbers":
        if spec.dtype.kind not in "iuf" or spec.dtype.itemsize == 1 or spec.dtype.itemsize > 8:
            raise refused(spec.dtype, "integers or floats of 16, 32 or 64 bits")
        return Numbers(self, spec)

    def chunk_config(self) -> Any:
        """Return the configuration as an object of the package."""
        pcodec = _load()
        deltas = pcodec.DeltaSpec
        order = self.delta_encoding_order
        if order is not None:
            delta = deltas.try_consecutive(order)
        elif self.delta_spec == "none":
            # This was the name until version 1.
            delta = getattr(deltas, "no_op", None) or deltas.none
            delta = delta()
        else:
            delta = getattr(deltas, self.delta_spec)()
        return pcodec.ChunkConfig(
            compression_level=self.level,
            mode_spec=getattr(pcodec.ModeSpec, self.mode_spec)(),
            delta_spec=delta,
            paging_spec=pcodec.PagingSpec.equal_pages_up_to(self.equal_pages_up_to),
        )


def _load(module: str = "pcodec") -> Any:
    return load_package(module, "pcodec")


class Numbers(Serializer):
    """The pcodec codec, bound to chunks."""

    def __init__(self, codec: PcodecCodec, spec: ChunkSpec) -> None:
        _load()
        self.codec = codec
        self.spec = spec
        self.most = 2 * spec.nbytes + SLACK

    def encode(self, chunk: np.ndarray) -> Buffer:
        standalone = _load(_STANDALONE)
        try:
            values = native(chunk).reshape(-1)
            return standalone.simple_compress(values, self.codec.chunk_config())  # type: ignore[no-any-return]
        except (RuntimeError, ValueError, TypeError) as error:
            raise failed("encode", error) from error

    def decode(self, data: Buffer) -> np.ndarray:
        count = prod(self.spec.shape)
        values = np.empty(count, self.spec.dtype.newbyteorder("="))
        try:
            progress = _load(_STANDALONE).simple_decompress_into(bytes(data), values)
        except (RuntimeError, ValueError, TypeError) as error:
            raise failed("decode", error) from error
        if not progress.finished or progress.n_processed != count:
            raise CodecError(
                "the number of elements in the value differs from the chunk's",
                found=progress.n_processed if progress.finished else "more",
                expected=str(count),
            )
        return values.reshape(self.spec.shape)
