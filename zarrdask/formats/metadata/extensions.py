"""Extensions and storage transformers in documents."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from zarrdask.errors import MetadataError, instance_of
from zarrdask.formats.codecs.codec import check_count
from zarrdask.formats.extension import Definition, Registry, parse_definition
from zarrdask.formats.metadata.storage_transformers import TRANSFORMERS, StorageTransformer

#: Extensions of a whole array or group: for each name a function that checks its configuration.
EXTENSIONS: Registry[Callable[[Mapping[str, Any]], None]] = Registry(
    "extension", "extensions", "zarrdask.extensions", {}
)


def parse_extensions(items: Any) -> tuple[Definition, ...]:
    """Return the extensions of an array or a group (conformance C-24, C-25)."""
    if not instance_of(items, "extensions", list):
        raise MetadataError("there must be at least one extension", key="extensions")
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
    check_count(instance_of(items, "storage_transformers", list), "storage_transformers")
    definitions = [parse_definition(item, "storage_transformers") for item in items]
    return tuple(
        TRANSFORMERS.find(d.name).from_configuration(d.configuration)  # type: ignore[misc]
        for d in definitions
    )
