"""The settings of a write: what a user may say of it, checked."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal

from zarrdask.errors import MetadataError
from zarrdask.metadata.model import ZarrFormat
from zarrdask.metadata.options import GridLike
from zarrdask.runtime.progress import Show

_MODES = ("w", "w-", "a", "a-", "r+")


class ArgumentTypeError(MetadataError, TypeError):
    """An argument, or part of one, of a type that cannot be written."""


@dataclass(frozen=True)
class WriteSettings:
    """What a user may say of a write; see `zarrdask.xarray.to_zarr`."""

    mode: str
    append_dim: Hashable | None = None
    region: Any = None
    consolidated: bool | None = None
    zarr_format: ZarrFormat | None = None
    write_empty_chunks: bool | None = None
    grid: GridLike = "regular"
    commit: Literal["first", "last"] = "first"
    compute: bool = True
    progress: Show = False

    @property
    def format(self) -> ZarrFormat:
        """The format of new arrays."""
        return 3 if self.zarr_format is None else self.zarr_format

    @property
    def is_v3(self) -> bool:
        """Whether the conventions of v3 hold; the drafts of v3 follow those of v2."""
        return self.format == 3

    def check(self) -> None:
        """Check the options that exclude each other, or have a few possible values."""
        mode = self.mode
        if mode not in ("a", "a-") and self.append_dim is not None:
            raise MetadataError("cannot set append_dim unless mode='a' or mode=None", key="mode")
        if mode not in ("a", "a-", "r+") and self.region is not None:
            raise MetadataError(
                "cannot set region unless mode='a', mode='a-', mode='r+' or mode=None", key="mode"
            )
        if mode not in _MODES:
            raise MetadataError(
                "The only supported options for mode are 'w', 'w-', 'a', 'a-', and 'r+', but "
                f"mode={mode!r}",
                key="mode",
            )
        if self.commit not in ("first", "last"):
            raise MetadataError(
                "unknown time for writing the metadata",
                key="commit",
                found=self.commit,
                expected="'first' or 'last'",
            )

    @property
    def appends(self) -> bool:
        """Whether it is an append that is computed now."""
        return self.append_dim is not None and self.compute


def default_mode(append_dim: Hashable | None, region: Any) -> str:
    """Return the mode of a write for which none is given."""
    return "a" if append_dim is not None else "r+" if region is not None else "w-"
