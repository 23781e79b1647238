"""``compare``: compare two arrays or hierarchies, block by block."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar, overload

import numpy as np

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.hierarchy.lookup import locate_node
from zarrdask.arrays.nodes.arguments import suggests_arguments
from zarrdask.display.report import Displayed, Report
from zarrdask.display.words import counted, first_of, value_text
from zarrdask.errors import MetadataError, ZarrdaskError
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.formats.indexing.selection import intersection, region_shape, whole_region
from zarrdask.formats.metadata.json import render_json
from zarrdask.formats.metadata.model import ArrayMetadata, Metadata
from zarrdask.parallel.execution.executor import run_shown
from zarrdask.parallel.rewrite.copying.member_regions import regions_of_members
from zarrdask.parallel.rewrite.pyramid_document import PyramidDocument
from zarrdask.runtime.progress import Show
from zarrdask.storage.remote.failures import is_transient
from zarrdask.storage.resolve import options_of_each
from zarrdask.storage.snapshots.object_manifest import Manifest, ManifestDifferences
from zarrdask.tools.verification.element_differences import blocks, differing, texts_of
from zarrdask.tools.verification.scan import find_nodes

#: The differences that leave elements uncompared.
_STRUCTURE = ("node", "shape")


@dataclass(frozen=True)
class Difference(Displayed):
    """A difference between the metadata of two nodes.

    Attributes
    ----------
    path : str
        The path of the node below the nodes that are compared.
    what : str
        The property that differs: "node", "shape", "data type", "fill value", "dimension names"
        or "attributes".
    a, b : str
        The property of each node.
    """

    path: str
    what: str
    a: str
    b: str

    def _text(self) -> str:
        return f"{self.path or '/'}: {self.what}: {self.a} and {self.b}"


@dataclass(frozen=True)
class ArrayComparison(Displayed):
    """The comparison of the elements of two arrays.

    Attributes
    ----------
    path : str
        The path of the arrays below the nodes that are compared.
    size : int
        The number of elements of each array that are compared.
    differing : int
        The number of elements that differ.
    first : tuple of int, optional
        The index of the first element that differs, in C order.
    values : tuple of str, optional
        The values of this element in both arrays.
    errors : tuple of str
        The errors of regions that could not be read.
    """

    path: str
    size: int
    differing: int = 0
    first: Index | None = None
    values: tuple[str, str] | None = None
    errors: tuple[str, ...] = ()

    def __add__(self, other: "ArrayComparison") -> "ArrayComparison":
        unequal = [part for part in (self, other) if part.first is not None]
        least = min(unequal, key=lambda part: part.first or (), default=self)
        return replace(
            self,
            differing=self.differing + other.differing,
            first=least.first,
            values=least.values,
            errors=(*self.errors, *other.errors),
        )

    def _text(self) -> str:
        text = f"{self.path or '/'}: {self.differing} of {self.size} elements differ"
        if self.first is not None and self.values is not None:
            text += f", the first at {self.first}: {self.values[0]} and {self.values[1]}"
        return "\n".join([text, *(f"  can't be read: {error}" for error in self.errors)])


@dataclass(frozen=True, repr=False)
class Comparison(Report):
    """The comparison of two arrays or hierarchies by `zarrdask.compare`.

    It prints, shows itself in notebooks, and `to_dict` returns it as JSON values.

    Attributes
    ----------
    a, b : str
        The locations of both nodes.
    arrays : tuple of ArrayComparison
        The arrays that are in both, with the same shape.
    differences : tuple of Difference
        The differences of metadata; also nodes that are in one hierarchy only, or are an array in
        one and a group in the other. Formats, chunks and codecs are not compared.
    """

    a: str
    b: str
    arrays: tuple[ArrayComparison, ...]
    differences: tuple[Difference, ...]
    derived: ClassVar[tuple[str, ...]] = ("ok", "same_elements")

    @property
    def ok(self) -> bool:
        """Whether elements and metadata are the same."""
        return self.same_elements and not self.differences

    @property
    def same_elements(self) -> bool:
        """Whether both have the same arrays, of the same shapes, with the same elements."""
        return not any(array.differing or array.errors for array in self.arrays) and not any(
            difference.what in _STRUCTURE for difference in self.differences
        )

    def without_metadata(self) -> "Comparison":
        """Return the comparison of the elements alone: differing nodes and shapes still count."""
        differences = tuple(each for each in self.differences if each.what in _STRUCTURE)
        return replace(self, differences=differences)

    def summary(self) -> str:
        """Return one line: both nodes, the numbers of elements and arrays, and the result."""
        return f"{self._title()}; {self._verdict()}"

    def _title(self) -> str:
        size = sum(array.size for array in self.arrays)
        arrays = counted(len(self.arrays), "array")
        return f"{self.a} and {self.b}: {counted(size, 'element')} in {arrays}"

    def _verdict(self) -> str:
        return "the same" if self.ok else "NOT THE SAME"

    def _text(self) -> str:
        lines = [self._title()]
        lines += first_of([str(array) for array in self.arrays if array.differing or array.errors])
        lines += first_of([f"metadata  {difference}" for difference in self.differences])
        return "\n".join([*lines, self._verdict()])


# --------------------------------------------------------------------------------------------
# Metadata


def differences(path: str, a: Metadata, b: Metadata) -> Iterator[Difference]:
    """Yield the differences between the metadata of two nodes."""
    if isinstance(a, ArrayMetadata) != isinstance(b, ArrayMetadata):
        kinds = ["array" if isinstance(node, ArrayMetadata) else "group" for node in (a, b)]
        yield Difference(path, "node", *kinds)
        return
    properties_a, properties_b = _properties(a), _properties(b)
    for name, value in properties_a.items():
        if value != properties_b[name]:
            yield Difference(path, name, value, properties_b[name])


def _properties(metadata: Metadata) -> dict[str, str]:
    """Return the properties of a node that are compared, as text."""
    attributes = dict(sorted(metadata.attributes.items()))
    # Other stores keep this record beside the attributes.
    attributes.pop(PyramidDocument.ATTRIBUTE, None)
    try:
        text = render_json(attributes, "attributes", indent=None).decode()
    except ZarrdaskError:
        text = repr(attributes)  # old writers stored NaN, which is no JSON
    if not isinstance(metadata, ArrayMetadata):
        return {"attributes": text}
    # A list without any name is another spelling of no names.
    names = metadata.dimension_names if any(metadata.dimension_names or ()) else None
    return {**element_properties(metadata), "dimension names": str(names), "attributes": text}


def element_properties(metadata: ArrayMetadata) -> dict[str, str]:
    """Return the properties of an array that determine the elements of missing chunks, as text."""
    dtype = metadata.dtype.newbyteorder("=")
    fill = metadata.fill if dtype.hasobject else np.array(metadata.fill, dtype)
    return {
        "shape": str(metadata.shape),
        "data type": str(dtype),
        "fill value": repr(fill)
        if dtype.hasobject
        else f"{value_text(fill)} ({fill.tobytes().hex()})",
    }


# --------------------------------------------------------------------------------------------
# In parallel

#: The bytes that a task holds of each array.
_TASK_BYTES = 2**25


#: A region of two arrays, and their path: what one task compares.
ComparedRegion = tuple[ArrayRegion, ArrayRegion, str]


@overload
def compare(a: Manifest, b: Manifest) -> ManifestDifferences: ...


@overload
def compare(
    a: Any,
    b: Any,
    *,
    region: Any = None,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    source_options: dict[str, Any] | None = None,
    target_options: dict[str, Any] | None = None,
    scheduler: Any = None,
    progress: Show = False,
) -> Comparison: ...


@suggests_arguments
def compare(
    a: Any,
    b: Any,
    *,
    region: Any = None,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    source_options: dict[str, Any] | None = None,
    target_options: dict[str, Any] | None = None,
    scheduler: Any = None,
    progress: Show = False,
) -> Comparison | ManifestDifferences:
    """Compare two arrays or hierarchies of any formats, chunks and codecs; or two manifests.

    Elements are compared bit by bit. The shapes, data types, fill values, dimension names and
    attributes in the metadata are compared. If both are manifests, an older one and a newer one,
    the sizes, digests and versions of objects are compared, and no object is read.

    Parameters
    ----------
    a, b : str, os.PathLike, MutableMapping, Store, Array or Group
        The nodes, as in `zarrdask.open`; or two manifests.
    region : tuple of slice, or dict of str to slice, optional
        The region whose elements are compared, by axis or by dimension name; by default all. In a
        hierarchy, it is a dict, and arrays without these dimensions are compared as a whole.
    component : str, optional
        The path of the first node below `a`.
    storage_options : dict, optional
        Options of fsspec for both. A local path takes none, and is exempt.
    source_options, target_options : dict, optional
        Options of fsspec for `a`, or for `b`, instead of `storage_options`.
    scheduler : str or distributed.Client, optional
        The scheduler of the tasks: "threads", "processes", "sync", a client, or the address of a
        scheduler. The default is the current scheduler of Dask.
    progress : bool, file or callable, default False
        Whether and how to show a progress bar, as in `to_zarr`.

    Returns
    -------
    Comparison
        It prints, and its attribute `ok` is whether elements and metadata are the same. For two
        manifests it is a `ManifestDifferences`.

    Raises
    ------
    NodeNotFoundError
        If there is no node at one of the locations.
    StoreError
        If a store can't be reached.
    UnsupportedError
        If a node is a group, and its store can't be listed.
    SelectionError
        If the region does not fit an array.

    Examples
    --------
    >>> import zarrdask
    >>> a, b = (zarrdask.create_array({}, shape=6, dtype="i4", chunks=n) for n in (2, 3))
    >>> a[...] = b[...] = range(6)
    >>> b[4] = 7
    >>> comparison = zarrdask.compare(a, b)
    >>> comparison.ok, comparison.arrays[0].first
    (False, (4,))
    """
    if isinstance(a, Manifest) != isinstance(b, Manifest):
        raise MetadataError(
            "a manifest can only be compared with another one; zarrdask.verify(url, manifest=...) "
            "compares a node with it",
            key="b" if isinstance(a, Manifest) else "a",
            found=type(b if isinstance(a, Manifest) else a).__name__,
            expected="Manifest",
        )
    if isinstance(a, Manifest) and isinstance(b, Manifest):
        return b.compare(a)
    options = options_of_each(storage_options, (a, source_options), (b, target_options))
    place_a, place_b = locate_node(a, component, options[0]), locate_node(b, None, options[1])
    scan_a, scan_b = find_nodes(place_a), find_nodes(place_b)
    nodes_a, nodes_b = scan_a.below(), scan_b.below()
    unequal = [
        Difference(path, "node", *("present", "missing")[:: 1 if path in nodes_a else -1])
        for path in sorted(nodes_a.keys() ^ nodes_b.keys())
    ]
    tasks, arrays = list[ComparedRegion](), dict[str, ArrayComparison]()
    compared = {path: node for path, node in nodes_a.items() if isinstance(node, ArrayMetadata)}
    parts = regions_of_members(region, compared)
    for path in sorted(nodes_a.keys() & nodes_b.keys()):
        one, other = nodes_a[path], nodes_b[path]
        if one is None or other is None:
            valid = ["not valid" if node is None else "valid" for node in (one, other)]
            unequal.append(Difference(path, "node", *valid))
            continue
        unequal += differences(path, one, other)
        if not isinstance(one, ArrayMetadata) or not isinstance(other, ArrayMetadata):
            continue
        if one.shape == other.shape:
            first, second = (
                scan.root.join(path).chunks(metadata)
                for scan, metadata in ((scan_a, one), (scan_b, other))
            )
            part = parts[path] or whole_region(one.shape)
            regions = (intersection(r, part) for r in blocks(first, second, _TASK_BYTES))
            tasks += [
                (ArrayRegion(first, r), ArrayRegion(second, r), path)
                for r in regions
                if all(region_shape(r))
            ]
            arrays[path] = ArrayComparison(path, prod(region_shape(part)))
    # Differences that explain others come first: nodes that are missing, or of another kind.
    unequal.sort(key=lambda difference: (difference.what != "node", difference.path))
    stores, shown = (scan_a.base, scan_b.base), {"scheduler": scheduler, "show": progress}
    for result in run_shown(compare_regions, tasks, "compare", *stores, **shown, unit="region"):
        arrays[result.path] += result
    return Comparison(place_a.location, place_b.location, tuple(arrays.values()), tuple(unequal))


def compare_regions(task: ComparedRegion) -> ArrayComparison:
    """Compare a region. This is the task: dashboards of clusters show its name.

    Errors of codecs are part of the result.
    """
    *regions, path = task
    values, errors, size = [], [], prod(task[0].metadata.shape)
    for each in regions:
        try:
            values.append(each[...])
        except ZarrdaskError as error:
            if is_transient(error):
                raise
            errors.append(f"{each.stored.store.url}: {error}")
    if errors:
        return ArrayComparison(path, size, errors=tuple(errors))
    mask = differing(*values)
    count = int(np.count_nonzero(mask))
    if not count:
        return ArrayComparison(path, size)
    index = np.unravel_index(int(np.argmax(mask)), mask.shape) if mask.ndim else ()
    first = tuple(int(i) + start for i, start in zip(index, task[0].start, strict=True))
    return ArrayComparison(path, size, count, first, texts_of(values[0][index], values[1][index]))
