"""Code of a user, whose types are checked and which runs where only the wheel is installed."""

from tempfile import TemporaryDirectory

import zarrdask


def total(group: zarrdask.Group, name: str) -> float:
    """Return the sum of an array."""
    member = group[name]
    if not isinstance(member, zarrdask.Array):
        raise TypeError(name)
    return float(member[...].sum())


def main(folder: str) -> None:
    """Write, read, rechunk, check, and catch an error."""
    root: zarrdask.Group = zarrdask.open_group(f"{folder}/data.zarr", mode="w")
    array: zarrdask.Array = root.create_array("a", shape=(4, 6), dtype="f8", chunks=(2, 3))
    array[...] = 1
    assert total(root, "a") == 24
    plan = zarrdask.rechunk(array, f"{folder}/b.zarr", chunks=(4, 1))
    rechunked: zarrdask.Array = plan.execute(progress=False)
    whole = zarrdask.rechunk(root, f"{folder}/c.zarr", chunks=2, max_mem="1 MiB")
    copied: zarrdask.Group = whole.execute(progress=False)
    assert total(copied, "a") == 24
    assert zarrdask.compare(array, rechunked).ok
    assert zarrdask.plan_read(array).requests == 4
    try:
        root["nothing"]
    except zarrdask.errors.NodeNotFoundError as error:
        message: str = str(error)
    assert "nothing" in message


if __name__ == "__main__":
    with TemporaryDirectory() as place:
        main(place)
