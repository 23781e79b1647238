"""Any store answers a request: the method for it is called."""

import pytest

from tests.covering import for_each
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.request import (
    ANY,
    DONE,
    MISSING,
    NOT_MET,
    Absent,
    Answer,
    Form,
    Meaning,
    Request,
    ask,
)


@pytest.fixture
def store():
    store = MemoryStore()
    store.set("a", b"12345")
    return store


@for_each("form", [Form.BYTES, Form.BUFFER, Form.TAGGED])
def test_a_missing_value_is_missing_in_every_form(form):
    store = MemoryStore()
    if form is not Form.TAGGED or store.capabilities.compare_and_swap:
        assert ask(store, Request("GET", "b", form=form)) == MISSING
    assert ask(store, Request("HEAD", "b")) == MISSING


def test_a_range_is_read(store):
    assert bytes(ask(store, Request("GET", "a", 1, 2)).value) == b"23"
    assert bytes(ask(store, Request("GET", "a", -2)).value) == b"45"


def test_the_size_of_a_value(store):
    assert ask(store, Request("HEAD", "a")).size == 5


def test_a_version_that_is_unchanged_says_so(store):
    first = ask(store, Request("GET", "a", form=Form.VERSION))
    assert (bytes(first.value), first.meaning) == (b"12345", None)
    again = ask(store, Request("GET", "a", form=Form.VERSION, unless=first.tag))
    assert again.meaning is Meaning.UNCHANGED


def test_a_value_is_created_once(store):
    request = Request("PUT", "b", unless=ANY, value=b"1")
    assert ask(store, request) == DONE
    assert ask(store, request) == NOT_MET
    assert store.get("b") == b"1"


def test_a_value_is_stored_and_erased(store):
    assert ask(store, Request("PUT", "a", value=b"2")) == DONE
    assert store.get("a") == b"2"
    assert ask(store, Request("DELETE", "a")) == DONE
    assert store.get("a") is None


def test_a_conditional_write_passes_its_tag_on():
    class Swapping(MemoryStore):
        def swap(self, key, value, tag):
            swapped.append((key, value, tag))
            return tag is None

    swapped = []
    store = Swapping()
    request = Request("PUT", "a", value=b"1", if_match=Absent.ABSENT)
    assert ask(store, request) == DONE
    assert ask(store, request._replace(if_match="tag")) == NOT_MET
    assert swapped == [("a", b"1", None), ("a", b"1", "tag")]


def test_a_call_gets_the_store(store):
    request = Request("LIST", "", call=lambda each: sorted(each.list()))
    assert ask(store, request) == Answer(["a"])
    assert (request.is_read, Request("PUT", "a").is_read) == (True, False)
