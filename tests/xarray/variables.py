"""What a variable of xarray holds, which it has no public name for."""


def has_values(variable):
    """Return whether the values of a variable were read."""
    return variable._in_memory


def held_array(variable):
    """Return the array of a variable, which is not read: NumPy's, Dask's or a lazy one."""
    return variable._data
