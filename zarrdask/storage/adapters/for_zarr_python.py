"""`as_zarr_python`: any location that zarrdask can open, as a store of zarr-python."""

from typing import TYPE_CHECKING, Any

from zarrdask.storage.resolve import resolve

if TYPE_CHECKING:
    from zarrdask.storage.adapters.zarrdask_store import ZarrdaskStore


def as_zarr_python(
    url: Any, *, read_only: bool = False, storage_options: dict[str, Any] | None = None
) -> "ZarrdaskStore":
    """Return a store for zarr-python, and for tools that are built on it.

    Parameters
    ----------
    url : str, os.PathLike, MutableMapping or Store
        The location, as in `zarrdask.open_group`.
    read_only : bool, default False
        Whether values may not be changed.
    storage_options : dict, optional
        Options of fsspec.

    Returns
    -------
    zarr.abc.store.Store
        The store. Write a zip archive in a ``with`` block: it is written as a whole at the end.

    Raises
    ------
    StoreError
        If the URL cannot be opened.

    Examples
    --------
    With xarray's own engine::

        with as_zarr_python("data.zarr.zip") as store:
            ds.to_zarr(store)
    """
    from zarrdask.storage.adapters.zarrdask_store import ZarrdaskStore

    return ZarrdaskStore(resolve(url, storage_options), read_only=read_only)
