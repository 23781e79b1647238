"""Documents that are split without parsing the documents in them."""

import json
from random import Random

import pytest

from tests.covering import for_each
from zarrdask.formats.metadata.unparsed import split_members

TEXTS = ("", "a", '"', "\\", '\\"', "{", "}}", '"{', "é€", "a/b", "metadata", "\n", "\\\\")


def value(random, depth=3):
    kind = random.randrange(7 if depth else 5)
    if kind == 5:
        return [value(random, depth - 1) for _ in range(random.randrange(3))]
    if kind == 6:
        return some(random, depth - 1)
    return [None, True, random.randrange(99), 1.5, random.choice(TEXTS)][kind]


def some(random, depth):
    names = random.sample(TEXTS, random.randrange(4))
    return {name: value(random, depth) for name in names}


def test_members_are_the_values_that_parsing_returns():
    random, split = Random(5), 0
    for _ in range(200):
        members = {f"{random.choice(TEXTS)}{n}": some(random, 2) for n in range(3)}
        document = some(random, 3) | {"held": some(random, 2) | {"metadata": members}}
        document |= some(random, 3)
        text = json.dumps(
            document,
            indent=random.choice([None, 2]),
            ensure_ascii=random.choice([True, False]),
            separators=random.choice([None, (",", ":"), (" ,\t", " : ")]),
        )
        parts = split_members(text.encode(), ("held", "metadata"))
        if parts is not None:
            rest, unparsed = parts
            assert json.loads(rest)["held"].pop("metadata") == {}
            assert {name: json.loads(data) for name, data in unparsed.items()} == members
            split += 1
    assert split > 150


@for_each(
    "text",
    [
        '{"held": {"a": {}, "b": 1}}',
        '{"held": {"a": {}, "b": [{}]}}',
        '{"held": {"a": {}, "a": {"x": 1}}}',
        '{"held": {"a": 1, "b": {}, "a": {"x": 1}}}',
        '{"held": {"a": {}}, "held": {"a": {"x": 1}}}',
        '{"held": [{"a": {}}]}',
        '{"h\\u0065ld": {"a": {}}}',
        '{"x": {"held": {"a": {}}}}',
        '{"x\\"held": {"a": {}}}',
        '{"held": {"a": {}}',
        '{"held": {"a": {}}}}',
        '{"held": {"a": {}}} {"x": {}}',
        '{"held": {"a": {} "b": {}}}',
        "}{",
        "",
        "[]",
    ],
)
def test_other_documents_have_to_be_parsed(text):
    assert split_members(text.encode(), ("held",)) is None


def test_other_encodings_have_to_be_parsed():
    text = '{"held": {"a": {}}}'
    assert split_members(text.encode(), ("held",)) is not None
    assert split_members(text.encode("utf-16"), ("held",)) is None


def test_members_are_a_mapping():
    _, members = split_members(b'{"held": {"a": {"b": {}}, "c": {}}}', ("held",))
    assert (list(members), len(members), members["a"]) == (["a", "c"], 2, b'{"b": {}}')
    with pytest.raises(KeyError):
        members["b"]
