"""Registration: how a program makes its own codecs, data types, grids ... known.

A package registers its own with entry points of the groups ``zarrdask.codecs``,
``zarrdask.data_types``, ``zarrdask.chunk_grids``, ``zarrdask.chunk_key_encodings``,
``zarrdask.storage_transformers``, ``zarrdask.extensions``, ``zarrdask.stores`` and
``zarrdask.store_types``; these also hold in workers, which don't run the program that calls these
functions. Names are raw names or URIs (conformance C-20, C-21), which are never fetched; any other
is a `MetadataError`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from zarrdask.formats.codecs.codec import Configurable
from zarrdask.formats.codecs.registry import CODECS
from zarrdask.formats.dtypes.data_type import DataType
from zarrdask.formats.dtypes.registry import DATA_TYPES
from zarrdask.formats.grids.chunk_grid import GRIDS, ChunkGrid
from zarrdask.formats.grids.keys import KEY_ENCODINGS, ChunkKeyEncoding
from zarrdask.formats.metadata.extensions import EXTENSIONS
from zarrdask.formats.metadata.storage_transformers import TRANSFORMERS, TransformerClass
from zarrdask.storage.schemes import ADAPTERS, STORES, Adapter, Opener


def codec(codec: type[Configurable], name: str | None = None) -> None:
    """Make a codec class known.

    Parameters
    ----------
    codec : type
        With `name`, `kind`, `from_configuration` and the methods of its kind
        (`zarrdask.codecs`).
    name : str, optional
        Its own name, if not given.
    """
    CODECS.register(name or codec.name, codec)


def data_type(name: str, data_type: type[DataType]) -> None:
    """Make a data type class known under a name; see `zarrdask.dtypes.DataType`."""
    DATA_TYPES.register(name, data_type)


def chunk_grid(name: str, grid: type[ChunkGrid]) -> None:
    """Make a chunk grid class known under a name; see `zarrdask.grids.ChunkGrid`."""
    GRIDS.register(name, grid)


def chunk_key_encoding(name: str, parse: Callable[[Mapping[str, Any]], ChunkKeyEncoding]) -> None:
    """Make a chunk key encoding known under a name.

    Parameters
    ----------
    name : str
    parse : callable
        Configuration -> encoding; see `zarrdask.grids.ChunkKeyEncoding`.
    """
    KEY_ENCODINGS.register(name, parse)


def storage_transformer(name: str, transformer: type[TransformerClass]) -> None:
    """Make a storage transformer class known under a name.

    See `zarrdask.storage.StorageTransformer`.
    """
    TRANSFORMERS.register(name, transformer)


def extension(name: str, check: Callable[[Mapping[str, Any]], None]) -> None:
    """Make an extension of arrays and groups known under a name (ZEP 9, ``extensions``).

    Parameters
    ----------
    name : str
    check : callable
        Given the configuration when a node is opened; raises if it is wrong.
    """
    EXTENSIONS.register(name, check)


def store(name: str, open_url: Opener) -> None:
    """Make the stores of a URL scheme, or of a suffix, known.

    Parameters
    ----------
    name : str
        The scheme, such as "sqlite", or a suffix that begins with a dot, such as ".db". A suffix
        also stands for local files; a local directory of such a name is a directory all the same.
    open_url : callable
        Given the URL, or the absolute path of a local file, and the ``storage_options`` of the user
        (a dict or None), it returns the `zarrdask.storage.Store`.
    """
    STORES.register(name, open_url)


def store_type(package: str, adapt: Adapter) -> None:
    """Make objects of a package known as stores, so that they can be passed wherever a URL can.

    Parameters
    ----------
    package : str
        The name of the package in which the class of the objects is defined.
    adapt : callable
        Given an object of the package, it returns the `zarrdask.storage.Store` that the object is,
        or is in; None if it is something else.
    """
    ADAPTERS.register(package, adapt)
