"""The sizes that the elements of a data type may have."""

from zarrdask.errors import UnsupportedError

#: In bytes. NumPy has elements of up to 2 GiB, and opening an array makes its fill value, so that
#: a document of a few bytes could ask for as much memory. Records with an image in each are far
#: smaller than this.
MAX_ITEM_BYTES = 2**26


def check_item_size(size: int, key: str) -> None:
    """Check the size of the elements of a data type, before any element is made.

    Parameters
    ----------
    size : int
        In bytes.
    key : str
        The member or argument that names the data type.

    Raises
    ------
    UnsupportedError
        If it is 0, which leaves nothing to store, or more than `MAX_ITEM_BYTES`.
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
