"""The oldest dependencies, with which tests run, too, are those that the package asks for."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

import zarrdask

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: What the extra `test` takes of the other extras.
EXTRAS = ("cli", "fast", "http", "ml_dtypes", "obstore", "parquet", "pcodec", "xarray", "zfp")
_BOUND = re.compile(r"([\w-]+)(?:\[.*\])?>=([\d.]+)")
#: Releases of Dask and distributed that have CVE-2026-23528.
VULNERABLE = ["2025.9.1", "2025.10.0", "2025.11.0", "2025.12.0", "2026.1.0"]
#: Later releases in which it is mended.
MENDED = ["2025.9.2", "2025.9.3", "2026.1.1", "2026.1.3", "2026.8.0"]


def bounds():
    """Return the least release of each dependency, as a tuple of numbers."""
    texts = [*PROJECT["dependencies"]]
    for extra in EXTRAS:
        texts += PROJECT["optional-dependencies"][extra]
    return dict(map(bound, texts))


def bound(text):
    name, release = _BOUND.match(text).groups()
    return name, numbers(release)


def numbers(release):
    found = [int(part) for part in release.split(".")]
    return (*found, *[0] * (3 - len(found)))


def test_the_extra_for_tests_takes_these_extras():
    [own] = [t for t in PROJECT["optional-dependencies"]["test"] if t.startswith("zarrdask")]
    assert own == f"zarrdask[{','.join(EXTRAS)}]"


def test_the_extra_for_everything_takes_all_extras_for_users():
    own = {"all", "test", "interop", "docs", "bench", "release"}
    extras = {*PROJECT["optional-dependencies"]} - own
    assert PROJECT["optional-dependencies"]["all"] == [f"zarrdask[{','.join(sorted(extras))}]"]


def test_the_conda_recipe_has_the_same_dependencies():
    recipe = (ROOT / "conda" / "recipe.yaml").read_text()
    run = recipe.partition("  run:\n")[2].partition("  run_constraints:")[0]
    stated = dict(re.findall(r"^    - ([\w-]+) >=([\d.]+)(?:,.*)?$", run, re.MULTILINE))
    texts = [text for text in PROJECT["dependencies"] if ";" not in text]
    texts += PROJECT["optional-dependencies"]["cli"]
    expected = dict(map(bound, texts))
    expected["dask-core"] = expected.pop("dask")  # conda's name of Dask without its dependencies
    assert {name: numbers(release) for name, release in stated.items()} == expected


def test_vulnerable_releases_of_dask_are_left_out():
    recipe = (ROOT / "conda" / "recipe.yaml").read_text()
    for text in PROJECT["dependencies"]:
        requirement = Requirement(text)
        if requirement.name in ("dask", "distributed"):
            assert not [*requirement.specifier.filter(VULNERABLE)]
            assert [*requirement.specifier.filter(MENDED)] == MENDED
            left_out = ",".join(sorted(str(requirement.specifier).split(","), reverse=True))
            stated = re.search(rf"^    - {requirement.name}(?:-core)? (.*)$", recipe, re.MULTILINE)[
                1
            ]
            assert sorted(stated.split(","), reverse=True) == left_out.split(",")


def test_the_oldest_requirements_are_the_least_that_are_allowed():
    text = (ROOT / "tests" / "oldest-requirements.txt").read_text()
    pinned = dict(re.findall(r"^([\w-]+)==([\d.]+)$", text, re.MULTILINE))
    assert {name: numbers(release) for name, release in pinned.items()} == bounds()


def test_the_readme_names_the_oldest_python_and_dependencies():
    readme = (ROOT / "README.md").read_text()
    [line] = re.findall(r"^Tested on .*?(?:\n\n)", readme, re.MULTILINE | re.DOTALL)
    line = " ".join(line.split())
    oldest = line.partition(";")[0]
    assert f"Python {PROJECT['requires-python'].removeprefix('>=')}," in oldest
    for name, title in (("dask", "Dask"), ("numpy", "NumPy"), ("numcodecs", "numcodecs")):
        release = re.search(rf"\b{title} ([\d.]+)", oldest)[1]
        assert numbers(release) == bounds()[name], title


def test_the_version_is_the_same_everywhere():
    recipe = (ROOT / "conda" / "recipe.yaml").read_text()
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r'^  version: "(.*)"$', recipe, re.MULTILINE)[1] == zarrdask.__version__
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == zarrdask.__version__
