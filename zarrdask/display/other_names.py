"""Names of zarr-python 2 and 3 and of other software, and what to use instead of each.

The errors for unknown names read these tables, and so does the page "Coming from zarr-python".
"""

_STORE_PATH = "pass the path of the directory as url"
_STORE_URL = "pass a URL, or a file system of fsspec as url"
_DATABASE = "pass any mapping of str to bytes as url, or register a store"
_LOCKS = "nothing is needed: writers that share a chunk lock it"
_CODEC = 'pass the codec by its name, such as "zstd", as {"name": ..., "configuration": ...}, or '
_CODEC += "as an object of zarr-python or numcodecs"
_FILLED = "create_array(..., fill_value={0}) creates an array without stored chunks"
_LIKE = "use {0}.create_array({1}, shape=other.shape, dtype=other.dtype, chunks=other.chunks)"
_ASYNC = "there is no asynchronous interface; a call sends its requests concurrently"

_STORES = "FsspecStore", "LocalStore", "MemoryStore", "ZipStore"

#: Names in ``zarrdask``.
MODULE = {
    "open_zarr": "zarrdask.xarray.open_zarr opens a dataset, and zarrdask.from_zarr a Dask array",
    "open_dataset": 'xarray.open_dataset(url, engine="zarrdask") opens a dataset',
    "load": "zarrdask.open_array(url)[...] is a NumPy array",
    "save": "zarrdask.to_zarr(x, url) stores an array",
    "save_array": "zarrdask.to_zarr(x, url) stores an array",
    "save_group": 'zarrdask.to_zarr({"name": x, ...}, url) stores several arrays',
    "store": "zarrdask.to_zarr([(target, x), ...]) stores several arrays",
    "array": "zarrdask.to_zarr(x, url) stores an array, and zarrdask.create_array creates one",
    "from_array": "zarrdask.to_zarr(x, url) stores an array",
    "create": "zarrdask.create_array(url, shape=..., dtype=...) creates an array",
    "create_hierarchy": "use zarrdask.create_group(url), then its create_group and create_array",
    "empty": "zarrdask." + _FILLED.format("None"),
    "empty_like": _LIKE.format("zarrdask", "url"),
    "zeros": "zarrdask.create_array(url, shape=..., dtype=...) creates an array of fill values",
    "zeros_like": _LIKE.format("zarrdask", "url"),
    "ones": "zarrdask." + _FILLED.format("1"),
    "ones_like": _LIKE.format("zarrdask", "url"),
    "full": "zarrdask." + _FILLED.format("value"),
    "full_like": _LIKE.format("zarrdask", "url"),
    "open_like": _LIKE.format("zarrdask", "url"),
    "open_consolidated": "use zarrdask.open_group(url, consolidated=True)",
    "group": 'zarrdask.open_group(url, mode="a") opens a group, or creates it',
    "copy_all": "zarrdask.copy(source, target) copies a node with all below it",
    "copy_store": "zarrdask.copy(source, target) copies a node with all below it",
    "tree": "use zarrdask.open_group(url).tree()",
    "AsyncArray": _ASYNC,
    "AsyncGroup": _ASYNC,
    "ThreadSynchronizer": _LOCKS,
    "ProcessSynchronizer": _LOCKS,
    "print_debug_info": "zarrdask.__version__ is the version",
    "Blosc": _CODEC,
    **dict.fromkeys(("api", "convenience", "core", "creation"), "its functions are in zarrdask"),
    **dict.fromkeys(_STORES, "stores are in zarrdask.storage"),
}

_BASIC, _BASIC_SET = "use array[selection]", "use array[selection] = values"
#: Attributes of arrays.
ARRAY = {
    "get_basic_selection": _BASIC,
    "set_basic_selection": _BASIC_SET,
    "get_orthogonal_selection": "use array.oindex[selection]",
    "set_orthogonal_selection": "use array.oindex[selection] = values",
    "get_coordinate_selection": "use array.vindex[selection]",
    "set_coordinate_selection": "use array.vindex[selection] = values",
    "get_mask_selection": "use array.vindex[mask]",
    "set_mask_selection": "use array.vindex[mask] = values",
    "get_block_selection": "use array.blocks[selection]",
    "set_block_selection": "use array.blocks[selection] = values",
    "update_attributes": "use array.attrs.update(attributes)",
    "nchunks_initialized": "array.nchunks_stored() counts the stored chunks",
    "initialized": "array.nchunks_stored() counts the stored chunks",
    "info_complete": "use array.info, array.nbytes_stored() and array.nchunks_stored()",
    "cdata_shape": "array.metadata.read_grid.counts is the number of chunks along each axis",
    "read_chunk_sizes": "use array.chunks",
    "write_chunk_sizes": "use array.shards, or array.chunks if there are none",
    "compressor": "array.compressors is a tuple of codecs",
    "serializer": "array.metadata.codecs has all codecs",
    "basename": "use array.name",
    "itemsize": "use array.dtype.itemsize",
    "store_path": "array.node_path has the store and the path",
    "chunk_store": "array.node_path has the store and the path",
    "async_array": _ASYNC,
    "synchronizer": _LOCKS,
    "config": "dask.config.set sets zarrdask.threads, zarrdask.write-empty-chunks and others",
    "with_config": "dask.config.set sets zarrdask.threads, zarrdask.write-empty-chunks and others",
    "write_empty_chunks": "dask.config.set sets zarrdask.write-empty-chunks",
    "open": "use zarrdask.open_array(url)",
    "from_dict": "use zarrdask.create_array(url, shape=..., dtype=...)",
    "astype": "use array[...].astype(dtype), or zarrdask.from_zarr(array).astype(dtype) with Dask",
    "view": "use array[...].view(dtype)",
    "digest": "zarrdask.compare(a, b) compares two arrays",
    "hexdigest": "zarrdask.compare(a, b) compares two arrays",
    "islice": "use a loop: for values in array[start:stop]",
}

#: Attributes of groups.
GROUP = {
    "array_keys": "use [name for name, _ in group.arrays()]",
    "array_values": "use [array for _, array in group.arrays()]",
    "group_keys": "use [name for name, _ in group.groups()]",
    "group_values": "use [group for _, group in group.groups()]",
    "members": "group.items() has the members, and group.walk() all nodes below",
    "nmembers": "len(group) counts the members",
    "create_dataset": "use group.create_array(name, shape=..., dtype=...)",
    "require_dataset": "use group.require_array(name, shape=..., dtype=...)",
    "create_hierarchy": "use group.create_group(name) and group.create_array(name, ...)",
    "create": "use group.create_array(name, shape=..., dtype=...)",
    "array": "zarrdask.to_zarr(x, group, name) stores an array",
    "create_groups": "use group.create_group(name) for each name",
    "require_groups": "use group.require_group(name) for each name",
    "empty": "group." + _FILLED.format("None").replace("...", "name, ...", 1),
    "empty_like": _LIKE.format("group", "name"),
    "zeros": "group.create_array(name, shape=..., dtype=...) creates an array of fill values",
    "zeros_like": _LIKE.format("group", "name"),
    "ones": "group." + _FILLED.format("1").replace("...", "name, ...", 1),
    "ones_like": _LIKE.format("group", "name"),
    "full": "group." + _FILLED.format("value").replace("...", "name, ...", 1),
    "full_like": _LIKE.format("group", "name"),
    "get_array": "use group[name]",
    "get_group": "use group[name]",
    "move": "use zarrdask.copy(group[a], target), then del group[a]",
    "update_attributes": "use group.attrs.update(attributes)",
    "update_attributes_async": "use group.attrs.update(attributes)",
    "visit": "use a loop: for path, node in group.walk()",
    "visititems": "use a loop: for path, node in group.walk()",
    "visitkeys": "use a loop: for path, node in group.walk()",
    "visitvalues": "use a loop: for path, node in group.walk()",
    "basename": "use group.name",
    "info_complete": "use group.info and group.tree()",
    "store_path": "group.node_path has the store and the path",
    "synchronizer": _LOCKS,
    "open": "use zarrdask.open_group(url)",
    "from_store": "use zarrdask.create_group(url)",
}

#: Names in ``zarrdask.storage`` and in `zarrdask` itself.
STORAGE = {
    "LRUStoreCache": "use the setting zarrdask.cache-size, for decoded chunks",
    "DirectoryStore": _STORE_PATH,
    "NestedDirectoryStore": _STORE_PATH,
    "TempStore": _STORE_PATH,
    "FSStore": _STORE_URL,
    "ABSStore": "pass a URL such as abfs://container/a.zarr as url",
    "KVStore": "pass the mapping itself as url",
    "N5Store": "zarrdask reads and writes Zarr only",
    "N5FSStore": "zarrdask reads and writes Zarr only",
    "DBMStore": _DATABASE,
    "LMDBStore": _DATABASE,
    "SQLiteStore": _DATABASE,
    "MongoDBStore": _DATABASE,
    "RedisStore": _DATABASE,
    "ConsolidatedMetadataStore": "use zarrdask.open_group(url, consolidated=True)",
    "ObjectStore": "ObstoreStore takes a store of obstore",
    "ManagedMemoryStore": "use MemoryStore, or a dict as url",
    "GpuMemoryStore": "use MemoryStore, or a dict as url",
    "LoggingStore": "derive from WrappedStore",
    "WrapperStore": "use WrappedStore",
    "StorePath": "pass the store as url, and the path as component",
}

#: Names in ``zarrdask.codecs``.
CODECS = dict.fromkeys(
    (
        *("BloscCodec", "BytesCodec", "CastValue", "Crc32cCodec", "GzipCodec", "ScaleOffset"),
        *("TransposeCodec", "VLenBytesCodec", "VLenUTF8Codec", "ZstdCodec"),
        *("Blosc", "Zstd", "GZip", "Zlib", "BZ2", "LZ4", "LZMA", "Delta", "FixedScaleOffset"),
        *("Quantize", "PackBits", "AsType", "VLenUTF8", "VLenBytes", "Shuffle"),
    ),
    _CODEC,
) | {"ShardingCodec": "create_array(..., shards=...) creates an array with shards"}
