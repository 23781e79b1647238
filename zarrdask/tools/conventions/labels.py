"""Label images of OME-Zarr: integers in the group ``labels`` of an image."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from zarrdask.arrays.nodes.group import Group
from zarrdask.errors import MetadataError, instance_of
from zarrdask.formats.dtypes.ml import kind_of
from zarrdask.formats.metadata.model import ZarrFormat
from zarrdask.tools.conventions.ome_version import OmeVersion

#: The name of the group, and of its attribute.
LABELS = "labels"
#: Where the image is, from one of its label images.
_SOURCE = {"image": "../../"}


def labels(image: Group) -> tuple[str, ...]:
    """Return the paths of the label images of an image of OME-Zarr, from its group.

    Raises
    ------
    MetadataError
        If the attributes of its group ``labels`` do not follow the convention.

    Examples
    --------
    >>> import zarrdask
    >>> image = zarrdask.create_group({})
    >>> nuclei = image.create_array("nuclei", shape=(4, 4), dtype="u1", chunks=2)
    >>> plan = zarrdask.pyramid(nuclei, image, "labels/nuclei", levels=2)
    >>> group = plan.execute(progress=False)
    >>> labels(image)
    ('labels/nuclei',)
    """
    if LABELS not in image:
        return ()
    group = image[LABELS]
    names = _listed(group.attrs.asdict(), f"{group.node_path.location}: {LABELS}")
    return tuple(f"{LABELS}/{name}" for name in names)


def image_path(path: str) -> str | None:
    """Return the path of the image that a label image belongs to; None for another node.

    >>> image_path("plate/labels/nuclei"), image_path("labels/nuclei"), image_path("a/b") is None
    ('plate', '', True)
    """
    above = f"/{path}".rpartition("/")[0]
    return above.removesuffix(f"/{LABELS}").strip("/") if above.endswith(f"/{LABELS}") else None


def with_label(attributes: Mapping[str, Any], name: str, zarr_format: ZarrFormat) -> dict[str, Any]:
    """Return the attributes of a group ``labels`` that lists one more label image."""
    names = _listed(attributes, LABELS)
    names += [] if name in names else [name]
    return OmeVersion.of(zarr_format).attributes({LABELS: names}, attributes)


def _listed(attributes: Mapping[str, Any], key: str) -> list[str]:
    """Return the names of the label images that the attributes of a group ``labels`` list."""
    ome = attributes.get("ome", attributes)
    names = instance_of(instance_of(ome, key, dict).get(LABELS, []), key, list)
    return [instance_of(name, key, str) for name in names]


def render_image_label(value: Any, dtype: np.dtype[Any]) -> dict[str, Any]:
    """Return the attribute ``image-label``, with the image that the labels belong to.

    Raises
    ------
    MetadataError
        If the values are not integers, or colors or properties have no integer ``label-value``.
    """
    if kind_of(dtype) not in "iu":
        raise MetadataError(
            "labels of OME-Zarr are integers", key="image_label", found=dtype, expected="an integer"
        )
    document = {"source": _SOURCE, **instance_of(value, "image_label", dict)}
    for name in "colors", "properties":
        for item in instance_of(document.get(name, []), f"image_label[{name!r}]", list):
            if not (isinstance(item, dict) and isinstance(item.get("label-value"), int)):
                raise MetadataError(
                    "each color or property has the value of a label",
                    key=f"image_label[{name!r}]",
                    found=item,
                    expected='{"label-value": 1, ...}',
                )
    return document
