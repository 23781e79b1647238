"""``to_pyramid``: a dataset at several resolutions, as a tree with a group for each level."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import count, pairwise
from typing import Any

import numpy as np
import xarray
from xarray import Dataset, Variable

from zarrdask.arrays.nodes.arguments import check_options, checks_booleans
from zarrdask.errors import MetadataError, UnsupportedError, one_of
from zarrdask.tools.conventions.geozarr import GeoZarr, level_attributes
from zarrdask.tools.conventions.reference import Crs, as_crs
from zarrdask.tools.conventions.spatial import spacing
from zarrdask.tools.pyramids.kernels import Reduction
from zarrdask.tools.pyramids.levels import Borders, Level
from zarrdask.xarray.rewriting.coarsen import (
    coarsen,
    coarsen_bounds,
    coarsen_coordinate,
    usual_method,
    without_spatial,
)
from zarrdask.xarray.rewriting.rechunk_dataset import as_dask
from zarrdask.xarray.writing.dataset_writer import to_zarr
from zarrdask.xarray.writing.request import contents

#: The name of a new variable with the reference system.
_CRS = "spatial_ref"
#: The length of the longest chunk of variables without chunks in their encodings.
_MAX_LENGTH = 512


@checks_booleans
def to_pyramid(
    obj: Dataset | xarray.DataArray,
    store: Any,
    *,
    dims: Sequence[Hashable] = ("y", "x"),
    crs: Any = None,
    levels: int | None = None,
    factors: int | Mapping[Hashable, int] = 2,
    method: str | Mapping[Any, str] | None = None,
    borders: Borders = "partial",
    skipna: bool = True,
    encoding: Mapping[Any, Any] | None = None,
    **options: Any,
) -> Any:
    """Write a dataset at several resolutions, as a tree with a group for each level.

    The groups are named 0 (the dataset itself), 1, 2, ... Each level is computed from the one
    before, in one graph of Dask, so that nothing is read back. The root describes the levels by the
    conventions ``multiscales``, ``proj:`` and ``spatial:``.

    Parameters
    ----------
    obj : xarray.Dataset or xarray.DataArray
        The object to write.
    store : str, os.PathLike, MutableMapping, Store or Group
        The location, as in `zarrdask.xarray.to_zarr`.
    dims : sequence of hashable, default ("y", "x")
        The dimensions that become shorter: the rows and the columns. Variables without any of them
        are written unchanged to each level.
    crs : Crs, str, mapping or object, optional
        The coordinate reference system, as `zarrdask.conventions.write_crs` takes it. By default,
        the system in the variable that ``grid_mapping`` names, which stays.
    levels : int, optional
        The number of levels, with level 0. By default as many as it takes until the smallest one
        fits into one chunk.
    factors : int or mapping, default 2
        The cells that become one along each of `dims`, or by dimension.
    method : str or mapping, optional
        How the cells become one, as in `zarrdask.pyramid`; a mapping is by the names of variables.
        By default "mean" for numbers, "mode" for Booleans and for variables with the attributes
        ``flag_*`` of CF, and "nearest" for all others.
    borders : {"trim", "pad", "partial"}, default "partial"
        How cells at the end of a dimension that fill no window are treated.
    skipna : bool, default True
        Whether NaN, to which xarray decodes missing values, is left out. Windows without any other
        value become NaN.
    encoding : mapping, optional
        How variables are stored, by their names, in all levels.
    **options
        As in `zarrdask.xarray.to_zarr`, such as ``mode=``, ``resume=`` and ``progress=``.

    Returns
    -------
    None or dask.delayed.Delayed
        As `zarrdask.xarray.to_zarr`.

    Raises
    ------
    MetadataError
        If the dataset lacks a dimension, or the options do not fit. Nothing has been written then.

    Notes
    -----
    Coordinates along `dims` become the centres of the windows. If their distances are equal, they
    stay equal, also where the last window has fewer cells.

    Examples
    --------
    >>> import numpy as np, xarray as xr, zarrdask.xarray
    >>> ds = xr.Dataset({"z": (("y", "x"), np.eye(4))}, {"y": [3.5, 2.5, 1.5, 0.5], "x": range(4)})
    >>> store = {}
    >>> ds.zarrdask.to_pyramid(store, levels=2, crs="EPSG:3857")
    >>> tree = xr.open_datatree(store, engine="zarrdask")
    >>> tree["1/y"].values, tree["1/z"].values.tolist()
    (array([3., 1.]), [[0.5, 0.0], [0.0, 0.5]])
    """
    check_options(options, to_pyramid, others=signature(to_zarr).parameters.keys() - {"obj"})
    if isinstance(obj, xarray.DataTree):
        raise UnsupportedError("a tree has no pyramid; write a pyramid of each dataset", key="obj")
    dataset = as_dask(contents(obj, {}, inherit=False)[""].dataset)
    windows = _windows(dims, factors, dataset)
    methods = _methods(dataset, windows, method)
    system = _reference_system(dataset, crs)
    dataset = _with_grid_mapping(dataset, windows, system)
    dataset = _with_encoding(dataset, windows, encoding or {})
    planned = _levels(dataset, windows, levels, borders)
    datasets = [dataset]
    coarse = Coarsening(windows, methods, borders, skipna)
    for finer, level in pairwise(planned):
        datasets.append(coarse.next_level(datasets[-1], dataset, finer, level))
    transform = _transform(dataset, tuple(windows))
    used, names = {*methods.values()}, [str(dim) for dim in windows]
    root = GeoZarr().attributes(
        planned,
        names,
        np.dtype("f8"),
        zarr_format=options.get("zarr_format") or 3,
        method=used.pop() if len(used) == 1 else None,
        crs=system,
        transform=transform,
    )
    nodes = {"/": Dataset(attrs=root)}
    for level, each in zip(planned, datasets, strict=True):
        attributes = level_attributes(level, names, system, transform, present=dataset.attrs)
        nodes[f"/{level.path}"] = each.assign_attrs(attributes)
    by_name = {name: {**_chunks(dataset, name), **each} for name, each in (encoding or {}).items()}
    by_path = {f"/{level.path}": by_name for level in planned}
    return to_zarr(xarray.DataTree.from_dict(nodes), store, encoding=by_path, **options)


@dataclass(frozen=True)
class Coarsening:
    """How a level is computed from the one before.

    Attributes
    ----------
    factors : mapping
        The cells that become one, by dimension.
    methods : mapping
        How, by the names of data variables.
    borders : {"trim", "pad", "partial"}
        What happens to cells that fill no window.
    skipna : bool
        Whether NaN is left out.
    """

    factors: Mapping[Hashable, int]
    methods: Mapping[Hashable, str]
    borders: Borders
    skipna: bool

    def next_level(self, finer: Dataset, finest: Dataset, before: Level, level: Level) -> Dataset:
        """Return the level after another one; coordinates are computed from the finest one."""
        total = dict(zip(self.factors, level.factors, strict=True))
        lengths = dict(zip(self.factors, level.shape, strict=True))
        bounds = {
            source.attrs.get("bounds", source.encoding.get("bounds")): name
            for name, source in finest.variables.items()
            if name in self.factors
        }
        variables = dict[Hashable, Variable]()
        for name, variable in finer.variables.items():
            dim = bounds.get(name, name)
            if not set(variable.dims) & self.factors.keys():
                variables[name] = variable
            elif name in self.factors:
                coordinate = finest.variables[name]
                variables[name] = coarsen_coordinate(coordinate, total[name], lengths[name])
            elif name in bounds and variable.dims[0] == dim and variable.ndim == 2:
                variables[name] = coarsen_bounds(finest.variables[name], total[dim], lengths[dim])
            else:
                step = zip(self.factors, before.factors, level.factors, strict=True)
                variables[name] = coarsen(
                    variable,
                    {dim: after // earlier for dim, earlier, after in step},
                    self.methods.get(name) or usual_method(variable),
                    self.borders,
                    skipna=self.skipna,
                )
        names = finer.coords.keys()
        data = {name: each for name, each in variables.items() if name not in names}
        coords = {name: each for name, each in variables.items() if name in names}
        return Dataset(data, coords, without_spatial(finest.attrs))


# --------------------------------------------------------------------------------------------
# Arguments


def _windows(
    dims: Sequence[Hashable], factors: int | Mapping[Hashable, int], dataset: Dataset
) -> dict[Hashable, int]:
    """Return the factor of each dimension."""
    names = [dims] if isinstance(dims, str) else list(dims)
    for dim in names:
        one_of(dim, "dims", dataset.dims)
    if isinstance(factors, Mapping):
        for dim in factors:
            one_of(dim, "factors", names)
    windows = {
        dim: factors.get(dim, 1) if isinstance(factors, Mapping) else factors for dim in names
    }
    for factor in windows.values():
        if isinstance(factor, bool) or not isinstance(factor, int) or factor < 1:
            raise MetadataError(
                "factors must be integers of at least 1",
                key="factors",
                found=factor,
                expected="such as 2",
            )
    if all(factor == 1 for factor in windows.values()):
        raise MetadataError(
            "all factors are 1, so no dimension becomes shorter", key="factors", found=factors
        )
    return windows


def _methods(
    dataset: Dataset, windows: Mapping[Hashable, int], method: str | Mapping[Any, str] | None
) -> dict[Hashable, str]:
    """Return the method for each data variable that is computed."""
    reduced = {name: v for name, v in dataset.data_vars.items() if {*v.dims} & windows.keys()}
    if isinstance(method, Mapping):
        for name in method:
            one_of(name, "method", list(reduced))
        chosen = dict(method)
    else:
        chosen = {} if method is None else dict.fromkeys(reduced, method)
    methods = {name: chosen.get(name) or usual_method(v.variable) for name, v in reduced.items()}
    for each in methods.values():
        one_of(each, "method", Reduction.METHODS)
    return methods


def _levels(
    dataset: Dataset, windows: Mapping[Hashable, int], number: int | None, borders: Borders
) -> list[Level]:
    """Return the levels: their lengths along the dimensions that become shorter."""
    one_of(borders, "borders", ("trim", "pad", "partial"))
    if number is not None and (type(number) is not int or number < 1):
        raise MetadataError(
            "the number of levels must be an integer of at least 1", key="levels", found=number
        )
    shape = tuple(dataset.sizes[dim] for dim in windows)
    small = _chunk_lengths(dataset, windows)
    levels = [Level("0", shape, (1,) * len(shape))]
    for at in count(1):
        last = levels[-1].shape
        pairs = zip(last, windows.values(), strict=True)
        is_short = borders == "trim" and any(length < factor for length, factor in pairs)
        fits = all(
            length <= limit or factor == 1
            for length, limit, factor in zip(last, small, windows.values(), strict=True)
        )
        if (at == number) or (number is None and (fits or is_short)):
            return levels
        levels.append(levels[-1].reduced(str(at), tuple(windows.values()), borders))
    raise MetadataError("this number of levels can't be reached", key="levels", found=number)


def _chunk_lengths(dataset: Dataset, windows: Mapping[Hashable, int]) -> list[int]:
    """Return the lengths of the shortest chunks of all variables along each dimension."""
    lengths = []
    for dim in windows:
        chunks = [
            v.encoding["chunks"][v.dims.index(dim)]
            for v in dataset.data_vars.values()
            if dim in v.dims and v.encoding.get("chunks")
        ]
        lengths.append(min(chunks, default=_MAX_LENGTH))
    return lengths


# --------------------------------------------------------------------------------------------
# Encodings, and the position in space


def _with_encoding(
    dataset: Dataset, windows: Mapping[Hashable, int], encoding: Mapping[Any, Any]
) -> Dataset:
    """Return a dataset in which each variable that is coarsened has chunks, for all levels."""
    dataset = dataset.copy(deep=False)
    for name, variable in dataset.variables.items():
        if not {*variable.dims} & windows.keys() or variable.chunks is None:
            continue
        kept = {key: value for key, value in variable.encoding.items() if key != "shards"}
        chunks = (encoding.get(name) or {}).get("chunks", variable.encoding.get("chunks"))
        if chunks == variable.encoding.get("chunks"):
            kept = variable.encoding
        if not isinstance(chunks, Sequence) or len(chunks) != variable.ndim:
            chunks = [min(max(lengths), _MAX_LENGTH) for lengths in variable.chunks]
        variable.encoding = {**kept, "chunks": tuple(chunks)}
    return dataset


def _chunks(dataset: Dataset, name: Hashable) -> dict[str, Any]:
    encoding = dataset.variables[name].encoding if name in dataset.variables else {}
    return {key: encoding[key] for key in ("chunks", "shards") if encoding.get(key)}


def _grid_mapping(dataset: Dataset) -> str | None:
    """Return the name of the variable that ``grid_mapping`` names, if a data variable has it."""
    for variable in dataset.data_vars.values():
        name = variable.encoding.get("grid_mapping", variable.attrs.get("grid_mapping"))
        if isinstance(name, str):
            return name.split()[0].removesuffix(":")
    return None


def _reference_system(dataset: Dataset, crs: Any) -> Crs | None:
    if crs is not None:
        return as_crs(crs)
    name = _grid_mapping(dataset)
    attributes = dataset.variables[name].attrs if name in dataset.variables else {}
    wkt = attributes.get("crs_wkt", attributes.get("spatial_ref"))
    return Crs(wkt=wkt) if isinstance(wkt, str) else None


def _with_grid_mapping(
    dataset: Dataset, windows: Mapping[Hashable, int], system: Crs | None
) -> Dataset:
    """Return a dataset with ``grid_mapping`` in attributes, where no other encoding replaces it.

    If it has none, the variable of CF is added for a system that is given as WKT.
    """
    dataset = dataset.copy(deep=False)
    known = _grid_mapping(dataset)
    if known is None and system is not None and system.wkt is not None:
        dataset = dataset.assign_coords({_CRS: ((), 0, {"crs_wkt": system.wkt})})
    for variable in dataset.data_vars.values():
        name = variable.encoding.pop("grid_mapping", None)
        if known is None and _CRS in dataset.coords and windows.keys() <= {*variable.dims}:
            name = _CRS
        if name is not None:
            variable.attrs["grid_mapping"] = name
    return dataset


def _transform(dataset: Dataset, dims: Sequence[Hashable]) -> tuple[float, ...] | None:
    """Return the affine transformation of evenly spaced coordinates of rows and columns."""
    coordinates = [dataset.variables.get(dim) for dim in dims]
    if len(dims) != 2 or any(each is None or each.dtype.kind not in "iuf" for each in coordinates):
        return None
    try:
        (d_y, y), (d_x, x) = (
            spacing(str(dim), np.asarray(each.values, "f8"))
            for dim, each in zip(dims, coordinates, strict=True)
        )
    except MetadataError:
        return None
    return d_x, 0.0, x, 0.0, d_y, y
