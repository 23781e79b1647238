"""What tests of several stores need."""

import os

import pytest

from zarrdask.storage.remote import aws


@pytest.fixture
def without_cloud_settings(monkeypatch):
    """Remove the user's settings of clouds, and the look-up of regions, which needs the network."""
    for name in tuple(os.environ):
        if name.startswith(("AWS_", "AZURE_", "FSSPEC_", "GOOGLE_", "STORAGE_EMULATOR_")):
            monkeypatch.delenv(name)
    monkeypatch.setattr(aws, "bucket_region", lambda _bucket, _region: None)
