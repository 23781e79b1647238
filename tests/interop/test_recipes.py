"""Pages whose code needs packages that only these tests have print what they show."""

import pytest

from tests.test_examples import NEEDS_OTHERS, run_page


@pytest.mark.parametrize("page", sorted(NEEDS_OTHERS), ids=lambda page: page.name)
def test_page(page, own_registries, tmp_path, monkeypatch, capsys):
    run_page(page, tmp_path, monkeypatch, capsys)
