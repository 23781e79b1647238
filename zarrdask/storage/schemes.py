"""The functions that open the store at a URL, by its scheme, or by the suffix of its path."""

from collections.abc import Callable
from typing import Any

from zarrdask.extension import Registry
from zarrdask.storage.base import Store
from zarrdask.storage.remote import REMOTE_SCHEMES

#: Given a URL, or the absolute path of a file, and the options of the user.
Opener = Callable[[str, dict[str, Any] | None], Store]

_HERE = "zarrdask.storage"
#: A name that begins with a dot is a suffix. The opener "fsspec" is for all other URLs.
STORES: Registry[Opener] = Registry(
    "store",
    "url",
    "zarrdask.stores",
    {
        **dict.fromkeys(REMOTE_SCHEMES, f"{_HERE}.remote:open_remote"),
        "fsspec": f"{_HERE}.fsspec:open_url",
        "reference": f"{_HERE}.references:open_url",
        "zip": f"{_HERE}.zip.opening:open_member",
        ".zip": f"{_HERE}.zip.opening:open_archive",
    },
)
