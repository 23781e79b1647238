"""Open URLs of object stores and of HTTP servers, by obstore or by fsspec."""

import logging
import re
from importlib import import_module
from typing import Any

from zarrdask import config
from zarrdask.errors import MetadataError, StoreError, without_secrets
from zarrdask.storage.base import Store
from zarrdask.storage.refusals import check_no_credentials
from zarrdask.storage.remote.obstore.obstore_errors import NoCounterpartError
from zarrdask.storage.remote.obstore.obstore_objects import is_forked
from zarrdask.storage.remote.remote_store import RemoteStore

_LOG = logging.getLogger(__name__)

#: The schemes for which the setting ``zarrdask.remote`` chooses.
REMOTE_SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "http", "https")


def open_remote(url: str, storage_options: dict[str, Any] | None) -> Store:
    """Return the store at a URL that is neither chained nor an archive.

    Raises
    ------
    StoreError
        If the URL can't be opened.
    MetadataError
        If the setting ``zarrdask.remote`` is invalid.
    """
    is_chosen = url.partition("://")[0] in REMOTE_SCHEMES
    check_no_credentials(url)
    if is_chosen:
        _check_complete(url)
    package: str = config.get("remote") if is_chosen else "fsspec"
    openers = {"auto": _open_best, "fsspec": _by_fsspec, "obstore": _by_obstore}
    if package not in openers:
        raise MetadataError(
            "no package for remote stores has this name",
            key="zarrdask.remote",
            found=package,
            expected=" or ".join(map(repr, openers)),
        )
    store = openers[package](url, storage_options)
    offline = is_chosen and config.get("cache-offline")
    if not (offline or config.get("cache-directory")):
        return store
    # Imported on demand: most programs use no such cache.
    module = import_module("zarrdask.storage.cache.disk_cache")
    return module.cached_as_set(store, offline=offline)  # type: ignore[no-any-return]


def _check_complete(url: str) -> None:
    """Check that a URL names a bucket or a host: without one, packages take another part for it."""
    scheme, _, rest = url.partition("://")
    name = re.split("[/?#]", rest, maxsplit=1)[0]
    what = "host" if scheme.startswith("http") else "bucket"
    if what == "host":
        name = name.rpartition("@")[2].partition(":")[0]
    if not name.partition("@")[0]:
        raise StoreError(
            f"this URL names no {what}", key=url, expected=f"a URL such as {scheme}://{what}/path"
        )


def _open_best(url: str, storage_options: dict[str, Any] | None) -> Store:
    """Return the store that obstore opens, or fsspec if obstore does not support the options."""
    shown = without_secrets(url)
    if is_forked():
        _LOG.info("%s: opened by fsspec, as this process was forked after obstore was used", shown)
        return _by_fsspec(url, storage_options)
    try:
        store = RemoteStore(url, storage_options, _by_obstore(url, storage_options))
    except NoCounterpartError as error:
        _LOG.info("%s: opened by fsspec, as obstore lacks %s", shown, error.found)
        try:
            return _by_fsspec(url, storage_options)
        except StoreError as failure:
            failure.add_note(f"obstore can't be used instead: it lacks {error.found}")
            raise
    _LOG.debug("%s: opened by obstore", shown)
    return store


def _by_fsspec(url: str, storage_options: dict[str, Any] | None) -> Store:
    # Imported on demand: a process may use obstore only.
    module = import_module("zarrdask.storage.remote.fsspec.fsspec_store")
    return module.open_url(url, storage_options)  # type: ignore[no-any-return]


def _by_obstore(url: str, storage_options: dict[str, Any] | None) -> Store:
    try:
        module = import_module("zarrdask.storage.remote.obstore.obstore_urls")
    except ModuleNotFoundError as error:
        raise NoCounterpartError(
            'the setting zarrdask.remote is "obstore", which is not installed; install '
            'zarrdask[obstore], or set zarrdask.remote to "auto"',
            key=url,
            found="the package obstore",
        ) from error
    return module.open_url(url, storage_options)  # type: ignore[no-any-return]
