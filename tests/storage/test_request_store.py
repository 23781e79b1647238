"""The operations of a store as requests, which one method sends."""

import pytest

from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.request import ANY, Absent, Form, Request, ask
from zarrdask.storage.request_store import RequestStore, sender


class Sending(RequestStore):
    """A store that sends its requests to another one, and notes them."""

    def __init__(self):
        self.inner, self.sent = MemoryStore(), list[Request]()

    url = "sending://"

    def send(self, request):
        self.sent.append(request)
        return ask(self.inner, request)


@pytest.fixture
def store():
    store = Sending()
    store.inner.set("a", b"12345")
    return store


def test_reads_are_requests_of_their_form(store):
    assert store.get("a") == b"12345"
    assert bytes(store.get_range("a", 1, 2)) == b"23"
    assert store.get("b") is None
    assert store.stat("a").size == 5
    assert store.stat("b") is None
    forms = [(each.verb, each.form) for each in store.sent]
    assert forms[:2] == [("GET", Form.BYTES), ("GET", Form.BUFFER)]
    assert forms[3] == ("HEAD", Form.BUFFER)


def test_a_version_is_not_read_again(store):
    version = store.get_if_changed("a", None)
    assert bytes(version.value) == b"12345"
    assert store.get_if_changed("a", version.tag).is_unchanged
    assert store.sent[-1].unless == version.tag


def test_conditions_of_writes_are_part_of_the_request(store):
    store.set("b", b"1")
    assert not store.create("b", b"2")
    assert store.create("c", b"2")
    store.erase("b")
    assert store.inner.get("b") is None
    assert [(each.verb, each.unless) for each in store.sent] == [
        ("PUT", None),
        ("PUT", ANY),
        ("PUT", ANY),
        ("DELETE", None),
    ]


def test_a_swap_without_a_tag_is_for_an_absent_value(store):
    store.inner.swap = lambda key, value, tag: tag is None
    assert store.swap("d", b"1", None)
    assert not store.swap("d", b"1", "tag")
    assert [each.if_match for each in store.sent] == [Absent.ABSENT, "tag"]


def test_a_store_of_a_user_may_override_operations(store):
    store.get = lambda key: b"own"
    assert sender(store)(Request("GET", "a", form=Form.BYTES)).value == b"own"
    assert not store.sent
