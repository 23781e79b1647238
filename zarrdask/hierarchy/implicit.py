"""Groups without a document, as drafts of v3 had them: read on request, never written."""

from zarrdask import config
from zarrdask.compliance import report_deviation
from zarrdask.errors import UnsupportedError
from zarrdask.metadata import v3
from zarrdask.metadata.model import GroupMetadata
from zarrdask.storage.base import Store


def implied(store: Store, prefix: str) -> GroupMetadata | None:
    """Return the group that a v3 node below a prefix implies (conformance C-6, X-C10).

    None unless ``zarrdask.implicit-groups`` is set: in Zarr v3 a group has a ``zarr.json``.

    Raises
    ------
    MetadataError
        If there is one, in strict mode.
    """
    name = v3.NAMES[0]
    if not config.get("implicit-groups"):
        return None
    try:
        there = any(key.rpartition("/")[2] == name for key in store.list_prefix(prefix))
    except UnsupportedError:
        return None  # nobody can tell
    if not there:
        return None
    report_deviation("X-C10", "a group must have a document", key=prefix or "/", expected=name)
    return GroupMetadata(3)
