"""Find the regions of stored arrays among the arguments of tasks."""

from typing import Any

from zarrdask.chunks.region import ArrayRegion


def source_of(item: Any) -> ArrayRegion | None:
    """Return a region that an object reads: itself, or one whose elements it decodes."""
    inner = getattr(item, "source", None)
    if isinstance(item, ArrayRegion):
        return item
    return inner if isinstance(inner, ArrayRegion) else None
