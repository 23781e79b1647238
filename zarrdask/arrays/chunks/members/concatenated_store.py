"""The store of concatenations: a hierarchy whose arrays are made of members in other stores."""

import pickle
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from hashlib import blake2b
from operator import lt
from typing import Any
from zlib import compress, decompress

import numpy as np

from zarrdask import __version__
from zarrdask.arrays.chunks.members.concatenation import Concatenation, Member, location_of_member
from zarrdask.arrays.chunks.members.gather import gather
from zarrdask.arrays.chunks.members.member_chunks import chunk_objects, stored_chunks, whole_chunk
from zarrdask.arrays.chunks.members.packed_members import pack, unpack
from zarrdask.arrays.chunks.members.stale_members import check_members, is_checked_by_request
from zarrdask.arrays.chunks.stored import ElementReader, ElementStore, StoredChunks
from zarrdask.errors import ReadOnlyError, UnsupportedError
from zarrdask.formats.byte_ranges import Entry
from zarrdask.formats.codecs.decode import Blocks, fill_chunk
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.formats.indexing.projection import AnyRequest, project
from zarrdask.formats.indexing.regions import compose_axis
from zarrdask.formats.indexing.selection import Region, region_shape
from zarrdask.formats.metadata import detect
from zarrdask.formats.store_keys import Names, check_prefix, right_below
from zarrdask.runtime import buffers
from zarrdask.storage.capabilities import LOCAL_COSTS, Capabilities, StoreCosts
from zarrdask.storage.identity import Identity
from zarrdask.storage.refusals import no_objects


class MemberReader:
    """Reads elements of a concatenation from its members."""

    def __init__(self, concatenation: Concatenation) -> None:
        self.concatenation = concatenation

    def read(self, request: AnyRequest, out: np.ndarray | Blocks, *, threads: int | None) -> None:
        gather(self.concatenation, request, out, threads=threads)

    def parts(self, region: Region) -> Iterator[tuple[StoredChunks, Region]]:
        array = self.concatenation
        for index, inside, _ in zip(*project(region, array.axes), strict=True):
            member = array.member(index)
            if member is None:
                continue
            chunks, own = member.chunks(array.options), member.region
            if inside is not None:
                own = member.requested(array.own_axes(inside))  # type: ignore[assignment]
            if chunks.elements is None:
                yield chunks, own
            else:
                yield from chunks.elements.parts(own)

    def part(self, region: Region) -> tuple[StoredChunks, Region, tuple[int, ...]] | None:
        array, inner = self.concatenation.part(region)
        every = tuple(range(len(region)))
        member = array.members[0] if len(array.members) == 1 else None
        is_same = member is not None and member.metadata.dtype == array.metadata.dtype
        is_checked_here = member is not None and not (
            array.is_saved and is_checked_by_request(member.opened(array.options))
        )
        if member is None or array.added or not is_same or not is_checked_here:
            store = ConcatenatedStore({"": array})
            return StoredChunks(store, "", array.metadata), inner, every
        check_members(array, [member])
        picks = list(member.region)
        for axis, pick in zip(member.axes, inner, strict=True):
            picks[axis] = compose_axis(picks[axis], pick)
        return member.chunks(array.options), tuple(picks), member.axes


class ConcatenatedStore(ElementStore):
    """A hierarchy in format 3 that can only be read: its arrays are concatenations.

    A chunk that is a whole chunk of a member, encoded in the same way, is read as it is stored;
    another one is encoded when it is read. Elements are read from the members themselves.

    Parameters
    ----------
    arrays : mapping of str to Concatenation
        The arrays by their paths; the path "" is the root.
    groups : mapping of str to GroupMetadata
        The groups by their paths.
    url : str, optional
        Where the concatenation is saved, for messages; by default the first member.
    recipe : mapping, optional
        The function and the arguments that made the concatenation, as JSON, to make it again.
    """

    def __init__(
        self,
        arrays: Mapping[str, Concatenation],
        groups: Mapping[str, Any] | None = None,
        url: str = "",
        recipe: Mapping[str, Any] | None = None,
    ) -> None:
        self.arrays = dict(arrays)
        self.groups = dict(groups or {})
        self.saved_at = url
        self.recipe = recipe

    # ---- identity

    @property
    def url(self) -> str:
        if self.saved_at:
            return self.saved_at
        members = [each for array in self.arrays.values() for each in array.present()]
        if not members:
            return "concatenation"
        return f"{location_of_member(members[0])} ... {location_of_member(members[-1])}"

    @cached_property
    def _digest(self) -> str:
        digest = blake2b(digest_size=16)
        for path, array in self.arrays.items():
            digest.update(repr((path, array.counts, array.added, array.options)).encode())
            digest.update(repr(sorted(array.metadata.render().items())).encode())
            documents = dict[int, str]()
            for member in array.members:
                if member is None:
                    digest.update(b"-")
                    continue
                kind = id(member.metadata)
                if kind not in documents:
                    content = repr(sorted(member.metadata.without_labels().render().items()))
                    documents[kind] = blake2b(content.encode(), digest_size=16).hexdigest()
                where = (
                    member.store if isinstance(member.store, str) else member.store.identity.token
                )
                own = where, member.prefix, documents[kind], member.region, member.axes
                digest.update(repr((own, member.missing)).encode())
        return digest.hexdigest()

    @property
    def identity(self) -> Identity:
        return Identity.at(self.url, f"concatenation:{self._digest}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)

    @cached_property
    def _packed(self) -> bytes:
        import cloudpickle

        arrays = {path: pack(array) for path, array in self.arrays.items()}
        groups = {path: group.render() for path, group in self.groups.items()}
        # A list of all sources would be as large as the members.
        recipe = self.recipe if self.recipe and isinstance(self.recipe["sources"], str) else None
        return compress(cloudpickle.dumps((arrays, groups, self.saved_at, recipe), 5), 6)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacked, (__version__, self._packed)

    # ---- what the members support

    @cached_property
    def _costs(self) -> StoreCosts:
        """What requests to the slowest store of a member cost."""
        members = (member for array in self.arrays.values() for member in array.present())
        return max(map(_costs_of, members), default=LOCAL_COSTS)

    @cached_property
    def _is_shared(self) -> bool:
        return all(
            isinstance(member.store, str) or member.store.capabilities.shared
            for array in self.arrays.values()
            for member in array.present()
        )

    @cached_property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        """The capabilities to read that all members have."""
        return Capabilities(
            writable=False,
            shared=self._is_shared,
            costs=self._costs,
            concurrent=self._costs.overlaps,
            retries=True,
        )

    def check_writable(self, *, erasing: Iterable[str] = ()) -> None:
        raise ReadOnlyError(
            "a concatenation can only be read; write to its members, or copy it", key=self.url
        )

    # ---- elements

    def elements(self, prefix: str) -> ElementReader:
        return MemberReader(self.arrays[prefix.rstrip("/")])

    # ---- values

    def get(self, key: str) -> bytes | None:
        path, _, name = key.rpartition("/")
        if name == "zarr.json" and (path in self.arrays or path in self.groups):
            node = self.arrays[path].metadata if path in self.arrays else self.groups[path]
            return node.render()[name]
        chunk = self._chunk_of(key)
        return None if chunk is None else self._chunk(*chunk)

    def _chunk_of(self, key: str) -> tuple[str, Index] | None:
        """Return the array and the index of the chunk with a key; None for other keys."""
        for path, array in self.arrays.items():
            prefix = f"{path}/" if path else ""
            if key.startswith(prefix):
                metadata = array.metadata
                index = metadata.keys.index(key[len(prefix) :], len(metadata.shape))
                if index is not None and all(map(lt, index, metadata.grid.counts)):
                    return path, index
        return None

    def _chunk(self, path: str, index: Index) -> bytes | None:
        """Return an encoded chunk: as a member has it, if that is possible."""
        array = self.arrays[path]
        whole = whole_chunk(array, index)
        if whole is not None:
            chunks, key = whole
            value = chunks.units.get(key)
            if value is not None or not chunks.is_strict:
                return value
        metadata = array.metadata
        region = metadata.grid.region(index)
        cells = project(region, array.axes).indices
        if all(array.member(cell) is None for cell in cells):
            return None
        spec = metadata.pipeline_at(index).spec
        chunk = fill_chunk(spec)
        values = buffers.empty(region_shape(region), metadata.dtype)
        gather(array, region, values, threads=1)
        chunk[tuple(slice(0, n) for n in values.shape)] = values
        return bytes(metadata.pipeline_at(index).encode(chunk))

    # ---- listing

    def list_prefix(self, prefix: str) -> Iterator[str]:
        prefix = check_prefix(prefix)
        return (key for key in self._keys() if key.startswith(prefix))

    def list_dir(self, prefix: str) -> Names:
        prefix = check_prefix(prefix)
        path = prefix.rstrip("/")
        if path in self.groups:
            nodes = {*self.arrays, *self.groups} - {path}
            below = [each[len(prefix) :] for each in nodes if each.startswith(prefix)]
            return ["zarr.json"], sorted({each.partition("/")[0] for each in below})
        return right_below(prefix, self.list_prefix(prefix))

    def entries(
        self, prefix: str, after: str = "", until: str | None = None, *, objects: bool = False
    ) -> Iterator[Entry]:
        return self._objects(prefix) if objects else super().entries(prefix, after, until)

    def _objects(self, prefix: str) -> Iterator[Entry]:
        """Yield the chunks of an array with the objects of the members that hold them."""
        path = prefix.rstrip("/")
        if path not in self.arrays:
            raise no_objects(self.url)
        array = self.arrays[path]
        for index, stored in chunk_objects(array):
            key = prefix + array.metadata.keys.key(index)
            path_there = stored.key if stored.path is None else stored.path
            yield Entry(key, stored.size, object=stored._replace(key=key, path=path_there))

    def _keys(self) -> Iterator[str]:
        """Yield the keys of documents, and of chunks that are or may be stored in part."""
        for path in sorted({*self.arrays, *self.groups}):
            prefix = f"{path}/" if path else ""
            yield f"{prefix}zarr.json"
            if path in self.arrays:
                array = self.arrays[path]
                yield from (prefix + array.metadata.keys.key(i) for i in stored_chunks(array))


def _costs_of(member: Member) -> StoreCosts:
    if isinstance(member.store, str):  # a URL, which need not be opened for that
        return Capabilities.costs if "://" in member.store else LOCAL_COSTS
    return member.store.capabilities.costs


def _unpacked(release: str, packed: bytes) -> ConcatenatedStore:
    try:
        arrays, groups, url, recipe = pickle.loads(decompress(packed))
        concatenations = {path: unpack(array) for path, array in arrays.items()}
    except Exception as error:
        if release == __version__:
            raise
        raise UnsupportedError(
            f"this concatenation was pickled by zarrdask {release} and cannot be read by zarrdask "
            f"{__version__}; install the same release for the client, the scheduler and all workers"
        ) from error
    nodes = {path: detect.parse(documents) for path, documents in groups.items()}
    return ConcatenatedStore(concatenations, nodes, url, recipe)
