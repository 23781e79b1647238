"""The names of the codecs of imagecodecs, by the types of their input and output.

Some are left out: ``cms``, which may change the shape and the data type of a chunk; ``zstd1``,
whose default item size is the array's, which a codec of bytes does not get; and those for
which damaged values crash the process (``sperr``, ``zfp``), take very long (``hcomp``, ``jpegls``),
or decode to wrong values without an error (``pcx``, ``qoi``, ``szip``).
"""

from collections.abc import Mapping

from zarrdask.formats.codecs.codec import Kind

_PREFIX = "imagecodecs_"

_ARRAY_ARRAY = "bitorder delta quantize xor"
_ARRAY_BYTES = """
    apng avif b2nd bfloat16 bitshuffle bmp byteshuffle ccittfax3 ccittfax4 ccittrle dds dicomrle eer
    exr float24 floatpred gif heif htj2k jpeg jpeg2k jpegxl jpegxr jpegxs lerc ljpeg meshopt
    packints pcodec pixarlog plio png rcomp rgbe spng sz3 tga tiff ultrahdr wavpack webp wic
"""
_BYTES_BYTES = """
    aec blosc blosc2 brotli bz2 checksum chunked deflate isal lz4 lz4f lz4h5 lzf lzfse lzham lzma
    lzo lzw openzl packbits pglz snappy zlib zlibng zopfli zstd
"""

#: The kinds of the codecs by their names in v3, as imagecodecs registers them with zarr-python.
KINDS: Mapping[str, Kind] = {
    _PREFIX + name: kind
    for names, kind in (
        (_ARRAY_ARRAY, Kind.ARRAY_ARRAY),
        (_ARRAY_BYTES, Kind.ARRAY_BYTES),
        (_BYTES_BYTES, Kind.BYTES_BYTES),
    )
    for name in names.split()
}
