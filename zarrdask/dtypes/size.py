"""Limits for the size of the elements of a data type."""

from zarrdask.errors import UnsupportedError

#: The size of the largest element that NumPy can represent.
MAX_NUMPY_BYTES = 2**31 - 1

#: The size of the largest element that is read or written here. Opening an array allocates one
#: element for its fill value, so that a document of a few bytes could ask for 2 GiB without this
#: limit. Even records that hold an image each are far smaller.
MAX_ITEM_BYTES = 2**26


def check_item_size(size: int, key: str) -> None:
    """Check the size of the elements of a data type, before any element is made.

    Parameters
    ----------
    size : int
        The size of an element, in bytes.
    key : str
        The member or argument that names the data type, for the error.

    Raises
    ------
    UnsupportedError
        If the size is 0, so that there is nothing to store, or more than `MAX_ITEM_BYTES`.
    """
    if size == 0:
        raise UnsupportedError(
            "the elements of this data type have no bytes", key=key, expected="at least one byte"
        )
    if size > MAX_ITEM_BYTES:
        raise UnsupportedError(
            "the elements of this data type are too large",
            key=key,
            found=f"{size} bytes",
            expected=f"at most {MAX_ITEM_BYTES} bytes",
        )
