"""``verify``: check that everything stored can be read."""

from collections.abc import Iterable
from os import PathLike
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.hierarchy.group_filter import GroupFilter
from zarrdask.arrays.hierarchy.lookup import locate_node
from zarrdask.arrays.nodes.arguments import suggests_arguments
from zarrdask.arrays.nodes.info import dtype_name
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.parallel.execution.executor import run_shown
from zarrdask.runtime.progress import Show
from zarrdask.storage.snapshots.object_manifest import Manifest, ManifestDifferences
from zarrdask.tools.verification.check import Tally, check_units
from zarrdask.tools.verification.node_manifest import verify_manifest
from zarrdask.tools.verification.pyramid_levels import label_problems, pyramid_problems
from zarrdask.tools.verification.scan import Scan, scan_hierarchy
from zarrdask.tools.verification.verification_report import ArrayReport, VerifyReport

#: The most decoded bytes, and the most units, that one task checks.
_TASK_BYTES, _TASK_UNITS = 2**26, 512


@overload
def verify(
    url: Any,
    *,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    strict: bool = False,
    every: bool = False,
    group_filter: str | Iterable[str] | None = None,
    manifest: Literal[False] | None = None,
    scheduler: Any = None,
    progress: Show = False,
) -> VerifyReport: ...


@overload
def verify(
    url: Any,
    *,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    strict: bool = False,
    every: bool = False,
    group_filter: str | Iterable[str] | None = None,
    manifest: Manifest | str | PathLike[str] | Literal[True],
    scheduler: Any = None,
    progress: Show = False,
) -> ManifestDifferences: ...


@suggests_arguments
def verify(
    url: Any,
    *,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    strict: bool = False,
    every: bool = False,
    group_filter: str | Iterable[str] | None = None,
    manifest: Manifest | str | PathLike[str] | bool | None = None,
    scheduler: Any = None,
    progress: Show = False,
) -> VerifyReport | ManifestDifferences:
    """Check that everything stored in an array or a hierarchy can be read.

    All metadata is parsed, and every stored chunk or shard is read and decoded as a whole, with its
    checksums; in a shard, the index and every chunk. Missing chunks are not a problem: they read as
    the fill value. That holds also for a coarser level of a pyramid from which a chunk was deleted;
    `zarrdask.inventory` lists missing chunks.

    `zarrdask.compare` checks that two nodes hold equal elements and metadata.

    Parameters
    ----------
    url : str, os.PathLike, MutableMapping, Store, Array or Group
        The node to check, as in `zarrdask.open`.
    component : str, optional
        The path of the node below `url`.
    storage_options : dict, optional
        Options of fsspec for a URL.
    strict : bool, default False
        Whether the check also fails for metadata that is read although it breaks a rule, and
        for chunks of a shard that share bytes.
    every : bool, default False
        Whether chunks or shards that are missing or hold only the fill value are listed as well.
    group_filter : str or iterable of str, optional
        Patterns of paths of groups below the node, such as ``"/*/sweep_0"``: only the arrays in
        these groups are checked, and no other nodes are read except the groups above them.
    manifest : Manifest, str, os.PathLike or True, optional
        A manifest of the node, or the local file that it is saved in; True for the one that is
        stored in the node. Objects are then compared with it instead of decoded: only objects with
        a digest in it are read. The other options have no effect.
    scheduler : str or distributed.Client, optional
        The scheduler of the tasks: "threads", "processes", "sync", a client, or the address of a
        scheduler. The default is the current scheduler of Dask.
    progress : bool, file or callable, default False
        Whether to show a bar: in the output of a notebook's cell, or on standard error; or the file
        to write it to. A file that is not a terminal gets a line every ten seconds. A function is
        called with the finished work, all work, and the bytes of the finished work.

    Returns
    -------
    VerifyReport
        It prints, and its attribute `ok` is the result of the check. With `manifest`, it is a
        `ManifestDifferences`, with the keys of changed, missing and added objects.

    Raises
    ------
    NodeNotFoundError
        If there is no node.
    StoreError
        If a store can't be reached.
    UnsupportedError
        If the node is a group, and its store can't be listed.

    Examples
    --------
    >>> import zarrdask
    >>> z = zarrdask.create_array({}, shape=(4, 4), dtype="i4", chunks=2, compressors="crc32c")
    >>> z[:2] = 1
    >>> z.store.set("c/0/1", b"damaged")
    >>> report = zarrdask.verify(z)
    >>> report.ok, report.problems[0].kind, report.problems[0].key
    (False, 'truncated', 'c/0/1')
    """
    node = locate_node(url, component, storage_options)
    if not (manifest is None or manifest is False):
        return verify_manifest(node, manifest)
    chosen = None if group_filter is None else GroupFilter.of(group_filter)
    scan = scan_hierarchy(node, chosen)
    scan.problems += [*pyramid_problems(scan), *label_problems(scan)]
    tallies = check_scanned(scan, "verify", every=every, scheduler=scheduler, show=progress)
    return _report(scan, tallies, strict=strict)


class VerifyTask(NamedTuple):
    """Some units of an array that one task checks."""

    chunks: StoredChunks
    path: str
    #: The indices of the units, a row each; or their numbers in C order.
    units: np.ndarray | range
    every: bool


def check_scanned(
    scan: Scan, label: str, *, every: bool = False, scheduler: Any, show: Show
) -> dict[str, Tally]:
    """Check the units that a scan has found, or `every` unit; return the results by array."""
    tasks = _plan(scan, every=every)
    sizes = [len(task.units) for task in tasks]
    nbytes = sum(len(t.units) * t.chunks.metadata.pipeline.spec.nbytes for t in tasks)
    options = {"scheduler": scheduler, "show": show, "sizes": sizes, "nbytes": nbytes}
    results = run_shown(verify_chunks, tasks, label, scan.base, **options)
    tallies: dict[str, Tally] = {path: Tally() for path, _ in scan.arrays()}
    for task, tally in zip(tasks, results, strict=True):
        tallies[task.path] += tally
    return tallies


def _plan(scan: Scan, *, every: bool) -> list[VerifyTask]:
    """Return the tasks of a check: with every unit of the grids, or with the stored ones only."""
    tasks = []
    for path, chunks in scan.arrays():
        stored = scan.units[path]
        units = range(chunks.metadata.grid.size) if every or stored is None else stored
        nbytes = chunks.metadata.pipeline.spec.nbytes
        step = max(1, min(_TASK_UNITS, _TASK_BYTES // max(nbytes, 1)))
        parts = (units[start : start + step] for start in range(0, len(units), step))
        tasks += [VerifyTask(chunks, path, part, every) for part in parts]
    return tasks


def verify_chunks(task: VerifyTask) -> Tally:
    """Check some units. This is the task: dashboards of clusters show its name."""
    chunks, rows = task.chunks, task.units
    if isinstance(rows, range):
        counts = chunks.metadata.grid.counts
        rows = np.stack(np.unravel_index(rows, counts), axis=1) if counts else np.empty((1, 0))
    return check_units(chunks, list(map(tuple, rows.tolist())), every=task.every)


def _report(scan: Scan, tallies: dict[str, Tally], *, strict: bool) -> VerifyReport:
    """Return the report, in the order of the nodes."""
    arrays = []
    for path, chunks in scan.arrays():
        metadata, tally = chunks.metadata, tallies[path]
        size = metadata.grid.size
        counts = size, tally.stored, size - tally.stored, tally.fill_only, tally.chunks, tally.size
        arrays.append(ArrayReport(path, metadata.shape, dtype_name(metadata), *counts))
    return VerifyReport(
        scan.root.location,
        sum(not isinstance(node, ArrayMetadata | None) for node in scan.nodes.values()),
        tuple(arrays),
        (*scan.problems, *(p for tally in tallies.values() for p in tally.problems)),
        strict,
        scan.base.capabilities.listable,
        scan.root.current,
    )
