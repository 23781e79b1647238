"""A plugin of pytest: rechunker's own tests test `zarrdask.compat.rechunker`."""

import numcodecs.blosc

# zarr-python 2 imports them from old releases of numcodecs, and uses them to read parts of chunks.
for _name in ("cbuffer_metainfo", "cbuffer_sizes"):
    vars(numcodecs.blosc).setdefault(_name, None)

from rechunker import api  # noqa: E402

from zarrdask.compat.rechunker import Rechunked, rechunk  # noqa: E402

#: The tests that are left out, and why.
LEFT_OUT = {
    "test_invalid_executor": "calls a private function",
    "test_parse_target_chunks_from_dim_chunks": "calls a function of the implementation",
    "test_get_dim_chunk": "calls a function of the implementation",
    "test_no_intermediate_fused": "looks into the plan: a list of Delayed",
    "test_rechunk_no_temp_dir_provided_error": "temporary objects are beside the target by default",
    "test_repr[Group]": "expects two passes, but with the buffers of a process one is enough",
    "test_repr[Dataset]": "as before",
}
#: Each combination of parameters writes 256 MB: of so many, the first ones and some others are run.
_MAX_CASES = 1


def pytest_configure(config):
    api.rechunk, api.Rechunked = rechunk, Rechunked


def pytest_collection_modifyitems(config, items):
    cases = {}
    for item in items:
        cases.setdefault(item.originalname, []).append(item)
    kept = []
    for name, each in cases.items():
        step = max(len(each) // _MAX_CASES, 1)
        # With an odd step, parameters that have two values have both.
        kept += [] if name in LEFT_OUT else each[:: step + 1 - step % 2]
    kept = [item for item in kept if item.name not in LEFT_OUT]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept
