"""The manifests of the arrays of a dataset, which a write keeps up to date."""

from collections.abc import Sequence
from dataclasses import replace

from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.parallel.graph.writing.manifests import ManifestUpdate, update_manifests
from zarrdask.parallel.graph.writing.write_job import WriteJob
from zarrdask.xarray.values import Targets


def manifest_updates(
    group: NodePath, targets: Targets, jobs: Sequence[WriteJob], *, are_staged: bool
) -> list[ManifestUpdate]:
    """Return the updates of the manifests of all arrays that a write stores chunks of.

    `group` is the group that is written, and `are_staged` whether the arrays are stored beside it
    first.
    """
    computed = iter([job.update for job in jobs])
    updates = list[ManifestUpdate]()
    for variable, to in targets:
        node = variable.array.node_path
        node = group.join(node.path) if are_staged else node
        is_whole = variable.is_new and to.stores_all
        update = next(computed) if variable.is_dask else ManifestUpdate(node, to.chunks, is_whole)
        if update is not None:
            updates.append(replace(update, node=node, is_whole=is_whole))
    return updates


def begin_manifests(updates: Sequence[ManifestUpdate]) -> list[ManifestUpdate]:
    """Store manifests of new arrays whose documents are stored, and of values in memory.

    Return the updates that are made when the Dask arrays are computed.
    """
    update_manifests(updates)
    return [replace(each, is_whole=False) for each in updates]
