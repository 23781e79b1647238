"""``transpose``: a permutation of the axes (C-48)."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from zarrdask.errors import MetadataError
from zarrdask.formats.codecs.codec import ChunkSpec, Configured, Kind, parse_configuration


@dataclass(frozen=True)
class TransposeCodec(Configured):
    """Array -> array.

    Parameters
    ----------
    order : tuple of int
        A permutation: axis i of the encoded chunk is axis ``order[i]`` of the chunk.
    """

    order: tuple[int, ...]

    name: ClassVar[str] = "transpose"
    kind: ClassVar[Kind] = Kind.ARRAY_ARRAY

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        order = parse_configuration(configuration, cls.name, {"order": ...})["order"]
        if not isinstance(order, list | tuple) or sorted(map(repr, order)) != sorted(
            map(repr, range(len(order)))
        ):
            raise MetadataError(
                "the order is not a permutation of the axes",
                key="transpose.order",
                found=order,
                expected="a list such as [1, 0]",
            )
        return cls(tuple(order))

    def resolve(self, spec: ChunkSpec) -> ChunkSpec:
        if len(self.order) != len(spec.shape):
            raise MetadataError(
                "the length of the permutation is not the number of axes",
                key="transpose.order",
                found=list(self.order),
                expected=f"a permutation of {len(spec.shape)} axes",
            )
        return ChunkSpec(tuple(spec.shape[i] for i in self.order), spec.dtype, spec.fill_value)

    def encode(self, chunk: np.ndarray) -> np.ndarray:
        return chunk.transpose(self.order)

    def decode(self, chunk: np.ndarray, spec: ChunkSpec) -> np.ndarray:
        return chunk.transpose(np.argsort(self.order))
