"""Show docstrings as they are written, where griffe's parser of numpydoc departs from them.

griffe takes the first word of ``{"a", "b"}`` for the default, reads quoted words and enumerations
as Python expressions, and leaves "See Also" as one paragraph. Here a type is shown as it is
written, the default is taken from the signature, and "See Also" is a list of links.
"""

import re
from collections.abc import Iterator
from typing import Any

import griffe

_NOT_AN_EXPRESSION = re.compile(r"""["'{,-]""")
_DEFAULT = re.compile(r"(?:, optional|, default(?: |: |=).*)$")
_SEE_ALSO = re.compile(r"(?P<name>[\w.]+) : (?P<text>.*)")


class Numpydoc(griffe.Docstring):
    """A docstring whose parsed sections are corrected."""

    def parse(self, *args: Any, **kwargs: Any) -> list[griffe.DocstringSection]:
        """Parse the docstring into sections."""
        sections = super().parse(*args, **kwargs)
        for section in sections:
            if section.title == "See Also":
                section.value.contents = _links(section.value.contents, self.parent.package)
            elif isinstance(section.value, list):
                for item in section.value:
                    if isinstance(item, griffe.DocstringElement):
                        item.annotation = self._type(item)
                    if isinstance(item, griffe.DocstringParameter):
                        item.value = self._default(item.name)
        return sections

    def _type(self, item: Any) -> Any:
        """Return the type as it is written, or griffe's if that is an expression with links."""
        if name := re.escape(getattr(item, "name", "")):
            line = re.search(
                rf"^(?:.*, )?{name}(?:, .*)? : (?P<type>.+)$", self.value, re.MULTILINE
            )
            if line and _NOT_AN_EXPRESSION.search(line["type"]):
                return _DEFAULT.sub("", line["type"])
            return item.annotation
        text = str(item.annotation)
        return text.strip("()") if text.startswith("(") else item.annotation

    def _default(self, name: str) -> Any:
        """Return the default in the signature, if it says something to a reader, or None."""
        defaults = {p.name: p.default for p in self.parent.parameters}
        default = defaults.get(name)
        return None if name.startswith("*") or str(default).startswith("_") else default


class NumpydocExtension(griffe.Extension):
    """Use `Numpydoc` for all docstrings of a package."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Replace the docstrings of the members of the package."""
        for member in _members(pkg):
            if (docstring := member.docstring) is not None:
                member.docstring = Numpydoc(
                    docstring.value,
                    lineno=docstring.lineno,
                    endlineno=docstring.endlineno,
                    parent=member,
                    parser=docstring.parser,
                    parser_options=docstring.parser_options,
                )


def _members(parent: griffe.Object) -> Iterator[griffe.Object]:
    yield parent
    for member in parent.members.values():
        if not member.is_alias:
            yield from _members(member)


def _links(text: str, package: griffe.Module) -> str:
    """Return the lines ``name : text`` as a list, with a link for each public name."""
    return "\n".join(
        f"- {_link(line['name'], package)}: {line['text']}" for line in _SEE_ALSO.finditer(text)
    )


def _link(name: str, package: griffe.Module) -> str:
    path = name.removeprefix(f"{package.name}.")
    return f"[`{name}`][{package[path].canonical_path}]" if path in package.members else f"`{name}`"
