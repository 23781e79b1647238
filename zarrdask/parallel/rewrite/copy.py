"""``copy``: arrays and hierarchies are copied to another location, or into another format."""

from collections.abc import Iterable
from typing import Any, Literal

from zarrdask.arrays.chunks.cast import Casting
from zarrdask.arrays.hierarchy.changes.journal import Fingerprint, digest
from zarrdask.arrays.hierarchy.changes.recorded import check_begun
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.arguments import check_options, checks_booleans
from zarrdask.errors import MetadataError
from zarrdask.formats.metadata.convert import Changes, convert
from zarrdask.formats.metadata.format import Format
from zarrdask.formats.metadata.model import ArrayMetadata, ZarrFormat
from zarrdask.parallel.execution.executor import check_reached, workers
from zarrdask.parallel.rewrite.copying.copy_costs import planned_costs
from zarrdask.parallel.rewrite.copying.copy_tasks import (
    ArrayJob,
    Part,
    copy_arrays,
    plan_tasks,
)
from zarrdask.parallel.rewrite.copying.member_regions import check_by, restricted
from zarrdask.parallel.rewrite.copying.references import (
    list_references,
    report_of,
    store_references,
)
from zarrdask.parallel.rewrite.destination import Destination
from zarrdask.parallel.rewrite.member_lengths import check_member_lengths, lengths_of_member
from zarrdask.parallel.rewrite.node_plan import (
    NodeCopy,
    NodeFilter,
    Origin,
    check_apart,
    documents_of,
    find_origin,
    locate_target,
    plan_nodes,
)
from zarrdask.parallel.rewrite.pyramid_records import copy_pyramid_records
from zarrdask.parallel.rewrite.rewrite_changes import digest_of_parts, rewriting
from zarrdask.parallel.rewrite.rewrite_report import CopyReport
from zarrdask.runtime.progress import Show
from zarrdask.storage.resolve import options_of_each


@checks_booleans
def copy(
    source: Any,
    target: Any = None,
    component: str | None = None,
    *,
    region: Any = None,
    by: Literal["value", "reference"] = "value",
    zarr_format: ZarrFormat | None = None,
    overwrite: bool = False,
    include: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] | None = None,
    group_filter: str | Iterable[str] | None = None,
    on_unsupported: Literal["raise", "skip"] = "raise",
    restart: bool = False,
    dry_run: bool = False,
    storage_options: dict[str, Any] | None = None,
    source_options: dict[str, Any] | None = None,
    target_options: dict[str, Any] | None = None,
    scheduler: Any = None,
    progress: Show = False,
    **changes: Any,
) -> CopyReport:
    """Copy an array or a whole hierarchy, optionally into another format.

    Attributes, dimension names, fill values and consolidated metadata are copied as well. Where
    the encoded bytes are the same in both, they are copied without decoding: whole chunks and
    shards, or the inner chunks of shards where an array gets shards or loses them. Everything is
    checked before anything is written, and the document of each array is written after all of
    its chunks. An interrupted copy is resumed when it is repeated with the same source, target and
    options.

    Parameters
    ----------
    source : Array, Group, str, os.PathLike, MutableMapping or Store
        The array or the group that is copied.
    target : str, os.PathLike, MutableMapping, Store or Group
        The location of the copy. Required.
    component : str, optional
        The path of the copy below `target`.
    region : tuple of slice, or dict of str to slice, optional
        The region that is copied, by axis or by dimension name; by default everything. In a group,
        it is a dict, and arrays without these dimensions are copied as a whole. Attributes are
        copied unchanged.
    by : {"value", "reference"}, default "value"
        Whether chunks are copied, or the copy refers to the chunks of the source; then no chunk is
        read. The target is then a writable session of icechunk whose repository has a virtual chunk
        container for the source, and reading a chunk that was changed later raises an error.
    zarr_format : {2, 3, "v3-draft", "v3-draft-protocol"}, optional
        The format of the copy. By default it follows the target, if that is a group, or else the
        source; 3 for a copy by reference.
    overwrite : bool, default False
        Whether a node at the target is removed first, but not what an interrupted run of the same
        copy has written. Otherwise it raises an error.
    include, exclude : str or iterable of str, optional
        Patterns of paths below the source, such as ``"*/temperature"``: the arrays that are
        copied, and the arrays and groups that are not. By default everything is copied.
    group_filter : str or iterable of str, optional
        Patterns such as ``"/*/sweep_0"``: only groups whose paths match are copied, with their
        arrays, and the groups above them, as in `Group.walk`.
    on_unsupported : {"raise", "skip"}, default "raise"
        Whether nodes that can't be read, or that the format can't represent, raise an error or are
        left out.
    restart : bool, default False
        Whether to discard the work of interrupted copies to this target, with any options.
    dry_run : bool, default False
        Check everything and return the report, but write nothing.
    storage_options : dict, optional
        Options of fsspec for the source and the target. A local path takes none, and is exempt.
    source_options, target_options : dict, optional
        Options of fsspec for one of the two, instead of `storage_options`.
    scheduler : str or distributed.Client, optional
        The scheduler of the tasks: "threads", "processes", "sync", a client, or the address of a
        scheduler. The default is the current scheduler of Dask.
    progress : bool, file or callable, default False
        Whether and how to show a progress bar, as in `to_zarr`. It counts chunks (or shards).
    **changes
        Properties of all new arrays: ``chunks``, ``shards`` (False for none; both may be dicts by
        dimension or by path, as in `zarrdask.rechunk`), ``codecs``,
        ``compressors``, ``filters``, ``dtype``, ``fill_value``, ``chunk_key_encoding``. See
        `zarrdask.formats.metadata.convert.Changes`.

    Returns
    -------
    CopyReport
        How each array was copied, and what could not be kept. It prints.

    Raises
    ------
    UnsupportedError, MetadataError
        If a node can't be converted or referenced, or no array matches `include`. Nothing is
        written then.
    SelectionError
        If the region does not fit an array.
    NodeExistsError
        If there is a node at the target already, or if the target lies in the source.
    NodeNotFoundError
        If there is no node at the source.
    StoreError
        If a store fails, or if another copy to this target was interrupted.

    Examples
    --------
    >>> import zarrdask
    >>> z = zarrdask.create_array({}, shape=6, dtype="i4", chunks=2, zarr_format=2)
    >>> z[...] = 7
    >>> store = {}
    >>> report = zarrdask.copy(z, store, zarr_format=3)
    >>> report.arrays[0].method, zarrdask.open_array(store).zarr_format
    ('copied unchanged', 3)
    """
    check_options(changes, copy, Changes)
    check_by(by, region)
    select = NodeFilter.parse(include, exclude, on_unsupported, group_filter)
    of_source, of_target = options_of_each(
        storage_options, (source, source_options), (target, target_options)
    )
    origin = find_origin(source, of_source)
    if target is None:
        raise MetadataError("pass a target, the location of the copy", key="target", found=None)
    target_node = locate_target(target, component, of_target)
    if zarr_format is None:
        zarr_format = target_node.format_above()
    if by == "reference":
        # The document says how chunks are named in the target.
        zarr_format, changes = zarr_format or 3, {"chunk_key_encoding": "default", **changes}
    check_apart(origin.node, target_node, replaces=overwrite)

    is_group = not isinstance(origin.metadata, ArrayMetadata)

    def convert_array(path: str, before: ArrayMetadata) -> ArrayMetadata:
        of_array = {
            key: lengths_of_member(value, path, before)
            if is_group and key in ("chunks", "shards")
            else value
            for key, value in changes.items()
        }
        after = convert(before, zarr_format=zarr_format, **of_array)
        Casting.chosen().check(before.dtype, after.dtype, "dtype")
        return after

    nodes, skipped = plan_nodes(origin, convert_array, zarr_format, select)
    nodes = restricted(nodes, region)
    root = nodes[0].after
    if is_group:
        _check_lengths(nodes, changes)
    begun, view = check_begun(target_node, root, overwrite=overwrite)
    jobs = [
        ArrayJob(
            node,
            origin.node.join(node.path).chunks(node.before),  # type: ignore[arg-type]
            Destination.new(target_node.join(node.path), view.join(node.path), node.after),  # type: ignore[arg-type]
        )
        for node in nodes
        if node.is_array
    ]
    arrays, notes = [job.report() for job in jobs], list[str]()
    with workers(scheduler) as on:
        check_reached(on, origin.node.store, changed=target_node.store)
        if dry_run and not (begun or overwrite):
            members = {job.node.path: job.target.metadata for job in jobs if job.node.path}
            view.check_members(members)
        objects = None
        if by == "reference":
            objects = list_references(jobs, target_node.store)
            arrays = [report_of(job) for job in jobs]
        tasks = plan_tasks(jobs) if objects is None else []
        if not dry_run:
            plan = _fingerprint(origin, nodes, tasks)
            after = {node.path: node.after for node in nodes}
            with rewriting(
                target_node, after, plan, overwrite=overwrite, restart=restart
            ) as rewrite:
                if objects is None:
                    arrays, notes = copy_arrays(jobs, tasks, rewrite, on, progress)
                    copied = {
                        job.node.path: (job.source, job.target.chunks)
                        for job in jobs
                        if job.node.region is None
                    }
                    copy_pyramid_records(origin.node, rewrite.view, copied)
                else:
                    arrays = store_references(jobs, objects, rewrite, progress)
                if origin.consolidated and not isinstance(root, ArrayMetadata):
                    notes += _consolidate(rewrite.view, root.format)
    costs = planned_costs(tasks) if dry_run and objects is None else None
    return CopyReport.of_nodes(
        origin.node.location, target_node.location, nodes, skipped, arrays, notes, costs
    )


def _check_lengths(nodes: list[NodeCopy], changes: dict[str, Any]) -> None:
    """Check that the lengths of chunks and shards name arrays of the group."""
    before: dict[str, Any] = {node.path: node.before for node in nodes if node.is_array}
    for key in ("chunks", "shards"):
        check_member_lengths(key, changes.get(key), before)


def _fingerprint(origin: Origin, nodes: list[NodeCopy], tasks: list[list[Part]]) -> Fingerprint:
    """Return the values that identify a copy, by their names."""
    before = [(node.path, documents_of(node.before)) for node in nodes]
    parts = (
        (part.job, part.empty, part.indices, *([part.start] if part.start else []))
        for task in tasks
        for part in task
    )
    return {
        "source": digest(origin.node.canonical_location, before),
        "target": digest([node.after.render() for node in nodes]),
        "stored chunks or shards": digest(digest_of_parts(repr(part).encode() for part in parts)),
    }


def _consolidate(group: NodePath, form: Format) -> list[str]:
    """Write consolidated metadata, as the source has it; return notes on what went wrong."""
    if form.consolidated_key is None or not group.store.capabilities.listable:
        return ["no consolidated metadata: the format has none, or the store can't be listed"]
    try:
        group.consolidate(form.version)
    except MetadataError as error:
        return [f"consolidated metadata could not be written: {error}"]
    return []
