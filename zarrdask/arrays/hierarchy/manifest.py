"""Saved concatenations: a document that lists the members, so that opening it reads no member.

The document is JSON: the metadata of the arrays, and columns with a value for each member. See
`zarrdask.arrays.hierarchy.saved_files` and `saved_group` for where it is kept.
"""

import os
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from zarrdask.arrays.chunks.members.concatenated_store import ConcatenatedStore
from zarrdask.arrays.chunks.members.concatenation import Concatenation, Member, boundaries_of
from zarrdask.arrays.chunks.members.held_values import HeldValues
from zarrdask.errors import MetadataError, StoreError, UnsupportedError, ZarrdaskError
from zarrdask.formats.compliance import strictness
from zarrdask.formats.grids.axis import Uneven
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.grids.rectilinear import render_runs
from zarrdask.formats.indexing.selection import Region, whole_region
from zarrdask.formats.metadata import detect
from zarrdask.formats.metadata.node_layout import DIRECTORIES, Layout
from zarrdask.storage.base import Store
from zarrdask.storage.listing import key_stamp
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.resolve import open_store
from zarrdask.storage.zarr.draft_store import DraftStore, layout_of

#: The member of the document, and the attribute of a group, that has the version of the content.
KEY = "zarrdask_concatenation"
VERSION = 1
#: The names of columns with a value for each member.
_COLUMNS = ("store", "path", "document", "stamp", "stamped", "missing")
#: What stands for the store of values that the document has itself.
_HELD = "values:"
#: What the names of concatenations begin with that are members of the document's.
_NESTED = "concatenation:"
#: What the URLs of stores begin with that another process can't open by them.
_WITHOUT_URL = ("mapping://", "memory://", "reference:")


# --------------------------------------------------------------------------------------------
# To a document


def render_manifest(store: ConcatenatedStore, base: str) -> dict[str, Any]:
    """Return a concatenation as a document; URLs are relative to the directory `base`."""
    columns = _Columns()
    arrays = {path: _render_array(array, columns, base) for path, array in store.arrays.items()}
    groups = {path: _texts(group.render()) for path, group in store.groups.items()}
    return {
        KEY: VERSION,
        "recipe": _moved_recipe(store.recipe, lambda url: _relative(url, base)),
        "groups": groups,
        "arrays": arrays,
        "columns": columns.columns,
    }


def _moved_recipe(recipe: Any, move: Callable[[str], str]) -> dict[str, Any] | None:
    """Return a recipe with other URLs of its sources."""

    def moved(sources: Any) -> Any:
        return [*map(moved, sources)] if isinstance(sources, list) else move(sources)

    return None if recipe is None else {**recipe, "sources": moved(recipe["sources"])}


class _Columns:
    """Columns with a value for each member. Arrays share equal ones."""

    def __init__(self) -> None:
        self.columns: list[list[Any]] = []

    def add(self, values: list[Any]) -> Any:
        """Return what stands for a column: its only value, or its number."""
        first = values[0] if values else None
        if all(value == first for value in values):
            return {"value": first}
        if values not in self.columns:
            self.columns.append(values)
        return self.columns.index(values)


def _render_array(array: Concatenation, columns: _Columns, base: str) -> dict[str, Any]:
    documents, stores = dict[Any, int](), dict[Any, str]()
    distinct = list[Mapping[str, str | None]]()
    rows: dict[str, list[Any]] = {key: [] for key in _COLUMNS}
    regions, views, values = {}, list[Any](), dict[str, str]()
    nested = list[dict[str, Any]]()
    for number, member in enumerate(array.members):
        if member is None:
            for column in rows.values():
                column.append(None)
            continue
        # A hierarchy of the draft is opened at its root.
        layout = DIRECTORIES if isinstance(member.store, str) else layout_of(member.store)
        kind = id(member.metadata), layout.view
        if kind not in documents:
            documents[kind] = len(distinct)
            distinct.append(_texts(member.metadata.render()))
            views.append(layout.view)
        key = member.store if isinstance(member.store, str) else id(member.store)
        if isinstance(member.store, HeldValues):
            held = member.store.values.items()
            values |= {name: b64encode(value).decode() for name, value in held}
            stores[key] = _HELD
        elif isinstance(member.store, ConcatenatedStore) and key not in stores:
            stores[key] = f"{_NESTED}{len(nested)}"
            nested.append(render_manifest(member.store, base))
        elif key not in stores:
            root = (layout.base or "").rstrip("/")
            stores[key] = _relative("/".join(filter(None, (_url_of(member.store), root))), base)
        rows["store"].append(stores[key])
        rows["path"].append(layout.inside(member.prefix))
        rows["document"].append(documents[kind])
        rows["stamp"].append(member.stamp or stamp_of(member))
        rows["stamped"].append(member.stamped)
        rows["missing"].append(member.missing)
        every = tuple(range(len(member.metadata.shape)))
        if member.region != whole_region(member.metadata.shape) or member.axes != every:
            bounds = [[pick.start, pick.stop, pick.step] for pick in member.region]
            regions[number] = [bounds, list(member.axes)]
    # Arrays of one name in many groups: the path of the groups is a column that all arrays share.
    ends = {path[path.rstrip("/").rfind("/") :] for path in rows["path"] if path}
    suffix = ends.pop() if len(ends) == 1 else ""
    suffix = suffix if suffix.startswith("/") else ""
    paths = [path and path[: len(path) - len(suffix)] for path in rows["path"]]
    return {
        "metadata": _texts(array.metadata.render()),
        "lengths": [render_runs(axis.lengths) for axis in array.axes],
        "added": list(array.added),
        "documents": distinct,
        "views": views if any(views) else None,
        "values": values or None,
        "nested": nested or None,
        "suffix": suffix,
        "regions": regions,
        **{name: columns.add(values) for name, values in (rows | {"path": paths}).items()},
    }


def _texts(documents: Mapping[str, bytes | None]) -> dict[str, str]:
    return {name: bytes(data).decode() for name, data in documents.items() if data is not None}


def _url_of(store: Store | str) -> str:
    """Return the URL by which another process opens a store."""
    if isinstance(store, str):
        return store
    url = store.url
    is_complete = "://" in url or os.path.isabs(url)
    if store.capabilities.shared and is_complete and not url.startswith(_WITHOUT_URL):
        return url
    raise UnsupportedError(
        "this store has no URL by which another process opens it, so a concatenation with it "
        "can't be saved; copy it to a URL first",
        key=url,
    )


def _relative(url: str, base: str) -> str:
    """Return a URL relative to a directory, if that is possible."""
    if url == base:
        return "."
    if url.startswith(f"{base}/"):
        return url[len(base) + 1 :]
    if "://" not in url and "://" not in base:
        return os.path.relpath(url, base).replace(os.sep, "/")
    return url


def stamp_of(member: Member) -> str:
    """Return the version stamp of a member's document, or "" if that needs a request."""
    return "" if isinstance(member.store, str) else key_stamp(member.store, member.stamped_key)


# --------------------------------------------------------------------------------------------
# From a document


def parse_manifest(
    document: Any, url: str, base: str, options: Mapping[str, Any] | None
) -> ConcatenatedStore:
    """Return the concatenation that a document describes; `options` are for stores at URLs.

    Raises
    ------
    MetadataError
        If the document does not describe a concatenation.
    UnsupportedError
        If another release has written it.
    """
    if not isinstance(document, Mapping) or KEY not in document:
        raise MetadataError(
            "invalid document of a saved concatenation",
            key=url,
            expected=f"a JSON object with the member {KEY!r}",
        )
    if document[KEY] != VERSION:
        raise UnsupportedError(
            "this concatenation was saved in another version of the format; save it again with "
            "this release",
            key=f"{url}: {KEY}",
            found=document[KEY],
            expected=VERSION,
        )
    try:
        with strictness(strict=False, quiet=True):
            columns = document["columns"]
            arrays = {
                path: _parse_array(each, columns, base, options)
                for path, each in document["arrays"].items()
            }
            groups = {path: _parsed(each) for path, each in document["groups"].items()}
        return ConcatenatedStore(
            arrays,
            groups,
            url,
            _moved_recipe(document.get("recipe"), lambda url: _absolute(url, base)),
        )
    except ZarrdaskError as error:
        raise error.within(url) from error.__cause__
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise MetadataError(
            f"this saved concatenation is damaged: {error!r}; save it again", key=url
        ) from error


def _parse_array(
    content: Mapping[str, Any],
    columns: Sequence[list[Any]],
    base: str,
    options: Mapping[str, Any] | None,
) -> Concatenation:
    metadata: Any = _parsed(content["metadata"])
    axes = tuple(boundaries_of(_lengths(runs)) for runs in content["lengths"])
    count = 1
    for axis in axes:
        count *= len(axis.boundaries) - 1
    views = content.get("views") or [None] * len(content["documents"])
    documents: list[Any] = [
        _parsed(each, layout_of(_in_view(MemoryStore(), view)))
        for each, view in zip(content["documents"], views, strict=True)
    ]
    regions = {
        int(number): (tuple(slice(*map(int, each)) for each in bounds), tuple(map(int, own)))
        for number, (bounds, own) in content["regions"].items()
    }
    whole = [(whole_region(each.shape), tuple(range(len(each.shape)))) for each in documents]
    _check_bounds(metadata, content, axes)
    absent = {"value": ""}
    rows = [_column(content.get(key, absent), columns, count) for key in _COLUMNS]
    urls = {name: _absolute(name, base) for name in set(rows[0]) if name is not None}
    values = content.get("values") or {}
    inside: dict[str, Store] = {
        f"{_NESTED}{number}": parse_manifest(each, f"{base}/concatenation-{number}", base, options)
        for number, each in enumerate(content.get("nested") or ())
    }
    inside[_HELD] = HeldValues({key: b64decode(value) for key, value in values.items()})
    stores = dict[tuple[str, int], Store]()
    store_options = None if options is None else dict(options)
    suffix, members = str(content["suffix"]), list[Member | None]()
    for number, (store, path, kind, stamp, stamped, missing) in enumerate(zip(*rows, strict=True)):
        if store is None:
            members.append(None)
            continue
        if kind < 0 or missing not in (None, "", "fill", "error"):
            raise ValueError(f"member {number}: document {kind}, missing {missing!r}")
        region, own = whole[kind]
        if number in regions:
            region, own = regions[number]
            _check_region(region, own, documents[kind].shape)
        prefix = _checked(path + suffix)
        opened: Store | str = inside.get(store) or urls[store]
        if views[kind]:
            if (store, kind) not in stores:
                stores[store, kind] = _in_view(open_store(opened, store_options), views[kind])
            opened = stores[store, kind]
        rest = missing or None, stamp or "", stamped or ""
        members.append(Member(opened, prefix, documents[kind], region, own, *rest))
    added = tuple(content["added"])
    return Concatenation(metadata, axes, members, added, options, is_saved=True)


def _check_bounds(metadata: Any, content: Mapping[str, Any], axes: Sequence[Uneven]) -> None:
    """Check that the members fill the array."""
    is_filled = tuple(axis.size for axis in axes) == metadata.shape
    has_order = all((np.diff(axis.boundaries) >= 0).all() for axis in axes)
    if not is_filled or not has_order or not {*content["added"]} <= {*range(len(axes))}:
        raise ValueError(f"lengths {content['lengths']!r} for the shape {metadata.shape}")


def _check_region(region: Region, axes: tuple[int, ...], shape: Shape) -> None:
    """Check that a region is in its array."""
    is_inside = len(region) == len(shape) and all(
        0 <= pick.start <= pick.stop <= size and pick.step >= 1
        for pick, size in zip(region, shape, strict=True)
    )
    if not is_inside or not {*axes} <= {*range(len(shape))}:
        raise ValueError(f"the region {region!r} of an array of shape {shape}")


def _in_view(store: Store, view: Any) -> Store:
    """Return a store, or the hierarchy of the draft at its root."""
    return DraftStore(store, "", *view) if view else store


def _parsed(texts: Mapping[str, str], layout: Layout = DIRECTORIES) -> Any:
    metadata = detect.parse({name: text.encode() for name, text in texts.items()}, layout)
    if metadata is None:
        raise MetadataError("a document is missing", key="documents", found=sorted(texts))
    return metadata


def _column(content: Any, columns: Sequence[list[Any]], count: int) -> list[Any]:
    values = [content["value"]] * count if isinstance(content, Mapping) else columns[content]
    if len(values) != count:
        raise MetadataError("a column is too short or too long", found=len(values), expected=count)
    return values


def _lengths(runs: Iterable[Any]) -> list[int]:
    lengths = list[int]()
    for run in runs:
        length, times = run if isinstance(run, list) else (run, 1)
        lengths += [int(length)] * int(times)
    return lengths


def _checked(prefix: str) -> str:
    """Return the prefix of an array, if it does not leave its store."""
    if ".." in prefix and ".." in prefix.split("/"):
        raise MetadataError("a path leaves its store", key="path", found=prefix)
    return prefix


def _absolute(url: str, base: str) -> str:
    """Return the URL that a relative one stands for.

    A document that is not on this machine must not refer to files on it.
    """
    if "://" in url:
        is_local = url.startswith(("file://", "local://"))
    elif "://" in base:
        is_local = url.startswith("/") or ".." in url.split("/")
        url = base if url == "." else f"{base}/{url}"
    else:
        return os.path.normpath(os.path.join(base, url))
    if is_local and "://" in base and not base.startswith("file://"):
        raise StoreError(
            "a saved concatenation on a server refers to a local file; open a local copy of it if "
            "you trust it",
            key=url,
        )
    return url
