"""``to_zarr``: datasets, data arrays and trees into Zarr groups, without zarr-python."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Literal
from uuid import uuid4

import xarray
from dask.delayed import delayed

from zarrdask.errors import MetadataError, NodeExistsError, NodeNotFoundError, UnsupportedError
from zarrdask.execution.client import check_visible, scheduler_in_task
from zarrdask.execution.locks import shape_lock
from zarrdask.graph.dependencies import reads
from zarrdask.graph.write_job import compute as compute_jobs
from zarrdask.grids.base import Shape
from zarrdask.hierarchy.create import check_creation, clear_members, create_members, create_node
from zarrdask.hierarchy.find import node_exists
from zarrdask.hierarchy.path import (
    join_path,
    key_prefix,
    locate_node,
    node_location,
    normalise_path,
)
from zarrdask.hierarchy.replace import Stage, can_stage
from zarrdask.hierarchy.resize import check_shape, lock_shape
from zarrdask.metadata import detect
from zarrdask.metadata.chunking import GridLike
from zarrdask.metadata.model import GroupMetadata, ZarrFormat
from zarrdask.runtime.locks import location_of
from zarrdask.runtime.progress import Show
from zarrdask.storage.base import Store
from zarrdask.storage.consolidated import plain
from zarrdask.xarray import execution
from zarrdask.xarray.datastore import OpenOptions, read_group
from zarrdask.xarray.encoding import NewArrays
from zarrdask.xarray.existing import StoredDataset
from zarrdask.xarray.plan import DatasetWriteOptions, GroupWrite, plan_group
from zarrdask.xarray.recovery import roll_back_surplus

_MODES = ("w", "w-", "a", "a-", "r+")
#: Arrays that one append locks one by one; of more, only the dataset is locked.
_MAX_LOCKS = 256
#: The names by which xarray stores a data array that has none, or that of a coordinate.
_VARIABLE = "__xarray_dataarray_variable__"
_NAME = "__xarray_dataarray_name__"


def to_zarr(
    obj: Any,
    store: Any,
    mode: str | None = None,
    group: str | None = None,
    encoding: Mapping[Any, Any] | None = None,
    *,
    compute: bool = True,
    consolidated: bool | None = None,
    append_dim: Hashable | None = None,
    region: Any = None,
    safe_chunks: bool = True,
    align_chunks: bool = False,
    storage_options: dict[str, Any] | None = None,
    zarr_format: ZarrFormat | None = None,
    write_empty_chunks: bool | None = None,
    chunkmanager_store_kwargs: dict[str, Any] | None = None,
    write_inherited_coords: bool = False,
    grid: GridLike = "regular",
    commit: Literal["first", "last"] = "first",
    progress: Show = False,
) -> Any:
    """Write a dataset to a Zarr group. A drop-in for `xarray.Dataset.to_zarr`.

    Parameters
    ----------
    obj : xarray.Dataset, xarray.DataArray or xarray.DataTree
        What to write. All Dask arrays in it are computed in one graph.
    store : str, os.PathLike, MutableMapping, Store or Group
        A path, any fsspec URL, a mapping of keys to bytes, a store, or an open group.
    mode : {"w", "w-", "a", "a-", "r+"}, optional
        ``"w"``: create the group, or replace it with all that it holds; ``"w-"``: create it, or
        fail if there is one; ``"a"``: write to the variables that are there, create others;
        ``"a-"``: the same, but with `append_dim` only variables that have this dimension are
        written; ``"r+"``: change values, but no metadata. By default ``"a"`` with `append_dim`,
        ``"r+"`` with `region`, else ``"w-"``.
    group : str, optional
        The group's path within.
    encoding : dict, optional
        How new variables are stored, by name: the keys that xarray knows (``dtype``,
        ``scale_factor``, ``_FillValue``, ``units``, ...), ``chunks``, ``shards``,
        ``compressors``, ``filters``, ``serializer`` (v3), ``fill_value`` (v3),
        ``write_empty_chunks``, ``chunk_key_encoding``; and of zarrdask ``codecs`` and ``grid``,
        with the values that `zarrdask.create_array` takes. For a tree, by the path of the node,
        then by name.
    compute : bool
        Whether to write now. If not, metadata and variables in memory are written, and what
        writes the Dask arrays is returned. An append writes nothing before it is computed.
    consolidated : bool, optional
        Whether consolidated metadata are written, in v2 and v3: to `store`, also if `group` is
        given. By default they are, unless the mode is ``"r+"``.
    append_dim : hashable, optional
        The dimension along which the dataset is added at the end of the stored one.
    region : dict or "auto", optional
        The part of the stored dataset that is written: for some dimensions a slice, or
        ``"auto"`` for the place where the stored coordinate has the same values.
    safe_chunks, align_chunks : bool
        Accepted for compatibility: every blocking can be written to every grid of chunks.
        Block boundaries are moved where that is needed.
    storage_options : dict, optional
        For fsspec.
    zarr_format : {3, 2, "v3-draft", "v3-draft-protocol"}, optional
        The format of a new group, 3 by default.
    write_empty_chunks : bool, optional
        Whether chunks that hold only the fill value are stored. By default as the setting
        ``zarrdask.write-empty-chunks`` says: they are not.
    chunkmanager_store_kwargs : dict, optional
        Accepted for compatibility.
    write_inherited_coords : bool
        Whether the nodes of a tree store the coordinates that they inherit, too.
    grid : {"regular", "rectilinear"}
        The grid of new arrays of which the encoding does not give the chunks: all chunks have the
        shape of the longest block, or they are the blocks.
    commit : {"first", "last"}
        When the metadata of new arrays are written: before their values, so that several
        processes can write regions meanwhile; or afterwards, so that the dataset appears when it
        is complete.
    progress : bool, file or callable, default False
        Whether and how to show a progress bar, as in `zarrdask.to_zarr`. It counts the blocks of
        Dask arrays. There is none with ``compute=False``.

    Returns
    -------
    None or dask.delayed.Delayed
        None after computing; what computes and completes the write, if `compute` is false.

    Raises
    ------
    ZarrdaskError
        If the dataset cannot be stored in this way; nothing is changed then. A `MetadataError` is
        a ValueError, a `NodeExistsError` a FileExistsError, a `NodeNotFoundError` a
        FileNotFoundError.

    Notes
    -----
    An append writes values first, then the shapes, those of index coordinates last, then the
    consolidated metadata: if it is interrupted, the dataset is as it was. Of two appends at the
    same time, one follows the other. A group in a local directory that is replaced stays until
    the new one is complete.

    Examples
    --------
    >>> import xarray as xr
    >>> import zarrdask.xarray
    >>> store = {}
    >>> ds = xr.Dataset({"t": ("time", [1.5, 2.5])}, {"time": [0, 1]})
    >>> zarrdask.xarray.to_zarr(ds, store)
    >>> zarrdask.xarray.to_zarr(ds.assign_coords(time=[2, 3]), store, append_dim="time")
    >>> zarrdask.xarray.open_zarr(store).t.values
    array([1.5, 2.5, 1.5, 2.5])
    """
    options = DatasetWriteOptions(
        _mode(mode, append_dim, region),
        append_dim,
        region,
        consolidated,
        write_empty_chunks,
        grid,
        _commit(commit),
        compute,
        progress if compute else False,
    )
    is_tree = isinstance(obj, xarray.DataTree)
    if is_tree and append_dim is not None:
        raise _TreeAppendError("an append to a whole tree is not supported; append to its nodes")
    datasets = _tree(obj, write_inherited_coords) if is_tree else {"": _dataset(obj)}
    encodings = _encodings(encoding or {}, obj, is_tree=is_tree)
    location, path = locate_node(store, group, storage_options)
    root = path.removesuffix(normalise_path(group)).rstrip("/")
    writer = _Writer(plain(location), path, options, zarr_format, root)
    with writer.alone(datasets), location.batch():
        return writer.write(datasets, encodings)


class _TreeAppendError(MetadataError, NotImplementedError):
    """An append to a tree."""


def _mode(mode: str | None, append_dim: Hashable | None, region: Any) -> str:
    if mode is None:
        mode = "a" if append_dim is not None else "r+" if region is not None else "w-"
    if mode not in ("a", "a-") and append_dim is not None:
        raise MetadataError("cannot set append_dim unless mode='a' or mode=None", key="mode")
    if mode not in ("a", "a-", "r+") and region is not None:
        raise MetadataError(
            "cannot set region unless mode='a', mode='a-', mode='r+' or mode=None", key="mode"
        )
    if mode not in _MODES:
        raise MetadataError(
            "The only supported options for mode are 'w', 'w-', 'a', 'a-', and 'r+', but "
            f"mode={mode!r}",
            key="mode",
        )
    return mode


def _commit(commit: str) -> Any:
    if commit not in ("first", "last"):
        raise MetadataError("unknown", key="commit", found=commit, expected="'first' or 'last'")
    return commit


def _dataset(obj: Any) -> xarray.Dataset:
    """Return a data array as a dataset, named as xarray does."""
    if isinstance(obj, xarray.Dataset):
        return obj
    if not isinstance(obj, xarray.DataArray):
        raise _ObjectTypeError(
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


class _ObjectTypeError(MetadataError, TypeError):
    """An object that is none of xarray's."""


def _tree(tree: xarray.DataTree, inherited: bool) -> dict[str, xarray.Dataset]:  # noqa: FBT001
    """Return the datasets of a tree by path from its root, parents first."""
    return {
        "" if node is tree else path: node.to_dataset(inherit=inherited or node is tree)
        for path, node in tree.subtree_with_keys
    }


def _encodings(
    encoding: Mapping[Any, Any], obj: Any, *, is_tree: bool
) -> Mapping[str, Mapping[Any, Any]]:
    """Return the encodings of each group, by path from the group that is written."""
    if not is_tree:
        return {"": encoding}
    if unknown := {*encoding} - {*obj.groups}:
        raise MetadataError(
            f"unexpected encoding group name(s) provided: {unknown}",
            key="encoding",
            expected=f"paths among {', '.join(obj.groups)}",
        )
    return {
        "" if node is obj else path: encoding.get(node.path) or {}
        for path, node in obj.subtree_with_keys
    }


class _Writer:
    """Writes datasets to a group and groups below it."""

    def __init__(
        self,
        store: Store,
        path: str,
        options: DatasetWriteOptions,
        zarr_format: ZarrFormat | None,
        root: str,
    ) -> None:
        self.store = store
        self.path = path
        self.options = options
        self.zarr_format = zarr_format
        self.root = root
        self.compute_options: Mapping[str, Any] = {}

    @contextmanager
    def alone(self, datasets: Mapping[str, xarray.Dataset]) -> Iterator[None]:
        """Be the only one who appends to the dataset, if it is an append that is computed now."""
        dim = self.options.append_dim
        if dim is None or not self.options.compute:
            yield
            return
        (dataset,) = datasets.values()
        names = sorted(str(name) for name, v in dataset.variables.items() if dim in v.dims)
        with ExitStack() as stack:
            stack.enter_context(shape_lock(self.store, self.path))
            for name in names if len(names) <= _MAX_LOCKS else ():
                path = join_path(self.path, name)
                stack.enter_context(lock_shape(self.store, path))
            yield

    def write(
        self,
        datasets: Mapping[str, xarray.Dataset],
        encodings: Mapping[str, Mapping[Any, Any]],
        *,
        expected: Mapping[str, Shape] | None = None,
        compute_options: Mapping[str, Any] | None = None,
    ) -> Any:
        """Plan the write, then do it, or return what does it.

        Parameters
        ----------
        datasets, encodings : mapping
            What is written, and the encodings, by path from the group.
        expected : mapping, optional
            The shapes that stored arrays must have; it is an error if others changed them.
        compute_options : mapping, optional
            Options of `dask.compute`.
        """
        check_visible(self.store)
        if not self.options.compute and not self.store.deferrable:
            raise UnsupportedError(
                "a write to a zip archive cannot be computed later; leave out compute=False",
                key=self._location(),
            )
        self.compute_options = compute_options or {}
        stored = {path: self._stored(path) for path in datasets}
        stored[""] = self._recovered(stored[""], datasets[""])
        self._check_shapes(stored[""], expected or {})
        there = stored[""] is None and node_exists(self.store, self.path)
        if there and self.options.mode != "w":
            raise NodeExistsError(
                "there is an array or group here already; mode='w' replaces it, mode='a' writes "
                "to it",
                key=node_location(self.store, self.path),
            )
        settings = self._settings(stored[""])
        stage = self._stage() if there else None
        root = self.path if stage is None else ""
        store = self._view(stored[""], settings) if stage is None else stage.inner
        writes = [
            plan_group(
                dataset,
                (store, join_path(root, path) if path else root),
                stored[path],
                self.options,
                settings,
                encodings[path],
            )
            for path, dataset in datasets.items()
        ]
        if self.options.append_dim is not None and not self.options.compute:
            return self._append_later(writes[0], datasets, encodings)
        targets = execution.write_targets(writes)
        if there and stage is None:
            self._check_not_read(targets)
        if stage is not None:
            return self._replace(stage, writes, targets)
        return self._write(writes, targets)

    # ---- what is there

    def _view(self, stored: StoredDataset | None, settings: NewArrays) -> Store:
        """Return the store as the hierarchy sees it: the drafts of v3 have keys of their own."""
        if stored is None:
            group = GroupMetadata(settings.zarr_format)
            replaces = self.options.mode == "w"
            return check_creation(self.store, self.path, group, overwrite=replaces)
        views = [plain(array.store) for array in stored.arrays.values()]
        return views[0] if views else self.store

    def _stored(self, path: str) -> StoredDataset | None:
        """Return the dataset that is written to; None if it is created or replaced."""
        mode = self.options.mode
        if mode in ("w", "w-"):
            return None
        place = join_path(self.path, path) if path else self.path
        consolidated = self.options.consolidated if mode == "r+" else False
        try:
            group = read_group(self.store, OpenOptions(place or None, consolidated=consolidated))
        except NodeNotFoundError:
            if mode == "r+":
                raise
            return None
        return StoredDataset(group)

    def _recovered(
        self, stored: StoredDataset | None, dataset: xarray.Dataset
    ) -> StoredDataset | None:
        """Return the dataset that is appended to, without what an interrupted append left."""
        dim = self.options.append_dim
        if stored is None or dim is None or not self.options.compute:
            return stored
        names = [str(name) for name in dataset.variables]
        return self._stored("") if roll_back_surplus(stored, dim, names) else stored

    def _settings(self, stored: StoredDataset | None) -> NewArrays:
        asked = self.zarr_format
        if stored is None:
            zarr_format = 3 if asked is None else asked
            detect.find(zarr_format)
        else:
            zarr_format = stored.zarr_format
            if asked is not None and asked != zarr_format:
                raise MetadataError(
                    "the stored dataset has another format; leave zarr_format out, or write to "
                    "another group",
                    key="zarr_format",
                    found=asked,
                    expected=repr(zarr_format),
                )
        return NewArrays(zarr_format, self.options.grid, self.options.write_empty_chunks)

    def _stage(self) -> Stage | None:
        """Return a directory beside the group, in which the new one is written completely.

        Where the metadata are needed at once, as regions are to be written by other processes,
        there is none.
        """
        if not self.options.compute and self.options.commit == "first":
            return None
        is_draft = self.zarr_format not in (None, 2, 3)
        if is_draft or not can_stage(self.store, self.path):
            return None
        return Stage(self.store, self.path)  # type: ignore[arg-type]

    def _check_not_read(self, targets: execution.Targets) -> None:
        """Check that the new dataset is not computed from the one that it replaces."""
        place = location_of(self.store, key_prefix(self.path))
        arrays = [variable.data for variable, _ in targets if variable.is_dask]
        if any(read.is_below(place) for read in reads(arrays)):
            raise NodeExistsError(
                "the dataset to be replaced is what the new one is computed from; write it "
                "elsewhere",
                key=node_location(self.store, self.path),
            )

    # ---- writing

    def _write(self, writes: Sequence[GroupWrite], targets: execution.Targets) -> Any:
        options = self.options
        last = options.commit == "last"
        try:
            self._begin(writes, documents=not last)
            jobs = execution.write_in_memory(targets)
            completions = self._completions(writes, creates=last, root=self.root)
            if not options.compute:
                if not last:
                    for complete in completions:
                        complete()
                return execution.later(jobs, completions if last else ())
            compute_jobs(jobs, show=options.progress, **self.compute_options)
            for complete in completions:
                complete()
        except BaseException as error:
            error.add_note(f"{self._location()}: {execution.roll_back(writes)}")
            raise
        return None

    def _append_later(
        self,
        write: GroupWrite,
        datasets: Mapping[str, xarray.Dataset],
        encodings: Mapping[str, Mapping[Any, Any]],
    ) -> Any:
        """Return one task that appends as it would be done now, if nobody has done so before."""
        writer = _Writer(
            self.store, self.path, replace(self.options, compute=True), self.zarr_format, self.root
        )
        shapes = {v.name: v.old_shape for v in write.appends if v.old_shape is not None}
        later = LaterAppend(writer, datasets, encodings, shapes)
        name = f"append-zarr-{uuid4().hex}"
        return delayed(later, pure=False, traverse=False)(dask_key_name=name)

    def _replace(
        self, stage: Stage, writes: Sequence[GroupWrite], targets: execution.Targets
    ) -> Any:
        """Write all of it beside the group that it replaces, which stays until then."""
        root = writes[0].metadata
        stage.begin(detect.render(root))
        try:
            self._begin(writes, documents=True, has_root=True)
            jobs = execution.write_in_memory(targets)
            is_root = self.path == self.root
            within = "" if is_root else None
            for complete in self._completions(writes, creates=False, root=within):
                complete()
            stage.seal()
            finish: list[Callable[[], None]] = [stage.finish]
            if not is_root and self._consolidates(writes):
                place = self.store, self.path, self.root
                finish.append(partial(execution.consolidate, *place, root.zarr_format))
            if not self.options.compute:
                return execution.later(jobs, finish)
            compute_jobs(jobs, show=self.options.progress, **self.compute_options)
            for step in finish:
                step()
        except BaseException as error:
            stage.give_up()
            error.add_note(f"{self._location()}: what was here before is unchanged")
            raise
        return None

    def _begin(
        self, writes: Sequence[GroupWrite], *, documents: bool, has_root: bool = False
    ) -> None:
        """Make the groups and, if their documents are written first, the new arrays."""
        replaces = self.options.mode == "w" and not has_root
        for number, write in enumerate(writes):
            if write.before is None and not (has_root and number == 0):
                # Whatever was below the first group went with it.
                create_node(
                    write.store if has_root else self.store,
                    write.path,
                    write.metadata,
                    overwrite=replaces and number == 0,
                )
            arrays = {name: v.array.metadata for name, v in write.new_arrays.items()}
            if not documents:
                clear_members(write.store, write.path, arrays)
                continue
            keeps = not has_root and self._consolidates(writes)
            keep = self.root if keeps else None
            create_members(write.store, write.path, arrays, keep=keep)

    def _completions(
        self, writes: Sequence[GroupWrite], *, creates: bool, root: str | None
    ) -> list[execution.Completion]:
        """Return what is done when all values are written: the first group comes last.

        Parameters
        ----------
        writes : sequence of GroupWrite
        creates : bool
            Whether new arrays get their documents then.
        root : str, optional
            The path of the group that gets consolidated metadata.
        """
        root = root if self._consolidates(writes) else None
        return [
            execution.Completion(
                write, consolidate=root if write is writes[0] else None, creates=creates
            )
            for write in reversed(writes)
        ]

    def _consolidates(self, writes: Sequence[GroupWrite]) -> bool:
        options = self.options
        if options.mode == "r+" or options.consolidated is False:
            return False
        if options.region is None or options.consolidated:
            return True
        # Regions may be written by many processes: none of them changes the documents.
        return any(write.changes_metadata for write in writes)

    def _check_shapes(self, stored: StoredDataset | None, expected: Mapping[str, Shape]) -> None:
        for name, shape in expected.items():
            array = None if stored is None else stored.arrays.get(name)
            metadata = None if array is None else array.metadata
            check_shape(metadata, (shape,), f"{self._location()}/{name}")

    def _location(self) -> str:
        return node_location(self.store, self.path)


class LaterAppend:
    """An append that is computed later: one task, which does all of it under the locks.

    Parameters
    ----------
    writer : _Writer
        Writes it.
    datasets, encodings : mapping
        The arguments of the writer.
    shapes : mapping
        The shapes of the stored arrays when the append was asked for. They must be the same when
        it is done: so it is done once, and no other append is lost.
    """

    # Not a dataclass, which Dask would search for tasks.
    __slots__ = ("datasets", "encodings", "shapes", "writer")

    def __init__(
        self,
        writer: _Writer,
        datasets: Mapping[str, xarray.Dataset],
        encodings: Mapping[str, Mapping[Any, Any]],
        shapes: Mapping[str, Shape],
    ) -> None:
        self.writer = writer
        self.datasets = datasets
        self.encodings = encodings
        self.shapes = shapes

    def __call__(self) -> None:
        """Append: the task."""
        with self.writer.alone(self.datasets), scheduler_in_task() as options:
            self.writer.write(
                self.datasets, self.encodings, expected=self.shapes, compute_options=options
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return LaterAppend, (self.writer, self.datasets, self.encodings, self.shapes)
