"""Stores whose operations on a value are requests, which one method sends."""

from abc import abstractmethod
from functools import cache, partial
from typing import cast

from zarrdask.formats.byte_ranges import Buffer, Entry, ObjectVersion, Part, Tag, Version
from zarrdask.storage.base import Store
from zarrdask.storage.request import ANY, Absent, Answer, Form, Meaning, Request, Send, ask


class RequestStore(Store):
    """A store whose operations on a value are requests: a subclass implements `send`."""

    _counts_requests = True

    @abstractmethod
    def send(self, request: Request) -> Answer:
        """Send a request, and return the answer."""

    # ---- reading

    def get(self, key: str) -> bytes | None:
        value = self.send(Request("GET", key, form=Form.BYTES)).value
        return None if value is None else bytes(value)

    def get_range(self, key: str, start: int, length: int | None = None) -> Buffer | None:
        part: Buffer | None = self.send(Request("GET", key, start, length)).value
        return part

    def get_part(self, key: str, start: int, length: int, tag: Tag | None = None) -> Part | None:
        request = Request("GET", key, start, length, if_match=tag, form=Form.PART)
        answer = self.send(request)
        return None if answer.value is None else Part(answer.value, answer.size or 0, answer.tag)

    def get_if_changed(
        self, key: str, tag: Tag | None, start: int = 0, length: int | None = None
    ) -> Version:
        request = Request("GET", key, start, length, unless=tag, form=Form.VERSION)
        answer = self.send(request)
        return Version(answer.value, answer.size or 0, answer.tag)

    def get_version(
        self, key: str, version: ObjectVersion, start: int = 0, length: int | None = None
    ) -> Buffer | None:
        part: Buffer | None = self.send(Request("GET", key, start, length, version=version)).value
        return part

    def get_tagged(self, key: str) -> tuple[Buffer | None, Tag | None]:
        answer = self.send(Request("GET", key, form=Form.TAGGED))
        return answer.value, answer.tag

    def stat(self, key: str) -> Entry | None:
        answer = self.send(Request("HEAD", key))
        is_missing = answer.meaning is Meaning.MISSING
        return None if is_missing else Entry(key, answer.size, answer.tag or "", answer.value)

    # ---- writing

    def set(self, key: str, value: Buffer) -> None:
        self.send(Request("PUT", key, value=value))

    def create(self, key: str, value: Buffer) -> bool:
        request = Request("PUT", key, unless=ANY, value=value)
        return self.send(request).meaning is not Meaning.NOT_MET

    def swap(self, key: str, value: Buffer, tag: Tag | None) -> bool:
        condition = Absent.ABSENT if tag is None else tag
        request = Request("PUT", key, if_match=condition, value=value)
        return self.send(request).meaning is not Meaning.NOT_MET

    def erase(self, key: str) -> None:
        self.send(Request("DELETE", key))


def sender(store: Store) -> Send:
    """Return the function that sends requests to a store."""
    return cast("RequestStore", store).send if _has_send(type(store)) else partial(ask, store)


@cache
def _has_send(kind: type[Store]) -> bool:
    """Whether a class sends all requests by `send`: one of a user may override operations."""
    return issubclass(kind, RequestStore) and kind.__module__.startswith("zarrdask.")
