"""Methods of stores that were public once: what to call instead, and stores of users with them."""

from types import FunctionType
from warnings import warn

#: By the former name of a method, what to call instead.
INSTEAD = {
    "reading": "call get_range or get_ranges",
    "set_partial_values": "call zarrdask.storage.set_partial_values(store, parts)",
    "size": "call zarrdask.storage.value_sizes(store, keys)",
    "stamp": "call zarrdask.storage.places.key_stamp(store, key)",
    "token": "call zarrdask.storage.places.store_token(store)",
    "uri": "call zarrdask.storage.places.store_uri(store)",
}
#: What stores of users may define under a former name, and by which kind of attribute.
_DEFINED = {
    "reading": FunctionType,
    "size": FunctionType,
    "stamp": FunctionType,
    "token": property,
    "uri": property,
}


def adopt_former_names(cls: type) -> None:
    """Use what a class of a user defines under a former name under the present one."""
    for name, kind in _DEFINED.items():
        if isinstance(vars(cls).get(name), kind) and f"_{name}" not in vars(cls):
            setattr(cls, f"_{name}", vars(cls)[name])
            warn(
                f"{cls.__qualname__}.{name} was a public method of zarrdask.storage.Store and is "
                f"now called _{name}; rename it. If it is something else, choose another name",
                FutureWarning,
                stacklevel=3,
            )
