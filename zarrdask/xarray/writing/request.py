"""The request to write: datasets, one for each group, and the options, checked."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import xarray

from zarrdask.arrays.nodes.open import check_commit
from zarrdask.errors import MetadataError
from zarrdask.formats.metadata.array_options import GridLike
from zarrdask.formats.metadata.format import Format
from zarrdask.formats.metadata.formats import find_format
from zarrdask.formats.metadata.model import ZarrFormat
from zarrdask.parallel.graph.writing.target import Resume, check_resume
from zarrdask.runtime.progress import Show

_MODES = ("w", "w-", "a", "a-", "r+")
#: The names by which xarray stores a data array without a name, or with a coordinate's name.
_VARIABLE = "__xarray_dataarray_variable__"
_NAME = "__xarray_dataarray_name__"


class ArgumentTypeError(MetadataError, TypeError):
    """An argument, or part of one, of a type that cannot be written."""


@dataclass(frozen=True)
class WriteSettings:
    """The options of a write; see `zarrdask.xarray.to_zarr`."""

    mode: str
    append_dim: Hashable | None = None
    region: Any = None
    consolidated: bool | None = None
    zarr_format: ZarrFormat | None = None
    write_empty_chunks: bool | None = None
    grid: GridLike = "regular"
    commit: Literal["first", "last"] | None = None
    compute: bool = True
    resume: Resume = False
    progress: Show = False
    #: Whether manifests of arrays are kept up to date.
    manifests: bool = False

    @property
    def format(self) -> Format:
        """The format of new arrays."""
        return find_format(3 if self.zarr_format is None else self.zarr_format)

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
        if self.commit is not None:
            check_commit(self.commit)
        check_resume(self.resume)
        if self.resume and self.commit == "first":
            raise MetadataError(
                "a write that can be resumed has its metadata written last; omit commit",
                key="commit",
                found=self.commit,
            )

    @property
    def appends(self) -> bool:
        """Whether it is an append that is computed now."""
        return self.append_dim is not None and self.compute

    @property
    def may_create(self) -> bool:
        """Whether it may be a new dataset or variable that is written now."""
        return self.mode != "r+" and self.region is None and self.compute


def default_mode(append_dim: Hashable | None, region: Any) -> str:
    """Return the mode of a write for which none is given."""
    return "a" if append_dim is not None else "r+" if region is not None else "w-"


@dataclass(frozen=True)
class Content:
    """The content of one group: a dataset, and encodings by the names of variables."""

    dataset: xarray.Dataset
    encoding: Mapping[Any, Any]


def contents(obj: Any, encoding: Mapping[Any, Any], *, inherit: bool) -> dict[str, Content]:
    """Return the content of each group, by its path from the first one, parents first.

    Encodings are by name; for a tree, by the path of the node, then by name. If asked for, the
    nodes of a tree store the coordinates that they inherit.
    """
    if not isinstance(obj, xarray.DataTree):
        return {"": Content(_dataset(obj), encoding)}
    if unknown := {*encoding} - {*obj.groups}:
        raise MetadataError(
            f"unexpected encoding group name(s) provided: {unknown}",
            key="encoding",
            expected=f"paths among {', '.join(obj.groups)}",
        )
    return {
        "" if node is obj else path: Content(
            node.to_dataset(inherit=inherit or node is obj), encoding.get(node.path) or {}
        )
        for path, node in obj.subtree_with_keys
    }


def _dataset(obj: Any) -> xarray.Dataset:
    """Return a data array as a dataset, named as xarray does."""
    if isinstance(obj, xarray.Dataset):
        return obj
    if not isinstance(obj, xarray.DataArray):
        raise ArgumentTypeError(
            "only objects of xarray can be written; zarrdask.to_zarr writes arrays",
            key="obj",
            found=type(obj).__name__,
            expected="a Dataset, a DataArray or a DataTree",
        )
    if obj.name is None:
        return obj.to_dataset(name=_VARIABLE)
    if obj.name in obj.coords or obj.name in obj.dims:
        return obj.to_dataset(name=_VARIABLE).assign_attrs({_NAME: obj.name})
    return obj.to_dataset()
