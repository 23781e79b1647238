"""Errors as packages for remote stores raise them."""

from zarrdask.errors import StoreError


class HttpError(Exception):
    def __init__(self, status):
        super().__init__(status)
        self.status = status


class ClientError(Exception):
    def __init__(self, status, code="", headers=None):
        super().__init__(status)
        metadata = {"HTTPStatusCode": status, "HTTPHeaders": headers or {}}
        self.response = {"ResponseMetadata": metadata, "Error": {"Code": code}}


class OtherHttpError(Exception):
    """As Google's packages have it."""

    def __init__(self, code):
        super().__init__(code)
        self.code = code


class RequestError(Exception):
    """As the package requests has it: the response tells."""

    def __init__(self, status):
        super().__init__(status)
        self.response = HttpError(status)


class ServiceResponseError(Exception):
    """As Azure's packages have it."""


def with_headers(error, headers):
    """Return an error of aiohttp, which has the headers of the answer."""
    error.headers = headers
    return error


def behind(error):
    """Return an error of ours that was raised because of another."""
    found = StoreError("failed", key="a")
    found.__cause__ = error
    return found
