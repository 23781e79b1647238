"""``reshape``: the same elements in C order, in another shape (C-61)."""

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from zarrdask.errors import MetadataError, instance_of
from zarrdask.formats.codecs.codec import (
    ChunkSpec,
    Configured,
    Kind,
    check_dimensions,
    parse_configuration,
)
from zarrdask.formats.grids.chunk_grid import Shape


@dataclass(frozen=True)
class ReshapeCodec(Configured):
    """Array -> array.

    Parameters
    ----------
    shape : tuple of (int or tuple of int)
        For each axis of the encoded chunk: its length; or -1, at most once, for the length that
        follows from the others; or the axes of the chunk that are joined to this axis.
    """

    shape: tuple[int | Shape, ...]

    name: ClassVar[str] = "reshape"
    kind: ClassVar[Kind] = Kind.ARRAY_ARRAY

    def __post_init__(self) -> None:
        check_dimensions(len(self.shape), "reshape.shape")
        axes = [axis for item in self.shape if isinstance(item, tuple) for axis in item]
        lengths = [item for item in self.shape if not isinstance(item, tuple)]
        if any(type(n) is not int or (n < 1 and n != -1) for n in lengths):
            raise self._invalid("positive lengths, -1 or lists of axes")
        if lengths.count(-1) > 1:
            raise self._invalid("-1 at most once")
        if any(type(axis) is not int or axis < 0 for axis in axes) or axes != sorted(set(axes)):
            raise self._invalid("axes in rising order, as this codec does not transpose")

    def _invalid(self, expected: str) -> MetadataError:
        return MetadataError(
            "chunks can't have this shape",
            key="reshape.shape",
            found=self.to_json()["configuration"]["shape"],
            expected=expected,
        )

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        shape = parse_configuration(configuration, cls.name, {"shape": ...})["shape"]
        instance_of(shape, "reshape.shape", list)
        return cls(tuple(tuple(n) if isinstance(n, list) else n for n in shape))

    def resolve(self, spec: ChunkSpec) -> ChunkSpec:
        return ChunkSpec(self._shape(spec.shape), spec.dtype, spec.fill_value)

    def _shape(self, before: Shape) -> Shape:
        axes = [axis for item in self.shape if isinstance(item, tuple) for axis in item]
        if any(axis >= len(before) for axis in axes):
            raise self._invalid(f"axes below {len(before)}")
        lengths = [
            prod(before[axis] for axis in item) if isinstance(item, tuple) else item
            for item in self.shape
        ]
        if -1 in lengths:
            at = lengths.index(-1)
            others = prod(lengths[:at] + lengths[at + 1 :])
            lengths[at] = prod(before) // others if others else 0
        if prod(lengths) != prod(before):
            raise self._invalid(f"a shape of {prod(before)} elements, as {before} has")
        for n, item in enumerate(self.shape):
            if isinstance(item, tuple) and item:
                self._check_axes(before, lengths, n, item)
        return tuple(lengths)

    def _check_axes(self, before: Shape, after: list[int], n: int, axes: Shape) -> None:
        """Check that the positions along an axis are those along the axes that are joined to it."""
        ahead = prod(after[:n]) == prod(before[: axes[0]])
        behind = prod(after[n + 1 :]) == prod(before[axes[-1] + 1 :])
        if not (ahead and behind):
            raise self._invalid(
                f"as many elements before and after the axes {list(axes)} as in the chunk"
            )

    def encode(self, chunk: np.ndarray) -> np.ndarray:
        return chunk.reshape(self._shape(chunk.shape))

    def decode(self, chunk: np.ndarray, spec: ChunkSpec) -> np.ndarray:
        return chunk.reshape(spec.shape)
