"""The interface of rechunker: ``from zarrdask.compat.rechunker import rechunk``.

A program for rechunker runs with this import and no other change. `zarrdask.rechunk` does more.
"""

from collections.abc import Collection, Mapping
from html import escape
from typing import Any

import dask
import dask.array as da

from zarrdask import config
from zarrdask.arrays.hierarchy.lookup import locate_node
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.array import Array
from zarrdask.arrays.nodes.group import Group
from zarrdask.arrays.nodes.open_group import open as open_node
from zarrdask.errors import MetadataError
from zarrdask.parallel.rewrite.array_plan import RechunkPlan
from zarrdask.parallel.rewrite.group_plan import GroupPlan
from zarrdask.parallel.rewrite.rechunk import rechunk as plan_rechunk

#: The schedulers of the executors, by name; None is the current scheduler of Dask.
_SCHEDULERS = {"dask": None, "python": "sync"}
#: The options of arrays, and the names that `zarrdask.rechunk` has for them.
_OPTIONS = {
    **{name: name for name in ("codecs", "compressors", "filters", "fill_value", "shards")},
    **{name: name for name in ("chunk_key_encoding", "overwrite", "zarr_format")},
    "compressor": "compressors",
}
#: In rechunker, `max_mem` limits one block. A process also has buffers for reading and writing it.
_BUFFERS = 4


class Rechunked:
    """A plan to write an array or group with other chunks; `execute` runs it.

    Parameters
    ----------
    executor : str
        "dask" or "python".
    plan : RechunkPlan or GroupPlan
        The plan, whose `execute` has more options.
    source, intermediate, target
        The source, the location of temporary objects or None, and the target.
    """

    def __init__(
        self, executor: Any, plan: Any, source: Any, intermediate: Any, target: Any
    ) -> None:
        self._executor, self._plan = executor, plan
        self._source, self._intermediate, self._target = source, intermediate, target

    @property
    def plan(self) -> Any:
        """The plan of `zarrdask.rechunk`."""
        return self._plan

    def execute(self, *, scheduler: Any = None, progress: Any = False) -> Any:
        """Run the plan, and return the target; the parameters are as in `RechunkPlan.execute`.

        It is an array or a group of zarr-python, if that is installed, else of zarrdask. Chunks are
        stored even if they have no value but the fill value.
        """
        scheduler = _SCHEDULERS[self._executor] if scheduler is None else scheduler
        # As zarr-python 2 does, which rechunker is made for.
        with dask.config.set({"zarrdask.write-empty-chunks": True}):
            self._plan.execute(scheduler, progress=progress)
        return self._target

    def _parts(self) -> dict[str, Any]:
        parts = {"Source": self._source, "Intermediate": self._intermediate}
        return {k: v for k, v in {**parts, "Target": self._target}.items() if v is not None}

    def __repr__(self) -> str:
        lines = [f"* {name:<12}: {value!r}" for name, value in self._parts().items()]
        return "\n".join(["<Rechunked>", *lines])

    def _repr_html_(self) -> str:
        rows = [
            f"<tr><th>{name}</th><td><pre>{escape(repr(value))}</pre></td></tr>"
            for name, value in self._parts().items()
        ]
        return f"<table>{''.join(rows)}</table>"


def rechunk(
    source: Any,
    target_chunks: Any,
    max_mem: int | str,
    target_store: Any,
    target_options: Mapping[str, Any] | None = None,
    temp_store: Any = None,
    temp_options: Mapping[str, Any] | None = None,
    executor: str = "dask",
    array_name: str | None = None,
) -> Rechunked:
    """Plan to write an array, a group or a dataset with other chunks, as `rechunker.rechunk` does.

    Parameters
    ----------
    source : Array or Group of zarr-python or zarrdask, dask.array.Array, or xarray.Dataset
        The array, group or dataset to write.
    target_chunks : tuple or dict
        The new chunks: lengths by axis or by dimension; for a group or a dataset by array, or for a
        dataset by dimension. None keeps the chunks.
    max_mem : int or str
        The size of a block. A process may grow by four times that, as it also has buffers.
    target_store : str, os.PathLike, MutableMapping, Store or Group
        The location of the new array or group, which is created now, without values.
    target_options : dict, optional
        Options of the array, or for a group or a dataset, by array: ``overwrite``, ``compressor``,
        and the options of `zarrdask.rechunk`. For a dataset, the keys of xarray's encoding are
        accepted, too.
    temp_store : str, os.PathLike, MutableMapping, Store or Group, optional
        The location of temporary objects, by default beside the target; they are removed at the
        end.
    temp_options : dict, optional
        Checked, but without effect: temporary objects are not arrays.
    executor : {"dask", "python"}, default "dask"
        Dask's current scheduler, or this thread.
    array_name : str, optional
        The name of a new array in a group.

    Returns
    -------
    Rechunked
        The plan.

    Raises
    ------
    MetadataError
        A ValueError: if the arguments do not fit together, or there is an array already.
    """
    if executor not in _SCHEDULERS:
        raise MetadataError(
            "unrecognized executor", key="executor", found=executor, expected=[*_SCHEDULERS]
        )
    kind = _kind(source)
    is_single = kind in ("array", "dask")
    if not is_single and array_name is not None:
        raise MetadataError(
            f"Can't specify `array_name` when rechunking a {kind}", key="array_name"
        )
    if not is_single and not isinstance(target_chunks, Mapping):
        raise MetadataError(
            f"You must specify ``target-chunks`` as a dict when rechunking a {kind}",
            key="target_chunks",
            found=target_chunks,
        )
    groups = [_is_group(target) for target in (target_store, temp_store)]
    if is_single and any(groups) and array_name is None:
        raise MetadataError(
            "Can't rechunk to a group without a name for the array", key="array_name"
        )
    target = locate_node(target_store, array_name if groups[0] else None, None)
    options, source = _options(kind, source, target_options)
    _options(kind, source, temp_options)
    replaces = options.pop("overwrite", False)
    if kind in ("dask", "Dataset"):
        options = {"zarr_format": target.format_above() or 2, **options}
    _check_free(
        target, () if is_single else [*getattr(source, "variables", source)], replaces=replaces
    )
    plan = plan_rechunk(
        source,
        target,
        chunks=_chunks(kind, source, target_chunks),
        max_mem=_BUFFERS * config.parse_size(max_mem, "max_mem"),
        temp=temp_store,
        scheduler=_SCHEDULERS[executor],
        # The node that is created below is replaced when the plan is executed.
        overwrite=True,
        **options,
    )
    _create(plan)
    intermediate = None if temp_store is None or _is_direct(plan) else temp_store
    opened = _opened(target_store, target, array_name if groups[0] else None)
    return Rechunked(executor, plan, source, intermediate, opened)


def _kind(source: Any) -> str:
    """Return the kind of a source: "array", "dask", "Group" or "Dataset"."""
    if isinstance(source, da.Array):
        return "dask"
    if type(source).__module__.startswith("xarray.") and hasattr(source, "data_vars"):
        import zarrdask.xarray  # noqa: F401 - plans to write datasets

        return "Dataset"
    if hasattr(source, "store") and isinstance(getattr(source, "path", None), str):
        return "array" if hasattr(source, "shape") else "Group"
    raise MetadataError(
        "Source must be a Zarr Array, Zarr Group, Dask Array or Xarray Dataset",
        key="source",
        found=type(source).__name__,
    )


def _is_group(target: Any) -> bool:
    """Whether a target is an open group, of zarrdask or of zarr-python."""
    return hasattr(target, "store") and hasattr(target, "attrs") and not hasattr(target, "shape")


def _options(
    kind: str, source: Any, options: Mapping[str, Any] | None
) -> tuple[dict[str, Any], Any]:
    """Return the options of `zarrdask.rechunk`, and the source with the options of the encoding."""
    if kind in ("array", "dask"):
        return _renamed(options or {}), source
    each = {name: dict(some) for name, some in (options or {}).items()}
    if kind == "Group":
        every = [_renamed(some) for some in each.values()]
        if any(some != every[0] for some in every):
            raise MetadataError(
                "the options must be the same for all arrays of a group",
                key="target_options",
                found=options,
            )
        return (every[0] if every else {}), source
    replaces = [some.pop("overwrite", False) for some in each.values()]
    encoded = source.copy()
    for name, some in each.items():
        if "chunks" in some:
            raise MetadataError(
                "Chunks must be provided in 'target_chunks' rather than options", key=str(name)
            )
        if "compressor" in some:
            some["compressors"] = some.pop("compressor")
        encoded[name].encoding.update(some)
    return ({"overwrite": True} if any(replaces) else {}), encoded


def _renamed(options: Mapping[str, Any]) -> dict[str, Any]:
    for name in options:
        if name not in _OPTIONS:
            raise MetadataError(
                f"Zarr options must not include {name}", key=name, expected=sorted(_OPTIONS)
            )
    return {_OPTIONS[name]: value for name, value in options.items()}


def _chunks(kind: str, source: Any, chunks: Any) -> Any:
    """Return the chunks as `zarrdask.rechunk` takes them."""
    if kind in ("array", "dask"):
        return chunks
    if kind == "Dataset" and chunks.keys() <= {*source.dims}:
        return {name: min(n, source.sizes[name]) for name, n in chunks.items()}
    return {f"/{path}": lengths for path, lengths in chunks.items() if lengths is not None}


def _check_free(target: NodePath, names: Collection[Any], *, replaces: bool) -> None:
    """Check that only nodes of some names are replaced, and only if `replaces` is true."""
    try:
        node = open_node(target.store, target.path or None)
    except FileNotFoundError:
        return
    existing = [*node] if isinstance(node, Group) else [target.path]
    if isinstance(node, Array) and replaces:
        return
    if others := [name for name in existing if not replaces or name not in names]:
        raise MetadataError(
            f"path {others[0]!r} contains an array or a group; pass overwrite=True in "
            "target_options to replace arrays of the same names, or another location",
            key="target_store",
            found=target.location,
        )


def _create(plan: RechunkPlan | GroupPlan) -> None:
    """Write the documents of the new nodes, without values."""
    if isinstance(plan, RechunkPlan):
        plan.target.node.create(plan.target.metadata, overwrite=True)
        return
    root = NodePath(plan.store, plan.path)
    root = root.create(plan.groups[""], overwrite=True)
    members = {path: group for path, group in plan.groups.items() if path}
    arrays = {path: each.target.metadata for path, each in plan.arrays.items()}
    root.create_members({**members, **arrays})


def _is_direct(plan: RechunkPlan | GroupPlan) -> bool:
    """Whether no array needs temporary objects."""
    plans = [plan] if isinstance(plan, RechunkPlan) else [*plan.arrays.values()]
    return not any(len(each.scheme.stages) > 1 for each in plans)


def _opened(target: Any, node: NodePath, name: str | None) -> Any:
    """Return the target: as zarr-python opens it, if that is installed."""
    try:
        import zarr
    except ImportError:
        return open_node(node.store, node.path or None, mode="r+")
    if _is_group(target):
        return target if name is None else target[name]
    return zarr.open(target, mode="r+")
