"""``bitround``: numbers with fewer significant bits, which compress better (C-56)."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from zarrdask.formats.codecs.array_to_array.cast import bit_length, floats
from zarrdask.formats.codecs.codec import ChunkSpec, Configured, Kind, integer, refused
from zarrdask.formats.codecs.numeric import native, part_of
from zarrdask.formats.compliance import report_deviation
from zarrdask.formats.dtypes.ml import kind_of, name_of

_MAX_BITS = 2**31 - 1


@dataclass(frozen=True)
class BitroundCodec(Configured):
    """Array -> array, with a loss of precision.

    Parameters
    ----------
    keepbits : int
        The number of bits that are kept, in the mantissa of a float, which is rounded half to even,
        or in an integer from its highest set bit. Signed integers are rounded as if they were
        unsigned (conformance X-C9).
    """

    keepbits: int

    name: ClassVar[str] = "bitround"
    kind: ClassVar[Kind] = Kind.ARRAY_ARRAY
    #: Whether `keepbits` may be 0.
    may_keep_none: ClassVar[bool] = False

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        codec = super().from_configuration(configuration)
        key = f"{cls.name}.keepbits"
        if integer(codec.keepbits, key, 0, _MAX_BITS) == 0 and not cls.may_keep_none:
            report_deviation("X-C9", "no bit is kept", key=key, found=0, expected="1 or more")
        return codec

    def resolve(self, spec: ChunkSpec) -> ChunkSpec:
        part = part_of(spec.dtype)
        floating = part.kind == "f" and name_of(part) is None
        if not (floating or part.kind in "iumM" or name_of(part) == "bfloat16"):
            expected = "integers, floats of 16 bits or more, or complex numbers of them"
            raise refused(spec.dtype, expected)
        fill = self.encode(np.array(spec.fill_value, spec.dtype))[()]
        return ChunkSpec(spec.shape, spec.dtype, fill)

    def encode(self, chunk: np.ndarray) -> np.ndarray:
        chunk = native(chunk)
        parts = chunk.reshape(-1).view(part_of(chunk.dtype))
        rounded = self._round_floats if kind_of(parts.dtype) == "f" else self._round_integers
        return rounded(parts).view(chunk.dtype).reshape(chunk.shape)

    def _round_floats(self, values: np.ndarray) -> np.ndarray:
        drop = floats(values.dtype).digits - 1 - self.keepbits
        if drop <= 0:
            return values
        bits = values.view(f"u{values.itemsize}")
        unit = bits.dtype.type
        # A carry into the exponent is correct.
        odd = (bits >> unit(drop)) & unit(1)
        rounded = (bits + odd + unit((1 << (drop - 1)) - 1)) & ~unit((1 << drop) - 1)
        return np.where(np.isfinite(values), rounded, bits).view(values.dtype)

    def _round_integers(self, values: np.ndarray) -> np.ndarray:
        width = f"u{values.itemsize}"
        bits = values.view(width).astype("u8")
        one, most = np.uint64(1), np.uint64(2 ** (8 * values.itemsize) - 1)
        drop = np.maximum(bit_length(bits) - self.keepbits, 0).astype("u8")
        low = (one << drop) - one
        half = (one << drop) >> one
        rounded = bits + ((bits >> drop) & one) + np.maximum(half, one) - one
        rounded = np.where(drop > 0, rounded, bits)
        # Numbers that would overflow, or become negative, are rounded down.
        limit = (
            np.where(bits <= most >> one, most >> one, most) if values.dtype.kind != "u" else most
        )
        up = (rounded >= bits) & (rounded <= limit)
        kept: np.ndarray = np.where(up, rounded, bits) & ~low
        return kept.astype(width).view(values.dtype)

    def decode(self, chunk: np.ndarray, spec: ChunkSpec) -> np.ndarray:
        return chunk


@dataclass(frozen=True)
class NumcodecsBitroundCodec(BitroundCodec):
    """Array -> array, as `BitroundCodec` for floats only; `keepbits` may be 0 (C-66)."""

    name: ClassVar[str] = "numcodecs.bitround"
    may_keep_none: ClassVar[bool] = True

    def resolve(self, spec: ChunkSpec) -> ChunkSpec:
        if spec.dtype.kind != "f" or name_of(spec.dtype):
            raise refused(spec.dtype, "floats")
        integer(self.keepbits, f"{self.name}.keepbits", 0, floats(spec.dtype).digits - 1)
        return super().resolve(spec)
