"""Groups without a document, which drafts of v3 had: read if a setting allows it, never written."""

from zarrdask import config
from zarrdask.compliance import report_deviation
from zarrdask.errors import UnsupportedError
from zarrdask.metadata import v3
from zarrdask.metadata.model import GroupMetadata
from zarrdask.storage.base import Store


def implied_group(store: Store, prefix: str) -> GroupMetadata | None:
    """Return the group that a v3 node below a prefix implies (conformance C-6, X-C10).

    It is None unless ``zarrdask.implicit-groups`` is set: a group of Zarr v3 has a ``zarr.json``.

    Parameters
    ----------
    store : Store
    prefix : str
        The prefix of the group's keys: "" or ends with "/".

    Raises
    ------
    MetadataError
        If a group is implied, in strict mode.
    """
    name = v3.NAMES[0]
    if not config.get("implicit-groups"):
        return None
    try:
        has_nodes = any(key.rpartition("/")[2] == name for key in store.list_prefix(prefix))
    except UnsupportedError:
        return None  # the store can't be listed
    if not has_nodes:
        return None
    report_deviation("X-C10", "a group must have a document", key=prefix or "/", expected=name)
    return GroupMetadata(3)
