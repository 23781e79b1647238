"""The two dialects of the v3 draft."""

import pytest


@pytest.fixture(params=["v3-draft", "v3-draft-protocol"])
def zarr_format(request):
    return request.param
