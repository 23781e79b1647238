"""Strategies: legal chains of codecs, as v3 metadata."""

from hypothesis import strategies as st

ORDERS = ["little", "big"]
COMPRESSORS = [
    {"name": "gzip", "configuration": {"level": 1}},
    {"name": "zstd", "configuration": {"level": 1, "checksum": True}},
    {"name": "zstd", "configuration": {"level": -3}},
    {
        "name": "blosc",
        "configuration": {
            "cname": "lz4",
            "clevel": 3,
            "shuffle": "bitshuffle",
            "blocksize": 0,
            "typesize": 2,
        },
    },
    {"name": "crc32c"},
]


def endian(order):
    return {"name": "bytes", "configuration": {"endian": order}}


@st.composite
def chains(draw, shape, depth=2):
    """A list of codecs for chunks of a shape: transposes, bytes or shards, compressors."""
    codecs = []
    for _ in range(draw(st.integers(0, 2))):
        order = draw(st.permutations(range(len(shape))))
        shape = tuple(shape[i] for i in order)
        codecs.append({"name": "transpose", "configuration": {"order": list(order)}})
    if depth and draw(st.booleans()):
        inner = tuple(draw(st.sampled_from(divisors(n))) for n in shape)
        index = [endian(draw(st.sampled_from(ORDERS)))]
        index += [{"name": "crc32c"}] * draw(st.integers(0, 1))
        configuration = {
            "chunk_shape": list(inner),
            "codecs": draw(chains(inner, depth - 1)),
            "index_codecs": index,
            "index_location": draw(st.sampled_from(["start", "end"])),
        }
        codecs.append({"name": "sharding_indexed", "configuration": configuration})
        most = 1
    else:
        codecs.append(endian(draw(st.sampled_from(ORDERS))))
        most = 3
    return codecs + draw(st.lists(st.sampled_from(COMPRESSORS), max_size=most))


def divisors(number):
    return [n for n in range(1, number + 1) if number % n == 0]
