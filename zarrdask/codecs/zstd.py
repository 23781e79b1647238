"""``zstd``: Zstandard frames (C-53)."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from numcodecs import zstd

from zarrdask.codecs.base import Buffer, Json, Kind, configuration, integer, one_of
from zarrdask.errors import CodecError


@dataclass(frozen=True)
class ZstdCodec:
    """Bytes -> bytes.

    Parameters
    ----------
    level : int
        -131072 (fastest) to 22 (smallest); 0 means the library's default, 3.
    checksum : bool
        Whether each frame ends with a checksum of its contents.
    """

    level: int = 3
    checksum: bool = False

    name: ClassVar[str] = "zstd"
    kind: ClassVar[Kind] = Kind.BYTES_BYTES

    def __post_init__(self) -> None:
        integer(self.level, "zstd.level", -131072, 22)
        one_of(self.checksum, "zstd.checksum", (False, True))

    @classmethod
    def from_configuration(cls, found: Any) -> Self:  # noqa: D102
        return cls(**configuration(found, cls.name, {"level": 0, "checksum": False}))

    def to_json(self) -> Json:  # noqa: D102
        members: Json = {"level": self.level}
        if self.checksum:
            members["checksum"] = True
        return {"name": self.name, "configuration": members}

    def encode(self, data: Buffer) -> Buffer:  # noqa: D102
        return zstd.compress(data, self.level, self.checksum)  # type: ignore[no-any-return]

    def decode(self, data: Buffer, limit: int, out: Any = None) -> Buffer:  # noqa: D102
        size = content_size(data)
        try:
            if size is None:
                return _decode_unsized(data, limit, out)
            if size > limit:
                raise CodecError(
                    "the frame holds too many bytes",
                    key="codec zstd",
                    found=size,
                    expected=f"at most {limit}",
                )
            if out is not None and size == limit:
                zstd.decompress(data, out)
                return out
            return zstd.decompress(data)  # type: ignore[no-any-return]
        except (RuntimeError, ValueError) as error:
            if isinstance(error, CodecError):
                raise
            raise CodecError(f"can't decompress: {error}", key="codec zstd") from error

    def encoded_size(self, size: int) -> int | None:  # noqa: D102
        return None


def content_size(data: Buffer) -> int | None:
    """Return the size that a frame's header states (RFC 8878, 3.1.1), or None.

    None also stands for what the short way can't tell: several frames, a skippable frame.
    """
    view = memoryview(data)
    if len(view) < 6 or bytes(view[:4]) != b"\x28\xb5\x2f\xfd":
        return None
    descriptor = view[4]
    flag, single = descriptor >> 6, descriptor >> 5 & 1
    width = (1 if single else 0, 2, 4, 8)[flag]
    if not width:
        return None
    start = 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3]
    size = int.from_bytes(view[start : start + width], "little")
    return size + 256 if flag == 1 else size


def _decode_unsized(data: Buffer, limit: int, out: Any) -> Buffer:
    if out is not None:
        zstd.decompress(data, out)
        return out  # type: ignore[no-any-return]
    found = zstd.decompress(data)
    if len(found) > limit:
        raise CodecError(
            "the frame holds too many bytes",
            key="codec zstd",
            found=len(found),
            expected=f"at most {limit}",
        )
    return found  # type: ignore[no-any-return]
