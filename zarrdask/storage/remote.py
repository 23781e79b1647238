"""Open URLs of object stores and of HTTP servers, by the package that the user chooses."""

from importlib import import_module
from typing import Any

from zarrdask import config
from zarrdask.errors import MetadataError, StoreError
from zarrdask.storage.base import Store

#: What the setting ``zarrdask.remote`` may be, and the schemes for which it chooses.
_REMOTE = ("fsspec", "obstore")
REMOTE_SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "http", "https")


def open_remote(url: str, storage_options: dict[str, Any] | None) -> Store:
    """Return the store at a URL that is neither chained nor an archive.

    Raises
    ------
    StoreError
        If the URL can't be opened.
    MetadataError
        If the setting ``zarrdask.remote`` names no package.
    """
    is_chosen = url.partition("://")[0] in REMOTE_SCHEMES
    package: str = config.get("remote") if is_chosen else "fsspec"
    if package not in _REMOTE:
        raise MetadataError(
            "no package for remote stores has this name",
            key="zarrdask.remote",
            found=package,
            expected=" or ".join(map(repr, _REMOTE)),
        )
    if package == "obstore":
        return _obstore(url, storage_options)
    # Imported on demand: a process may use obstore only.
    module = import_module("zarrdask.storage.fsspec")
    return module.open_url(url, storage_options)  # type: ignore[no-any-return]


def _obstore(url: str, storage_options: dict[str, Any] | None) -> Store:
    try:
        module = import_module("zarrdask.storage.obstore_urls")
    except ModuleNotFoundError as error:
        raise StoreError(
            'the setting zarrdask.remote is "obstore", which is not installed; install '
            'zarrdask[obstore], or set zarrdask.remote to "fsspec"',
            key=url,
        ) from error
    return module.open_url(url, storage_options)  # type: ignore[no-any-return]
