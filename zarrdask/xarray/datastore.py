"""Groups as xarray's data stores: their arrays as variables."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from xarray import Variable
from xarray.backends.common import AbstractDataStore
from xarray.core.indexing import BasicIndexer, LazilyIndexedArray

from zarrdask.arrays.chunks.missing_chunks import Missing, chosen_missing
from zarrdask.arrays.hierarchy.group_filter import GroupFilter
from zarrdask.arrays.hierarchy.lookup import look_up
from zarrdask.arrays.hierarchy.path import ancestors, join_path
from zarrdask.arrays.nodes.array import Array
from zarrdask.errors import NodeNotFoundError, NodeTypeError, ZarrdaskError
from zarrdask.formats.compliance import strictness
from zarrdask.formats.metadata.detect import Search
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata, Known, ZarrFormat
from zarrdask.storage.base import Store
from zarrdask.storage.cache.prefetched import prefetch
from zarrdask.storage.concurrent_requests import request_on_each
from zarrdask.xarray import conventions
from zarrdask.xarray.lazy import LazyArray


@dataclass(frozen=True)
class StoredGroup:
    """A group and its arrays, as their documents describe them."""

    #: The group's path, relative to the group that was opened.
    path: str
    metadata: GroupMetadata
    arrays: Mapping[str, Array]
    #: The group's location, for messages.
    location: str


@dataclass(frozen=True)
class OpenOptions:
    """How groups are opened: the arguments of the engine that concern storage."""

    group: str | None = None
    consolidated: bool | None = None
    storage_options: dict[str, Any] | None = None
    zarr_format: ZarrFormat | None = None
    strict: bool | None = None
    drop_variables: frozenset[str] = frozenset()
    missing: Missing | None = None
    group_filter: GroupFilter | None = None


# --------------------------------------------------------------------------------------------
# Documents -> groups


class Hierarchy:
    """A hierarchy of groups, opened at one of them: the documents of groups and arrays."""

    def __init__(self, url: Any, options: OpenOptions) -> None:
        self.options = options
        zarr_format, strict = options.zarr_format, options.strict
        where = options.group, options.storage_options
        self.lookup = look_up(url, *where, zarr_format=zarr_format, strict=strict)
        self.node = self.lookup.node
        self.missing = chosen_missing(options.missing)
        self.listed: Store | None = None
        self._known: Known = {}
        self.metadata = self._find()

    def _find(self) -> GroupMetadata:
        """Read the group's own documents, and list it if that can be done at the same time."""
        plain = self.node
        # The listing is needed only if there is no consolidated metadata, which is known once the
        # documents are read. In a remote store, both are requested concurrently.
        chosen = self.options.group_filter
        if self.options.consolidated or (chosen and chosen.next_names("") is not None):
            return self._find_documents()
        listed = prefetch(plain.store, (), listed=[plain.prefix])
        metadata = self._find_documents()
        if self.node.store is plain.store:
            self.listed = listed
        return metadata

    def _find_documents(self) -> GroupMetadata:
        try:
            self.node, metadata = self.lookup.find(self.options.consolidated, default="nearest")
        except NodeNotFoundError as error:
            raise NodeNotFoundError(
                f"the Zarr group does not exist: {error.message}",
                key=error.key,
                expected=error.expected,
            ) from error
        if isinstance(metadata, ArrayMetadata):
            raise NodeTypeError(
                "expected a group but found an array; open the group that holds it, or use "
                "zarrdask.open_array",
                key=self.node.location,
                found="array",
                expected="group",
            )
        return metadata

    def root(self) -> StoredGroup:
        """Return the group at which the hierarchy was opened."""
        return self._group("", self.metadata)[0]

    def tree(self) -> dict[str, StoredGroup]:
        """Return all groups, parents first, level by level."""
        groups: dict[str, StoredGroup] = {}
        chosen, skip = self.options.group_filter, self.options.drop_variables
        search = Search(self.metadata.zarr_format)
        root = self.node.via(self.listed or self.node.store)
        self.listed = root.expect_chosen(search, chosen, skip=skip).store
        level, store = {"": self.metadata}, self.node.store
        while level:
            following: dict[str, GroupMetadata] = {}
            read = request_on_each(store, lambda item: self._group(*item), level.items())
            for group, below in read:
                groups[group.path] = group
                following |= below
            level = following
        return groups if chosen is None else _needed(groups, chosen)

    def _group(
        self, path: str, metadata: GroupMetadata
    ) -> tuple[StoredGroup, dict[str, GroupMetadata]]:
        """Return a group and, by path, the metadata of the groups in it."""
        node, chosen = self.node.join(path), self.options.group_filter
        arrays, groups = {}, {}
        try:
            with strictness(self.lookup.strict):
                # xarray names a variable without a name __values__, and a data array's
                # __xarray_dataarray_variable__.
                children = node.via(self.listed or node.store).children(
                    Search(metadata.zarr_format),
                    skip=self.options.drop_variables,
                    reserved=True,
                    chosen=None if chosen is None else chosen.below(path),
                    known=self._known,
                )
                for name, member in children:
                    if isinstance(member, ZarrdaskError):
                        raise member
                    if isinstance(member, ArrayMetadata):
                        arrays[name] = Array(node.join(name), member, missing=self.missing)
                    else:
                        groups[join_path(path, name)] = member
        except ZarrdaskError as error:
            error.add_note("drop_variables=[...] opens a dataset without some of its variables")
            raise
        return StoredGroup(path, metadata, arrays, node.location), groups


def _needed(groups: dict[str, StoredGroup], chosen: GroupFilter) -> dict[str, StoredGroup]:
    """Return the chosen groups, and the groups above them."""
    paths = [path for path in groups if chosen.accepts(path)]
    needed = {"", *paths, *(above for path in paths for above in ancestors(path))}
    return {path: group for path, group in groups.items() if path in needed}


# --------------------------------------------------------------------------------------------
# Groups -> variables


@dataclass(eq=False)
class ZarrdaskDataStore(AbstractDataStore):
    """The variables of a group, not decoded."""

    group: StoredGroup
    #: The values of variables that have been read already.
    values: Mapping[str, np.ndarray]
    #: Whether arrays' fill values mask elements. By default they do in v2 and the drafts of v3.
    mask: bool | None = None
    #: Whether dimensions without names are given some.
    phony_dims: bool = False
    #: Whether chunks are listed, so that missing ones need no request.
    skip_missing: bool = False
    #: Whether values are unpacked, by xarray's option ``mask_and_scale``; a dict is by variable.
    scales: Any = True
    #: The value of ``encoding["source"]``, if xarray does not set it.
    source: str | None = None

    def get_variables(self) -> dict[str, Variable]:
        dimensions = self.dimensions()
        return {
            name: self._variable(name, array, dimensions[name])
            for name, array in self.group.arrays.items()
        }

    def dimensions(self) -> dict[str, tuple[str, ...]]:
        """Return the names of the dimensions of each variable."""
        dimensions, nameless = {}, {}
        for name, array in self.group.arrays.items():
            try:
                dimensions[name] = conventions.dimensions(array.metadata)
            except conventions.MissingDimensionsError as error:
                if not self.phony_dims:
                    raise error.within(array.node_path.location) from None
                nameless[name] = array.metadata
        return dimensions | conventions.phony_dimensions(nameless)

    def _variable(self, name: str, array: Array, dims: tuple[str, ...]) -> Variable:
        metadata = array.metadata
        mask = metadata.format.fill_masks if self.mask is None else self.mask
        try:
            attributes = conventions.variable_attributes(metadata, mask=mask)
            scales = self.scales.get(name, True) if isinstance(self.scales, dict) else self.scales
            if scales is None or scales:
                conventions.check_packing(attributes)
        except ZarrdaskError as error:
            raise error.within(array.node_path.location) from error.__cause__
        lazy = LazyArray(array, self.values.get(name), skip_missing=self.skip_missing)
        if len(dims) < array.ndim:  # a scalar of NCZarr
            data = LazilyIndexedArray(lazy, BasicIndexer((0,)))
            return Variable(dims, data, attributes)
        encoding = conventions.variable_encoding(array, dims, mask=mask)
        if lazy.dtype.kind == "T":
            encoding["dtype"] = lazy.dtype  # Without it, xarray makes objects of texts.
        return Variable(dims, LazilyIndexedArray(lazy), attributes, encoding)

    def get_attrs(self) -> dict[str, Any]:
        return conventions.without_nczarr(self.group.metadata.attributes)

    def get_encoding(self) -> dict[str, Any]:
        return {} if self.source is None else {"source": self.source}
