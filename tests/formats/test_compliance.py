"""Deviations from the rules are errors, warnings, or collected."""

import warnings

import pytest

from zarrdask.errors import ComplianceWarning, MetadataError
from zarrdask.formats.compliance import (
    already_reported,
    collect_deviations,
    is_strict,
    report_deviation,
    strictness,
    warn_compliance,
)


def report(*, warn=True):
    report_deviation("A-1", "a deviation", key="shape", found=5, warn=warn)


@pytest.mark.parametrize("is_set", [False, True])
def test_the_innermost_block_says_what_is_strict(setting, is_set):
    setting({"zarrdask.strict": is_set})
    assert is_strict() is is_set
    with strictness(not is_set):
        assert is_strict() is not is_set
        with strictness(is_set), strictness(None):
            assert is_strict() is is_set
        assert is_strict() is not is_set
    assert is_strict() is is_set


def test_a_deviation_is_an_error_in_strict_mode():
    with strictness(True), pytest.raises(MetadataError, match=r"a deviation \(A-1\)") as caught:
        report(warn=False)
    assert (caught.value.key, caught.value.found) == ("shape", 5)


def test_a_doubtful_deviation_is_a_warning():
    with pytest.warns(ComplianceWarning, match="A-1"):
        report()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report(warn=False)


def test_warnings_are_given_once():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with strictness(None, quiet=True):
            assert already_reported()
            with strictness(False):
                report()
                warn_compliance("text")
    assert not already_reported()


def test_deviations_are_collected_whatever_the_mode():
    with warnings.catch_warnings(), strictness(True), collect_deviations() as deviations:
        warnings.simplefilter("error")
        report()
        report(warn=False)
        warn_compliance("text")
    assert [each.count("A-1") for each in deviations] == [1, 1, 0]
    assert deviations[2] == "text"
