"""Settings of AWS in the environment and in profiles, which both packages for S3 respect."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from s3fs import S3FileSystem

import zarrdask
from tests.interop.s3 import VALUES, Bucket, Service, serving
from zarrdask.errors import StoreError
from zarrdask.storage.remote import aws
from zarrdask.storage.resolve import resolve

EXPECTED = {"auto": "obstore", "fsspec": "fsspec"}


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with serving() as service:
        yield service


@pytest.fixture(params=EXPECTED)
def package(request: pytest.FixtureRequest, setting: Any) -> str:
    setting({"zarrdask.remote": request.param})
    return EXPECTED[request.param]


@pytest.fixture
def bucket(service: Service) -> Bucket:
    return service.new_bucket()


def forget() -> None:
    """Forget the settings that were read, of which a process keeps what it finds first."""
    aws.session_of.cache_clear()
    aws.credentials_of.cache_clear()
    S3FileSystem.clear_instance_cache()


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that writes the file of profiles; no other setting is in effect."""
    for name in tuple(os.environ):
        if name.startswith(("AWS_", "FSSPEC_")):
            monkeypatch.delenv(name)
    file = tmp_path / "config"
    monkeypatch.setenv("AWS_CONFIG_FILE", str(file))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    forget()
    return lambda text: file.write_text(text) and None


def write_and_read(bucket: Bucket, **options: Any) -> Any:
    """Write and read an array, and return the last request."""
    how = {"storage_options": options}
    zarrdask.to_zarr(da.from_array(VALUES, chunks=(7, 6)), bucket.url, "x", overwrite=True, **how)
    bucket.log.taken()
    z = zarrdask.open_array(bucket.url, "x", **how)
    np.testing.assert_array_equal(z[...], VALUES)
    return bucket.log.taken()[-1]


KEYS = "region = eu-west-1\naws_access_key_id = {0}\naws_secret_access_key = {0}secret\n"


def test_a_profile_has_keys_a_region_and_an_endpoint(package, configure, bucket):
    endpoint = f"endpoint_url = {bucket.options['endpoint_url']}\n"
    configure(f"[profile mine]\n{KEYS.format('mykey')}{endpoint}")
    last = write_and_read(bucket, profile="mine")
    assert "Credential=mykey/" in last.authorization
    assert "/eu-west-1/s3/" in last.authorization
    assert resolve(bucket.url, {"profile": "mine"}).identity.opened_by == package


def test_the_profile_may_be_a_variable(package, configure, bucket, monkeypatch):
    services = f"[services here]\ns3 =\n  endpoint_url = {bucket.options['endpoint_url']}\n"
    wrong = "endpoint_url = http://127.0.0.1:1\nservices = here\n"
    configure(f"[profile other]\n{KEYS.format('otherkey')}{wrong}{services}")
    monkeypatch.setenv("AWS_PROFILE", "other")
    assert "Credential=otherkey/" in write_and_read(bucket).authorization
    assert resolve(bucket.url).identity.opened_by == package


def test_options_come_before_variables_and_these_before_the_default_profile(
    package, configure, bucket, monkeypatch
):
    configure(f"[default]\n{KEYS.format('filekey')}endpoint_url = http://127.0.0.1:1\n")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", bucket.options["endpoint_url"])
    assert "Credential=filekey/" in write_and_read(bucket).authorization
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "variable")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    forget()
    last = write_and_read(bucket)
    assert "Credential=variable/" in last.authorization
    last = write_and_read(bucket, key="option", secret="secret")
    assert "Credential=option/" in last.authorization
    assert package == resolve(bucket.url).identity.opened_by


def test_anonymous_requests_are_not_signed_and_a_requester_pays(package, configure, bucket):
    configure(f"[default]\n{KEYS.format('filekey')}")
    endpoint = {"endpoint_url": bucket.options["endpoint_url"]}
    bucket.client.put_bucket_acl(Bucket=bucket.url[5:], ACL="public-read-write")
    assert write_and_read(bucket, anon=True, **endpoint).authorization == ""
    for anonymous in (False, None):
        last = write_and_read(bucket, anon=anonymous, **endpoint)
        assert "Credential=filekey/" in last.authorization
    for value in ("true", "false"):
        with pytest.raises(
            StoreError, match=r"'anon'.* must be True or False; found '(true|false)'"
        ):
            zarrdask.open_array(bucket.url, "x", storage_options={"anon": value, **endpoint})
    assert write_and_read(bucket, requester_pays=True, **endpoint).payer == "requester"
    assert resolve(bucket.url, {"requester_pays": True, **endpoint}).identity.opened_by == package


PROCESS = """
number=$(($(cat "$1" 2>/dev/null || echo 0) + 1))
echo $number > "$1"
printf '{"Version": 1, "AccessKeyId": "key%d", "SecretAccessKey": "secret", ' $number
printf '"SessionToken": "token", "Expiration": "%s"}' $(date -u -d "1 minute" +%FT%TZ)
"""


def read(store: Any) -> float:
    return float(zarrdask.open_array(store, "x")[...].sum())


def test_credentials_that_expire_are_renewed_also_on_workers(
    package, configure, bucket, tmp_path, monkeypatch
):
    """As those of a single sign-on: here a program returns them, for a minute."""
    (tmp_path / "process.sh").write_text(PROCESS)
    command = f"sh {tmp_path}/process.sh {tmp_path}/count"
    endpoint = f"endpoint_url = {bucket.options['endpoint_url']}\n"
    configure(f"[profile mine]\ncredential_process = {command}\n{endpoint}")
    monkeypatch.setattr(aws, "ASK_AGAIN", 0 * aws.ASK_AGAIN)
    write_and_read(bucket, profile="mine")
    renewed = int((tmp_path / "count").read_text())
    assert renewed > 2
    store = resolve(bucket.url, {"profile": "mine"})
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(read, store).result() == VALUES.sum()
    assert int((tmp_path / "count").read_text()) > renewed
    assert store.identity.opened_by == package


def test_a_profile_that_does_not_exist(package, configure, bucket):
    configure("[default]\n")
    with pytest.raises(StoreError, match="nobody"):
        zarrdask.open(bucket.url, storage_options={"profile": "nobody"})


def test_no_credentials(package, configure, bucket):
    configure(f"[default]\nendpoint_url = {bucket.options['endpoint_url']}\n")
    with pytest.raises(StoreError, match=r"redentials.*storage_options=\{'anon': True\}"):
        zarrdask.open(bucket.url)


def test_settings_that_only_botocore_has(configure, bucket, setting):
    setting({"zarrdask.remote": "auto"})
    configure(f"[default]\n{KEYS.format('k')}s3 =\n  addressing_style = virtual\n")
    assert resolve(bucket.url).identity.opened_by == "fsspec"
    assert resolve(bucket.url, bucket.options).identity.opened_by == "obstore"
