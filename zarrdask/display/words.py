"""Numbers and lists in words."""

#: Of many lines, those that are shown.
_LINES = 20


def byte_size(count: int) -> str:
    """Return bytes in words.

    >>> byte_size(10), byte_size(1536), byte_size(3 * 2**40)
    ('10 B', '1.5 KiB', '3 TiB')
    """
    value, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    while value >= 1000 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.3g} {units[0]}"


def counted(number: int, name: str) -> str:
    """Return how many there are of something in words.

    >>> counted(1, "array"), counted(2, "box")
    ('1 array', '2 boxes')
    """
    ending = "" if number == 1 else "es" if name.endswith(("s", "x")) else "s"
    return f"{number} {name}{ending}"


def first_of(lines: list[str], what: str = "") -> list[str]:
    """Return lines, or the first of many, and how many more there are.

    Parameters
    ----------
    what : str
        What they tell of.
    """
    left = len(lines) - _LINES
    more = f"  ... and {left} more{f': {what}' if what else ''}"
    return lines if left <= 0 else [*lines[:_LINES], more]
