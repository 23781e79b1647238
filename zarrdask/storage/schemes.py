"""The functions that open a store at a URL, or for an object: by scheme, suffix or package."""

from collections.abc import Callable
from typing import Any

from zarrdask.formats.extension import Registry
from zarrdask.storage.base import Store
from zarrdask.storage.remote.remote_urls import REMOTE_SCHEMES

#: Given an object, returns the store that it is, or is in; None if it is something else.
Adapter = Callable[[Any], Store | None]
#: Given a URL, or the absolute path of a file, and the options of the user.
Opener = Callable[[str, dict[str, Any] | None], Store]

_HERE = "zarrdask.storage"
#: A name that begins with a dot is a suffix. The opener "fsspec" is for all other URLs.
STORES: Registry[Opener] = Registry(
    "store",
    "url",
    "zarrdask.stores",
    {
        **dict.fromkeys(REMOTE_SCHEMES, f"{_HERE}.remote.remote_urls:open_remote"),
        "fsspec": f"{_HERE}.remote.fsspec.fsspec_store:open_url",
        "icechunk": f"{_HERE}.adapters.icechunk_urls:open_repository",
        "reference": f"{_HERE}.references.reference_store:open_url",
        "zip": f"{_HERE}.zip.open_archive:open_member",
        ".zip": f"{_HERE}.zip.open_archive:open_archive",
    },
)
#: By the package that the class of an object is defined in, which need not be installed: the user
#: who passes such an object has imported it.
ADAPTERS: Registry[Adapter] = Registry(
    "store",
    "url",
    "zarrdask.store_types",
    {
        "fsspec": f"{_HERE}.adapters.fsspec_objects:adapt_mapping",
        "icechunk": f"{_HERE}.adapters.icechunk:adapt_store",
        "obstore": f"{_HERE}.remote.obstore.obstore_urls:adapt_object",
        "upath": f"{_HERE}.adapters.fsspec_objects:adapt_path",
        "zarr": f"{_HERE}.adapters.zarr_python:adapt_store",
    },
)
