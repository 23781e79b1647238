"""Unknown codecs with ``must_understand: false``, which are skipped on reading (C-15, X-C5)."""

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from zarrdask.codecs.base import Buffer, ChunkSpec, Json, Kind
from zarrdask.errors import UnsupportedError
from zarrdask.extension import Definition


@dataclass(frozen=True)
class SkippedCodec:
    """Array -> array or bytes -> bytes: decoding returns the input, and encoding is an error.

    Parameters
    ----------
    definition : Definition
        The definition in the document.
    kind : Kind
        The kind that follows from the position in the list.
    """

    definition: Definition
    kind: Kind

    @property
    def name(self) -> str:
        """The name in the document."""
        return self.definition.name

    def to_json(self) -> Json:
        return self.definition.to_json()

    def resolve(self, spec: ChunkSpec) -> ChunkSpec:
        return spec

    def encode(self, data: Any) -> NoReturn:
        raise UnsupportedError(
            "an array with an unknown codec can be read but not written",
            key="codecs",
            found=self.name,
        )

    def decode(self, data: Any, limit: ChunkSpec | int, out: Any = None) -> Buffer | np.ndarray:
        return data  # type: ignore[no-any-return]

    def encoded_size(self, size: int) -> int | None:
        return size
