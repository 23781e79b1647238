"""The engine for ``xarray.open_dataset(..., engine="zarrdask")``.

xarray imports this module in every process that lists engines, so it imports nothing but xarray's
base class: arrays, stores and Dask are loaded when something is opened.
"""

import os
import sys
from collections.abc import Iterable, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any

from xarray.backends import BackendEntrypoint

if TYPE_CHECKING:
    from xarray import Dataset, DataTree

_SUFFIXES = (".zarr", ".zarr.zip")


class ZarrdaskBackendEntrypoint(BackendEntrypoint):
    """Opens Zarr groups of all formats that zarrdask reads, without zarr-python.

    The arguments have the same meaning as for xarray's engine ``zarr``. Additional ones:

    strict : bool, optional
        Whether metadata that breaks a rule, but whose meaning is known, raises an error.
    phony_dims : bool
        Whether arrays without dimension names are opened: their dimensions are named
        ``phony_dim_0``, ``phony_dim_1``, ...
    skip_missing : bool
        Whether blocks without a stored chunk need no request. The chunks of each variable are
        listed once for that. With ``chunked_array_type="zarrdask"`` these blocks are constants, as
        in `zarrdask.from_zarr`.
    missing : {"fill", "error"}, optional
        How chunks that are not stored are read, as in `zarrdask.open_array`.

    With ``chunks={}``, blocks are whole chunks or shards, joined up to ``zarrdask.block-size``.
    """

    description = "Open Zarr groups (v2, v3, drafts of v3) with zarrdask"
    url = "https://docs.xarray.dev/en/stable/user-guide/io.html#zarr"
    supports_groups = True

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether something looks like a Zarr group: by its suffix, or by its class."""
        if isinstance(filename_or_obj, str | os.PathLike):
            return os.fsdecode(filename_or_obj).rstrip("/").endswith(_SUFFIXES)
        # An object of a class of ours can only be there if its module is.
        modules = map(sys.modules.get, ("zarrdask.storage.base", "zarrdask.arrays.nodes.group"))
        kinds = [
            getattr(m, name, None) for m, name in zip(modules, ("Store", "Group"), strict=True)
        ]
        if any(kind is not None and isinstance(filename_or_obj, kind) for kind in kinds):
            return True
        classes = type(filename_or_obj).__mro__
        roots = {kind.__module__.partition(".")[0] for kind in classes}
        return "zarr" in roots and any(kind.__name__ in ("Group", "Store") for kind in classes)

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: Any = True,
        decode_times: Any = True,
        concat_characters: Any = True,
        decode_coords: Any = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: bool | None = None,
        decode_timedelta: Any = None,
        group: str | None = None,
        mode: str = "r",
        consolidated: bool | None = None,
        storage_options: dict[str, Any] | None = None,
        zarr_format: Any = None,
        use_zarr_fill_value_as_mask: bool | None = None,
        cache_members: bool = True,
        strict: bool | None = None,
        phony_dims: bool = False,
        skip_missing: bool = False,
        missing: Any = None,
    ) -> "Dataset":
        """Open one group as a dataset; see `xarray.open_dataset`.

        Raises
        ------
        NodeNotFoundError
            If there is no such group; it is a FileNotFoundError.
        """
        # xarray reads the names of the options from this signature: it must spell them out.
        options = dict(locals())
        del options["self"], options["filename_or_obj"]
        return _open(filename_or_obj, options, tree=False)["/"]

    #: xarray detects these only of engines that are requested by name, not by class.
    open_dataset_parameters = tuple(signature(open_dataset).parameters)[1:]

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> "DataTree":
        """Open a group and all groups below it as a tree; see `xarray.open_datatree`.

        The options are the same as for `open_dataset`, and `group_filter`: see
        `open_groups_as_dict`.
        """
        from xarray import DataTree

        return DataTree.from_dict(self.open_groups_as_dict(filename_or_obj, **options))

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,
        *,
        group_filter: str | Iterable[str] | None = None,
        **options: Any,
    ) -> "dict[str, Dataset]":
        """Open a group and all groups below it, by path; see `xarray.open_groups`.

        The options are the same as for `open_dataset`. With a `group_filter`, such as
        ``"/*/sweep_0"`` or a list of such patterns, only groups whose paths match are opened, and
        the groups above them without their variables. A name ``**`` stands for any number of names.
        """
        # Not of `self`: a subclass may have another signature.
        open_dataset = signature(ZarrdaskBackendEntrypoint.open_dataset)
        bound = open_dataset.bind(self, filename_or_obj, **options)
        bound.apply_defaults()
        return _open(filename_or_obj, bound.kwargs, tree=True, group_filter=group_filter)


def _open(
    url: Any,
    options: Mapping[str, Any],
    *,
    tree: bool,
    group_filter: str | Iterable[str] | None = None,
) -> "dict[str, Dataset]":
    """Open a group, and for a tree all groups below it, as datasets by path."""
    from xarray.backends.store import StoreBackendEntrypoint

    from zarrdask.arrays.chunks.missing_chunks import check_skipping
    from zarrdask.arrays.hierarchy.group_filter import GroupFilter
    from zarrdask.arrays.nodes.open import check_mode
    from zarrdask.xarray.coordinates import read_coordinates
    from zarrdask.xarray.datastore import Hierarchy, OpenOptions, ZarrdaskDataStore
    from zarrdask.xarray.preferred import PreferredChunks, decoded_sizes

    check_mode(options["mode"], ("r",))
    names = options["drop_variables"] or ()
    where = OpenOptions(
        options["group"],
        options["consolidated"],
        options["storage_options"],
        options["zarr_format"],
        options["strict"],
        frozenset([names] if isinstance(names, str) else names),
        options["missing"],
        None if group_filter is None else GroupFilter.of(group_filter),
    )
    hierarchy = Hierarchy(url, where)
    if options["skip_missing"]:
        check_skipping(hierarchy.missing)
    groups = hierarchy.tree() if tree else {"": hierarchy.root()}
    values = read_coordinates(groups)
    decoder = StoreBackendEntrypoint()
    known = signature(decoder.open_dataset).parameters
    decoding = {name: value for name, value in options.items() if name in known}
    datasets = {}
    for path, group in groups.items():
        datastore = ZarrdaskDataStore(
            group,
            values[path],
            mask=options["use_zarr_fill_value_as_mask"],
            phony_dims=options["phony_dims"],
            skip_missing=options["skip_missing"],
            scales=options["mask_and_scale"],
            # xarray itself notes paths and URLs as the source.
            source=None if isinstance(url, str | os.PathLike) else group.location,
        )
        dataset = decoder.open_dataset(datastore, **decoding)
        stored = [
            (variable, preferred)
            for variable in dataset.variables.values()
            if isinstance(preferred := variable.encoding.get("preferred_chunks"), PreferredChunks)
        ]
        sizes = decoded_sizes((chunks, variable.dtype.itemsize) for variable, chunks in stored)
        for variable, chunks in stored:
            variable.encoding["preferred_chunks"] = chunks.decoded(sizes[chunks.layout])
        datasets[f"/{path}"] = dataset
    return datasets
