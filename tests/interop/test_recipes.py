"""Pages whose code needs packages that only these tests have print what they show."""

import pytest
import zarr

from tests.test_examples import NEEDS_OTHERS, run_page


@pytest.mark.parametrize("page", sorted(NEEDS_OTHERS), ids=lambda page: page.name)
def test_page(page, own_registries, tmp_path, monkeypatch, capsys):
    # A page may leave another pipeline.
    path = zarr.config.get("codec_pipeline.path")
    with zarr.config.set({"codec_pipeline.path": path}):
        run_page(page, tmp_path, monkeypatch, capsys)
