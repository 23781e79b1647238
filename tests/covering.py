"""Many small cases as one test, and samples of the products of parameters."""

import functools
import inspect
from itertools import combinations, product

import pytest


def for_each(names, cases):
    """Run a test for each of its cases, as one test; the arguments are those of `parametrize`.

    pytest spends more on a test than most cases take. The cases share their fixtures: where each
    needs a fresh one, `parametrize` has to be used.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    cases = [case if len(names) > 1 else (case,) for case in cases]

    def decorate(test):
        @functools.wraps(test)
        def run(*args, **fixtures):
            for case in cases:
                case = dict(zip(names, case, strict=True))
                try:
                    test(*args, **fixtures, **case)
                except BaseException as error:
                    error.add_note(f"case: {case}")
                    raise

        signature = inspect.signature(test)
        others = [p for name, p in signature.parameters.items() if name not in names]
        run.__signature__ = signature.replace(parameters=others)
        return run

    return decorate


def covering(*, strength=2, indirect=(), **tables):
    """Parametrize a test with a sample of all cases: a covering array.

    Any two values of any two parameters are in one case at least (of `strength` 1, any value).

    Parameters
    ----------
    strength
        How many parameters are covered together.
    indirect
        The parameters that are fixtures.
    tables
        The values of each parameter, or a table of them by the names that stand in ids of tests.
    """
    tables = {name: _named(values) for name, values in tables.items()}
    cases = [
        pytest.param(*map(dict.get, tables.values(), case), id="-".join(case))
        for case in sample(product(*tables.values()), strength)
    ]
    return pytest.mark.parametrize(list(tables), cases, indirect=list(indirect))


def sample(cases, strength):
    """Return some of the cases: what values are together in any are together in one of them.

    >>> sample(product("ab", "ab", "ab"), 2)
    [('a', 'a', 'a'), ('a', 'b', 'b'), ('b', 'a', 'b'), ('b', 'b', 'a')]
    >>> sample(product("ab", "abc"), 1)
    [('a', 'a'), ('b', 'b'), ('a', 'c')]
    """
    left = {case: set(combinations(enumerate(case), strength)) for case in cases}
    missing = set().union(*left.values())
    chosen = []
    while missing:
        case = max(left, key=lambda case: len(left[case] & missing))
        missing -= left.pop(case)
        chosen.append(case)
    return chosen


def seeds(count):
    """Return the numbers of random cases for `parametrize`: a quarter of them is in the core."""
    slow = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(count // 4, count)]
    return [*range(count // 4), *slow]


def _named(values):
    if isinstance(values, dict):
        return values
    table = {getattr(value, "__name__", str(value)): value for value in values}
    if len(table) < len(values):
        raise ValueError(f"values with the same name: {values}; pass a table of names and values")
    return table
