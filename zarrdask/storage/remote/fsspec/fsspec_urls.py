"""File systems of fsspec at URLs."""

from typing import Any

from fsspec import get_filesystem_class
from fsspec.core import url_to_fs

from zarrdask.errors import StoreError, censored
from zarrdask.storage.remote.fsspec.fsspec_errors import ERRORS
from zarrdask.storage.remote.fsspec.fsspec_options import (
    not_an_option,
    unknown_option,
    with_anonymous,
    with_client,
    with_endpoint,
)

#: The extras of this package with what a protocol needs.
_EXTRAS = {
    **dict.fromkeys(("s3", "s3a"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gcs"),
    **dict.fromkeys(("az", "abfs", "abfss"), "azure"),
    **dict.fromkeys(("http", "https"), "http"),
}


def file_system_at(url: str, storage_options: dict[str, Any]) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it.

    Raises
    ------
    StoreError
        If fsspec does not have the protocol or an option, the value of an option is wrong, or the
        package of the protocol is not installed.
    """
    options = with_endpoint(url, with_client(url, with_anonymous(url, storage_options)))
    try:
        return url_to_fs(url, **options)  # type: ignore[no-any-return]
    except ERRORS as error:
        unknown = unknown_option(error, storage_options)
        if unknown is not None:
            protocol = url.partition("://")[0].rpartition("::")[2]
            kind = get_filesystem_class(protocol)
            raise not_an_option(unknown, url, kind) from censored(error)
        extra = _EXTRAS.get(url.partition(":")[0]) if isinstance(error, ImportError) else None
        hint = f"; pip install zarrdask[{extra}]" if extra else ""
        raise StoreError(f"this URL can't be opened: {error}{hint}", key=url) from censored(error)
