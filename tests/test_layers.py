"""The stack: each module imports only layers above it; only graph/ knows Dask, nobody zarr."""

import ast
from functools import cache
from pathlib import Path

import pytest

import zarrdask

ROOT = Path(zarrdask.__file__).parent
# ARCHITECTURE.md, "Layers"; modules of one layer may import each other unless that makes a cycle.
LAYERS = [
    {"arguments", "errors", "config", "memory", "registry", "tolerance", "traces"},
    {"cuts", "definitions", "grids", "indexing", "dtypes", "keys", "rectilinear", "runs"},
    {"picture", "render", "storage", "codecs", "plan"},
    {"metadata"},
    {"formats"},
    {"consolidation", "implicit"},
    {"drafts"},
    {
        "census",
        "checks",
        "comparison",
        "hierarchy",
        "hints",
        "nested",
        "accessors",
        "casting",
        "attributes",
        "chains",
        "sizes",
        "conversion",
        "creation",
        "copying",
        "exchange",
        "fit",
        "chunkio",
        "chunkwrite",
        "locks",
        "losses",
        "mending",
        "nodes",
        "moving",
        "parallel",
        "journal",
        "resizing",
        "rewriting",
        "slots",
        "tiles",
        "staging",
        "stored",
        "upgrade",
    },
    {"array", "group", "opening"},
    {"graph"},
    {"api", "conventions", "testing", "extend", "xarray_", "cli", "__init__"},
]
# `Array.append` takes Dask arrays, too: only then it loads the code for them.
EXCEPTIONS = {("array.py", "zarrdask.graph.append")}
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
MODULES = sorted(ROOT.rglob("*.py"))


def parsed(path):
    return ast.parse(path.read_text())


@cache
def imports(path):
    """Return the modules that a file imports, also inside functions, and by `import_module`."""
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__"):
            found |= {a.value for a in node.args if isinstance(a, ast.Constant)}
    return found


def _called(call):
    return getattr(call.func, "id", getattr(call.func, "attr", None))


def part(path):
    """Return the part of the package that a file belongs to: the module or the folder."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def name_of(path):
    """Return a file's module name."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def own(path):
    """Return the modules of the package that a file imports at the top of the file."""
    names = {name_of(p) for p in MODULES}
    found = set()
    for node in parsed(path).body:
        if isinstance(node, ast.ImportFrom):
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= whole & names or {node.module} & names
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_imports_only_layers_above_it(path):
    assert part(path) in RANK, "a new part of the package needs its place in LAYERS"
    rank = RANK[part(path)]
    for name in imports(path):
        head, *rest = name.split(".")
        if (path.name, name) in EXCEPTIONS:
            continue
        if head == "zarrdask" and rest and rest[0] in RANK:
            assert RANK[rest[0]] <= rank, f"{path.name} imports {name}, which is below it"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_only_graph_imports_dask_and_nobody_zarr(path):
    heads = {name.split(".")[0] for name in imports(path)}
    assert "zarr" not in heads
    if part(path) == "config":
        # The settings live in Dask's configuration, which is loaded when one is asked for.
        assert "dask.config" in imports(path)
        assert "distributed" not in heads
    elif part(path) != "graph":
        assert not heads & {"dask", "distributed"}


def test_config_loads_dask_on_demand_only():
    assert own(ROOT / "config.py") <= {"zarrdask.errors"}
    top = parsed(ROOT / "config.py").body
    names = {a.name for n in top if isinstance(n, ast.Import) for a in n.names}
    names |= {n.module for n in top if isinstance(n, ast.ImportFrom)}
    assert not any(name.startswith("dask") for name in names)


def test_there_are_no_cycles():
    edges = {name_of(path): own(path) for path in MODULES if part(path) != "__init__"}
    done = set()

    def visit(name, trail):
        assert name not in trail, " -> ".join([*trail, name])
        if name not in done:
            for following in edges.get(name, ()):
                visit(following, (*trail, name))
            done.add(name)

    for name in edges:
        visit(name, ())


def test_no_module_asserts():
    for path in MODULES:
        found = [n.lineno for n in ast.walk(parsed(path)) if isinstance(n, ast.Assert)]
        assert not found, f"{path}: {found}"
