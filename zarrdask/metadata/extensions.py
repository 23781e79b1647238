"""The ``extensions`` (ZEP 9) and ``storage_transformers`` of v3 documents."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from zarrdask.codecs.base import check_count
from zarrdask.errors import MetadataError
from zarrdask.extension import Definition, Registry, parse_definition
from zarrdask.storage.transformers import TRANSFORMERS, StorageTransformer

#: Extensions of a whole array or group: for each name a function that checks its configuration.
EXTENSIONS: Registry[Callable[[Mapping[str, Any]], None]] = Registry(
    "extension", "extensions", "zarrdask.extensions", {}
)


def parse_extensions(items: Any) -> tuple[Definition, ...]:
    """Return the extensions of an array or a group (conformance C-24, C-25)."""
    if not isinstance(items, list) or not items:
        raise MetadataError(
            "these are not extensions",
            key="extensions",
            found=items,
            expected="a list that is not empty",
        )
    return check_understood(parse_definition(item, "extensions") for item in items)


def check_understood(definitions: Iterable[Definition]) -> tuple[Definition, ...]:
    """Return extensions after checking the configurations of those that are known."""
    checked = tuple(definitions)
    for definition in checked:
        check = EXTENSIONS.get(definition.name)
        if check is not None:
            check(definition.configuration)
        elif definition.must_understand:
            raise EXTENSIONS.unknown(definition.name)
    return checked


def parse_transformers(items: Any) -> tuple[StorageTransformer, ...]:
    """Return the storage transformers of an array; ``[]`` means none (conformance C-77)."""
    if not isinstance(items, list):
        raise MetadataError(
            "these are not storage transformers",
            key="storage_transformers",
            found=items,
            expected="a list",
        )
    check_count(items, "storage_transformers")
    definitions = [parse_definition(item, "storage_transformers") for item in items]
    return tuple(
        TRANSFORMERS.find(d.name).from_configuration(d.configuration)  # type: ignore[misc]
        for d in definitions
    )
