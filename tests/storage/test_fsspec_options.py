"""Options of file systems of fsspec: those that are unknown are named."""

import fsspec

from zarrdask.storage.fsspec_options import not_an_option


def test_an_option_of_the_client_is_named():
    class Bucket(fsspec.AbstractFileSystem):
        def __init__(self, client_kwargs=None, cache_regions=False):
            super().__init__()

    error = not_an_option("region", "s3://b", Bucket)
    assert "client_kwargs={'region_name': ...}" in str(error)
    assert "cache_regions" not in str(error)
