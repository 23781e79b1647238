"""Packages that have data types which zarrdask lacks, for the errors of unknown data types."""

from zarrdask.formats.extension import find_package

#: By the name of a data type, or by the beginning of the name: packages that have it.
_PACKAGES = {
    "bcomplex32": "ml_dtypes",
    "complex32": "ml_dtypes",
    "int1": "ml_dtypes",
    "narwhals.": "zarrwhals",
    "optional": "zarrs",
    "uint1": "ml_dtypes",
    "zarrs.": "zarrs",
}


def provider(name: str) -> str | None:
    """Return how to get a data type with a name, or None if no package is known.

    >>> provider("int1"), provider("int3")
    ('a data type that zarrdask.register.data_type adds; ml_dtypes has it', None)
    """
    package = find_package(name, _PACKAGES)
    if package is None:
        return None
    return f"a data type that zarrdask.register.data_type adds; {package} has it"
