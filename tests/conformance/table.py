"""The table of all rules and their tests: ``python -m tests.conformance.table`` writes it."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.conformance.rules import ADVICE, RULES, SECTIONS, rule_of, section_of

HERE = Path(__file__).parent
TARGET = HERE.parents[1] / "docs" / "conformance.md"
MISSING = "missing"

INTRODUCTION = """\
# Conformance

Every rule of the three formats in short form, and the tests that check it. Known deviations of real
writers from the rules are read, too; with `strict` they raise errors that name the rule.
`python -m tests.conformance.table` generates this page from the tests.
"""


class Test(NamedTuple):
    """A test function, by the name of its file."""

    file: str
    function: str


def functions(source: str) -> Iterator[str]:
    """Yield the names of the test functions and methods in a file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name


def tests() -> list[Test]:
    """Return the tests of this directory, but for those of the table itself."""
    return [
        Test(file.name, name)
        for file in sorted(HERE.glob("test_*.py"))
        if file.name != "test_table.py"
        for name in functions(file.read_text())
    ]


def by_rule(all_tests: Iterable[Test]) -> dict[str, list[Test]]:
    """Return the tests of each rule, whether there is such a rule or not."""
    grouped = defaultdict(list)
    for test in all_tests:
        rule = rule_of(test.function)
        if rule is not None:
            grouped[rule].append(test)
    return dict(grouped)


def state(rule: str, tested: Mapping[str, list[Test]], advice: Mapping[str, str]) -> str:
    """Return the state of a rule, as the table shows it."""
    if rule in advice:
        return f"advice: {advice[rule]}"
    return "tested" if tested.get(rule) else MISSING


def render(tested: Mapping[str, list[Test]], advice: Mapping[str, str] = ADVICE) -> str:
    """Return the page."""
    parts = [INTRODUCTION, _summary(tested, advice)]
    for section, title in SECTIONS.items():
        lines = [f"## {section}: {title}", "", "| rule | what it says | test | state |"]
        lines.append("|---|---|---|---|")
        for rule, text in RULES.items():
            if section_of(rule) == section:
                cells = (rule, text, _links(tested.get(rule, ())), state(rule, tested, advice))
                lines.append(f"| {' | '.join(cells)} |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _summary(tested: Mapping[str, list[Test]], advice: Mapping[str, str]) -> str:
    states = [state(rule, tested, advice).partition(":")[0] for rule in RULES]
    counts = [f"{states.count(name)} {name}" for name in ("tested", "advice", MISSING)]
    return f"{len(RULES)} rules: {', '.join(counts)}.\n"


def _links(rule_tests: Iterable[Test]) -> str:
    return "<br>".join(
        f"[{test.function}](../tests/conformance/{test.file})" for test in sorted(rule_tests)
    )


if __name__ == "__main__":
    TARGET.write_text(render(by_rule(tests())))
