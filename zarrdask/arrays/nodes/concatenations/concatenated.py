"""Arrays that consist of the elements of other stored arrays."""

from typing import Any, NamedTuple

from zarrdask.arrays.chunks.members.concatenated_store import ConcatenatedStore
from zarrdask.arrays.chunks.members.concatenation import Concatenation, location_of_member
from zarrdask.arrays.chunks.members.held_values import HeldValues
from zarrdask.arrays.hierarchy.lookup import locate_node
from zarrdask.arrays.hierarchy.manifest import KEY, render_manifest, stamp_of
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.hierarchy.saved_files import (
    JSON_START,
    PARQUET_MAGIC,
    encode_manifest,
    is_manifest,
    split_url,
)
from zarrdask.arrays.hierarchy.saved_group import save_group
from zarrdask.arrays.nodes.array import Array
from zarrdask.arrays.nodes.concatenations.join_sources import remake
from zarrdask.display.words import counted
from zarrdask.errors import MetadataError, NodeExistsError, UnsupportedError, printable
from zarrdask.formats.metadata import detect
from zarrdask.formats.metadata.model import GroupMetadata
from zarrdask.storage.base import Store
from zarrdask.storage.resolve import open_store


class Refreshed(NamedTuple):
    """The result of a refresh of a concatenation: the URLs of members."""

    added: list[str]
    changed: list[str]
    removed: list[str]


def save(store: ConcatenatedStore, url: Any, storage_options: dict[str, Any] | None) -> None:
    """Save a concatenation; see `ConcatenatedArray.save`."""
    if is_manifest(url):
        base, name = split_url(url)
        directory = open_store(base, storage_options if "://" in base else None)
        _check_replaceable(directory, name)
        data = encode_manifest(render_manifest(store, base), parquet=name.endswith(".parquet"))
        directory.set(name, data)
        return
    node = locate_node(url, None, storage_options)
    if node.exists():
        _, metadata = node.find()
        if not isinstance(metadata, GroupMetadata) or KEY not in metadata.attributes:
            raise NodeExistsError(
                "there is an array or group here already; save the concatenation elsewhere",
                key=node.location,
            )
    save_group(node, render_manifest(store, node.location.rpartition("/")[0]))


def _check_replaceable(directory: Store, name: str) -> None:
    """Check that a file is absent, or a saved concatenation."""
    if name in detect.all_names():
        raise MetadataError(
            "this is the name of a document of an array or group; save the concatenation elsewhere",
            key=f"{directory.url}/{name}",
            expected="a name such as list.json",
        )
    start = directory.get_range(name, 0, len(PARQUET_MAGIC) + len(JSON_START))
    if start is not None and not bytes(start).lstrip().startswith((PARQUET_MAGIC, JSON_START)):
        raise NodeExistsError(
            "this file is not a saved concatenation; remove it first, or save elsewhere",
            key=f"{directory.url}/{name}",
        )


def refreshed(store: ConcatenatedStore) -> tuple[ConcatenatedStore, Refreshed]:
    """Return a concatenation as it is made now, and what has changed."""
    if store.recipe is None:
        raise UnsupportedError(
            "only a concatenation that was made from URLs, paths or a pattern can be refreshed",
            key=store.url,
            expected="sources that are texts",
        )
    options = next((array.options for array in store.arrays.values() if array.options), None)
    remade = remake(store, None if options is None else dict(options))
    before, after = _versions(store), _versions(remade)
    changes = Refreshed(
        [url for url in after if url not in before],
        [url for url in after if url in before and _differ(before[url], after[url])],
        [url for url in before if url not in after],
    )
    remade.saved_at = store.saved_at
    return remade, changes


def _differ(before: tuple[str, str], after: tuple[str, str]) -> bool:
    """Whether the documents of a member differ, or their stamps, where both are known."""
    stamps = {stamp for _, stamp in (before, after)}
    return before[0] != after[0] or (len(stamps) == 2 and "" not in stamps)


def _versions(store: ConcatenatedStore) -> dict[str, tuple[str, str]]:
    """Return the version stamp of each member, by URL."""
    versions, rendered = dict[str, Any](), dict[int, str]()
    for array in store.arrays.values():
        for member in array.present():
            if isinstance(member.store, HeldValues):
                continue
            kind = id(member.metadata)
            if kind not in rendered:
                rendered[kind] = repr(sorted(member.metadata.without_labels().render().items()))
            stamp = member.stamp or stamp_of(member)
            versions[location_of_member(member)] = rendered[kind], stamp
    return versions


class ConcatenatedArray(Array):
    """An array that consists of the elements of other stored arrays; it can only be read.

    It is returned by `concat` and `stack`, and by `open_array` if it was saved.
    """

    _kind = "concatenation"

    def __reduce__(self) -> tuple[Any, ...]:
        _, arguments = super().__reduce__()
        return ConcatenatedArray, arguments

    @property
    def concatenation(self) -> Concatenation:
        """The members, as a grid of cells."""
        store: ConcatenatedStore = self.store  # type: ignore[assignment]
        return store.arrays[self.path]

    @property
    def nmembers(self) -> int:
        """The number of members; missing ones are not counted."""
        return sum(1 for _ in self.concatenation.present())

    def save(self, url: Any, storage_options: dict[str, Any] | None = None) -> None:
        """Save the list of members, so that the concatenation is opened without asking them.

        `open_array` opens it. URLs are relative to the file, where that is possible.
        `storage_options` are not saved.

        Parameters
        ----------
        url : str or os.PathLike
            A file whose name ends with ``.json`` or, if pyarrow is installed, ``.parquet``;
            another path or URL becomes a Zarr group. One that was saved before is replaced.
        storage_options : dict, optional
            Options for fsspec.

        Raises
        ------
        UnsupportedError
            If a member is in a store without a URL, such as a dict.
        NodeExistsError
            If there is another node, or another file, at the URL.
        """
        save(self.store, url, storage_options)  # type: ignore[arg-type]

    def refresh(self) -> Refreshed:
        """Find new, changed and removed members, and use the members as they are now.

        A pattern is listed again. A concatenation that was opened from a file is not saved; call
        `save` for that.

        Returns
        -------
        Refreshed
            The URLs of members that were ``added``, ``changed`` and ``removed``.

        Raises
        ------
        UnsupportedError
            If the sources were not texts.
        """
        store, changes = refreshed(self.store)  # type: ignore[arg-type]
        self.node_path = NodePath(store, self.path)
        self._stored = self.node_path.chunks(store.arrays[self.path].metadata, self.missing)
        return changes

    def __repr__(self) -> str:
        text = super().__repr__().removesuffix(">")
        return printable(f"{text}, {counted(self.nmembers, 'member')}>")

    def _repr_html_(self) -> str:
        from zarrdask.arrays.nodes.html import array_html

        return array_html(self.node_path.location, self._stored, self.concatenation.axes)
