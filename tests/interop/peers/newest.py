"""The newest zarr-python: what it writes and reads is given as a document."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from serve import serve

warnings.simplefilter("ignore")  # it warns of what has no specification yet
zarr.config.set({"array.rectilinear_chunks": True})


def plain(values: Any) -> np.ndarray:
    """Return an array that ``.npy`` can hold everywhere."""
    values = np.asarray(values)
    return values.astype(object) if values.dtype.kind == "T" else values


def write(place: str, name: None, values: str, document: dict[str, Any]) -> dict[str, Any]:
    """Make the array of a document, fill it, and return the document as zarr-python writes it."""
    home = Path(place)
    home.mkdir(parents=True)
    (home / "zarr.json").write_text(json.dumps(document))
    array = zarr.open_array(place, mode="r+")
    array[...] = np.load(values, allow_pickle=True)
    array.attrs["late"] = 1
    return json.loads((home / "zarr.json").read_text())


def read(place: str, name: str | None, values: str) -> dict[str, Any]:
    """Save an array's values, and return its document."""
    array = zarr.open_array(place, path=name, mode="r")
    np.save(values, plain(array[...]), allow_pickle=True)
    return {"attributes": dict(array.attrs)}


def tree(place: str) -> dict[str, Any]:
    """Return the attributes of every node below the root, by path."""
    root = zarr.open_group(place, mode="r")
    return {path: dict(node.attrs) for path, node in root.members(max_depth=None)}


if __name__ == "__main__":
    serve(write=write, read=read, tree=tree)
