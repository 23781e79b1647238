"""The location that a dataset is written to, and the nodes that exist there."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import xarray

from zarrdask.arrays.hierarchy.changes.replace import can_stage, staged
from zarrdask.arrays.hierarchy.claim import Claim, claimed
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.hierarchy.resize import check_shape
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.errors import MetadataError, NodeExistsError, NodeNotFoundError, UnsupportedError
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.metadata.model import GroupMetadata
from zarrdask.parallel.execution.client import check_changeable, check_visible
from zarrdask.parallel.execution.locks import shape_lock
from zarrdask.parallel.graph.dependencies import Inputs
from zarrdask.storage.locks.leases import Lease
from zarrdask.xarray.datastore import Hierarchy, OpenOptions
from zarrdask.xarray.writing.existing import StoredDataset
from zarrdask.xarray.writing.plan import VariableWrite
from zarrdask.xarray.writing.request import WriteSettings

#: The number of arrays that one append locks one by one; if there are more, only the dataset is
#: locked.
_MAX_LOCKS = 256


@dataclass(frozen=True)
class Destination:
    """The group that is written."""

    #: Its location, in the store without a view of consolidated metadata.
    node: NodePath
    #: The path of the group that gets consolidated metadata: this one, or one above it.
    root: str
    options: WriteSettings
    #: The lease that excludes appends from other machines, if there is one; see `alone`.
    lease: Lease | None = None
    #: The claim of a new dataset, if it was taken before anything was read.
    claim: Claim[NodePath] | None = None

    @cached_property
    def new_group(self) -> GroupMetadata:
        """The metadata of a new group, in the format that the user asks for or of those above."""
        return GroupMetadata(self.node.format_of_new(self.options.zarr_format))

    @cached_property
    def seen(self) -> NodePath:
        """The group, with all that is looked at before a new one is written, read at once."""
        return self._look(self.node) if self.claim is None else self.claim.seen

    def _look(self, node: NodePath) -> NodePath:
        return node.prefetched(self.new_group, listed=True)

    @property
    def _claims_first(self) -> bool:
        """Whether a new dataset is claimed before anything is read: so it is read only once."""
        options, has = self.options, self.node.store.capabilities
        is_late = options.commit != "first" and options.compute and not options.resume
        is_new = options.mode == "w-" and not (has.costs.checks or has.bounded)
        return is_new and is_late and not self.new_group.format.has_entry_point

    @contextmanager
    def alone(self, dataset: xarray.Dataset, locked_at: str | None = None) -> Iterator[Self]:
        """Exclude other writers that append to the dataset, or create it, if that is done now.

        The result is this destination with the lease. `locked_at` is as in `shape_lock`.
        """
        if not self.options.may_create:
            yield self
            return
        node, dim = self.node, self.options.append_dim
        names = sorted(str(name) for name, v in dataset.variables.items() if dim in v.dims)
        lease = claim = None
        with ExitStack() as stack:
            if self._claims_first or self.options.mode == "w":
                # A claim excludes all others; a lease would be erased with the replaced group.
                stack.enter_context(node.lock("shape"))
            else:
                lease = stack.enter_context(shape_lock(node, locked_at))
            for name in names if len(names) <= _MAX_LOCKS else ():
                stack.enter_context(node.join(name).lock("shape"))
            if self._claims_first:
                claim = stack.enter_context(claimed(node, read=self._look))
            yield replace(self, lease=lease, claim=claim)

    def check(self) -> None:
        """Check that the workers see the store, and can write to it when they do."""
        appends_later = self.options.append_dim is not None and not self.options.compute
        (check_visible if appends_later else check_changeable)(self.node.store)
        if not self.options.compute and not self.node.store.capabilities.deferrable:
            raise UnsupportedError(
                "a write to a zip archive cannot be computed later; leave out compute=False",
                key=self.node.location,
            )

    def stored(self, path: str) -> StoredDataset | None:
        """Return the dataset of a group below; None if that is created or replaced."""
        mode = self.options.mode
        if mode in ("w", "w-"):
            return None
        try:
            return self._open(path, self.options.consolidated if mode == "r+" else False)
        except NodeNotFoundError:
            if mode == "r+":
                raise
            return None

    def _open(self, path: str, consolidated: bool | None) -> StoredDataset:  # noqa: FBT001
        node = self.node.join(path)
        options = OpenOptions(node.path or None, consolidated)
        return StoredDataset(Hierarchy(node.store, options).root())

    def recovered(
        self, stored: StoredDataset | None, dataset: xarray.Dataset
    ) -> StoredDataset | None:
        """Return the dataset that is appended to, without what an interrupted append left."""
        if stored is None or not self.options.appends:
            return stored
        dim, names = self.options.append_dim, [str(name) for name in dataset.variables]
        is_own = self.options.consolidated is False
        visible = {} if is_own else self._open("", None).lengths(dim)
        changed = stored.roll_back_surplus(dim, names, visible, self.lease)
        return self.stored("") if changed else stored

    def check_shapes(self, stored: StoredDataset | None, expected: Mapping[str, Shape]) -> None:
        """Check that no other writer has changed the shapes of stored arrays."""
        for name, shape in expected.items():
            array = None if stored is None else stored.arrays.get(name)
            metadata = None if array is None else array.metadata
            check_shape(metadata, (shape,), f"{self.node.location}/{name}")

    def is_replaced(self, stored: StoredDataset | None) -> bool:
        """Whether there is a node that the new dataset replaces, as the user has to allow."""
        if stored is not None or not self.seen.exists():
            return False
        if self.options.mode != "w":
            self.node.discard_dead_claim()
            raise NodeExistsError(
                "there is an array or group here already; mode='w' replaces it, mode='a' writes "
                "to it",
                key=self.node.location,
            )
        return True

    def settings(self, stored: StoredDataset | None) -> WriteSettings:
        """Return the options of the write, with the format of the group."""
        version = self.options.format.version  # an error for unknown formats
        if stored is None:
            return replace(self.options, zarr_format=self.new_group.zarr_format)
        if self.options.zarr_format not in (None, stored.zarr_format):
            raise MetadataError(
                "the stored dataset has another format; leave zarr_format out, or write to "
                "another group",
                key="zarr_format",
                found=version,
                expected=repr(stored.zarr_format),
            )
        return replace(self.options, zarr_format=stored.zarr_format)

    def view(self, stored: StoredDataset | None) -> NodePath:
        """Return the group as the hierarchy sees it: the drafts of v3 have keys of their own."""
        if stored is None:
            replaces = self.options.mode == "w"
            return self.seen.check_creation(self.new_group, overwrite=replaces).fresh
        views = [chunks_of(array).store for array in stored.arrays.values()]
        return self.node.via(views[0]) if views else self.node

    def stage(self) -> NodePath | None:
        """Return a location beside the group, at which the new one is written completely.

        Where the metadata is needed at once, as regions are to be written by other processes,
        there is none.
        """
        options = self.options
        if not options.compute and options.commit != "last":
            return None
        if options.resume or self.new_group.format.has_entry_point or not can_stage(self.node):
            return None
        return staged(self.node)

    def check_not_read(self, variables: Iterable[VariableWrite]) -> None:
        """Check that the new dataset is not computed from the one that it replaces."""
        arrays = [variable.data for variable in variables if variable.is_dask]
        if Inputs(arrays).are_below(self.node.canonical_location):
            raise NodeExistsError(
                "the new dataset is computed from the one that it would replace; write it "
                "elsewhere",
                key=self.node.location,
            )
