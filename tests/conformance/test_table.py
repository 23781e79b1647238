"""Each rule has a test or a reason why not, and the page in docs/ tells it."""

import pytest

from tests.conformance import table
from tests.conformance.rules import ADVICE, RULES, SECTIONS, rule_of, section_of

SIZES = {"A": 76, "B": 88, "C": 86, "S": 27, "X-A": 7, "X-B": 19, "X-C": 14}


@pytest.fixture(scope="module")
def grouped():
    """The tests of each rule."""
    return table.by_rule(table.tests())


def test_the_list_of_rules_is_complete():
    assert list(SIZES) == list(SECTIONS)
    expected = [
        f"{section}{'' if section.startswith('X') else '-'}{number}"
        for section, size in SIZES.items()
        for number in range(1, size + 1)
    ]
    assert list(RULES) == expected
    assert {section_of(rule) for rule in RULES} == set(SECTIONS)
    assert all(RULES.values())


def test_every_rule_has_a_test_or_is_advice(grouped):
    missing = [rule for rule in RULES if table.state(rule, grouped, ADVICE) == table.MISSING]
    assert not missing


def test_no_rule_is_both_advice_and_tested(grouped):
    assert not set(ADVICE) & set(grouped)


def test_every_test_names_a_rule_that_there_is():
    assert [test for test in table.tests() if rule_of(test.function) not in RULES] == []


def test_advice_is_about_rules_and_has_a_reason():
    assert set(ADVICE) <= set(RULES)
    assert all(ADVICE.values())


def test_the_page_is_up_to_date(grouped):
    assert table.TARGET.read_text() == table.render(grouped), (
        "run: python -m tests.conformance.table"
    )


def test_tests_are_found_by_the_rule_in_their_name():
    source = "class TestA:\n def test_a31_x(self): pass\ndef test_xc10_y(): pass\ndef other(): 0\n"
    names = sorted(table.functions(source))
    assert names == ["test_a31_x", "test_xc10_y"]
    grouped = table.by_rule(table.Test("f.py", name) for name in [*names, "test_it", "test_b999"])
    assert set(grouped) == {"A-31", "X-C10", "B-999"}


def test_the_page_tells_what_is_tested_advice_or_missing():
    grouped = {"A-1": [table.Test("test_a.py", "test_a1_keys")]}
    page = table.render(grouped, {"A-2": "nobody can"})
    assert f"{len(RULES)} rules: 1 tested, 1 advice, {len(RULES) - 2} missing." in page
    assert "[test_a1_keys](../tests/conformance/test_a.py) | tested |" in page
    assert "| advice: nobody can |" in page
    assert page.count("| missing |") == len(RULES) - 2
    assert all(f"| {rule} | {title} |" in page for rule, title in RULES.items())
