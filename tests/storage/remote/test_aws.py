"""Regions of buckets, which are looked up by requests to S3."""

from email.message import Message
from http.client import BadStatusLine
from urllib.error import HTTPError, URLError

import pytest

from zarrdask.storage.remote import aws
from zarrdask.storage.remote.obstore.obstore_errors import NoCounterpartError


@pytest.fixture
def asked(monkeypatch):
    """Answer as S3 does, and return the URLs of the requests."""
    urls, headers = [], Message()
    headers["x-amz-bucket-region"] = "eu-west-3"

    class Opener:
        def open(self, request, timeout):
            urls.append(f"{request.get_method()} {request.full_url}")
            if "offline" in request.full_url:
                raise URLError("unknown host")
            if "proxy" in request.full_url:
                raise BadStatusLine("welcome")
            raise HTTPError(request.full_url, 403, "Forbidden", headers, None)

    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_CA_BUNDLE", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(aws, "build_opener", lambda *_: Opener())
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    aws.region_of.cache_clear()
    return urls


def test_the_region_of_a_bucket_is_looked_up_once(asked, monkeypatch):
    for _ in range(2):
        assert aws.complete("bucket", {}, None) == {"region": "eu-west-3"}
    assert asked == ["HEAD https://s3.us-east-1.amazonaws.com/bucket"]
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    assert aws.complete("other", {}, None) == {"region": "eu-west-3"}
    assert asked[1:] == ["HEAD https://s3.us-west-2.amazonaws.com/other"]


def test_a_region_or_server_that_the_user_names_needs_no_request(asked):
    for config in ({"region": "us-west-1"}, {"endpoint": "http://127.0.0.1:1"}):
        assert aws.complete("bucket", config, None) == config
    assert asked == []


def test_without_an_answer_the_region_is_that_of_the_user(asked, monkeypatch):
    assert aws.complete("offline", {}, None) == {}
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    for bucket in ("offline", "proxy"):
        assert aws.complete(bucket, {}, None) == {"region": "us-west-2"}


def test_obstore_has_no_servers_in_china(asked):
    with pytest.raises(NoCounterpartError, match="China"):
        aws.complete("bucket", {"region": "cn-north-1"}, None)
