"""The folders are layers: each imports only those above it, and there are no cycles."""

import ast
import re
import sys
from functools import cache
from pathlib import Path

import zarrdask

ROOT = Path(zarrdask.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
#: From the top down. docs/contributing.md draws it.
LAYERS = [
    *("packages", "other_names", "errors", "config", "system", "compliance", "extension"),
    *("display", "grids", "indexing", "dtypes", "storage", "runtime", "codecs", "plan", "metadata"),
    *("chunks", "hierarchy", "nodes", "execution", "graph", "rewrite", "verification"),
    *("conventions", "pyramids", "xarray", "compat", "cli"),
    *("register", "testing", "__init__"),
]
RANK = {name: rank for rank, name in enumerate(LAYERS)}
DASK = {"execution", "graph", "rewrite", "verification", "pyramids", "xarray", "compat"}
DISTRIBUTED = {
    "execution.client",
    "execution.compute",
    "execution.counter",
    "execution.executor",
    "execution.locks",
    "rewrite.cluster",
    "runtime.serialize",
}


def folder(module):
    """Return the layer that a module belongs to: a folder, or a module of the root."""
    return module.split(".")[1] if "." in module else "__init__"


def name_of(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {name_of(path): path for path in MODULES}


@cache
def parsed(name):
    return ast.parse(NAMES[name].read_text())


def walk(node, kinds):
    """Yield the nodes of a tree but those below ``if TYPE_CHECKING:``, which nobody imports."""
    left = [node]
    while left:
        node = left.pop()
        if not (isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING"):
            yield node
            left.extend(child for child in ast.iter_child_nodes(node) if isinstance(child, kinds))


def _called(function):
    """Return the last name of what is called: `import_module` of ``importlib.import_module``."""
    return getattr(function, "attr", getattr(function, "id", ""))


@cache
def imports(name):
    """Return all modules that a module imports, also within functions and by `import_module`."""
    modules = set()
    # Calls are in expressions, which most modules need not be searched for.
    calls = re.search(r"import\w*\(", NAMES[name].read_text())
    for node in walk(
        parsed(name), ast.AST if calls else (ast.stmt, ast.excepthandler, ast.match_case)
    ):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: a relative import"
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            modules |= (whole & NAMES.keys()) or {node.module}
        elif isinstance(node, ast.Call) and "import" in _called(node.func):
            modules |= {a.value for a in node.args if isinstance(a, ast.Constant)}
    return modules


def test_a_module_imports_only_layers_above_it():
    # The names of `zarrdask` itself are loaded when they are asked for.
    assert not [
        f"{name} imports {other}"
        for name in NAMES
        for other in imports(name) & NAMES.keys() - {"zarrdask"}
        if RANK[folder(other)] > RANK[folder(name)]
    ]


def test_there_are_no_cycles():
    done = set()

    def visit(name, trail):
        assert name not in trail, " -> ".join([*trail, name])
        if name not in done:
            for other in imports(name) & NAMES.keys() - {"zarrdask"}:
                visit(other, (*trail, name))
            done.add(name)

    for name in NAMES:
        visit(name, ())


def test_dask_and_zarr_python_are_imported_in_their_places_only():
    for name in NAMES:
        heads = {module.split(".")[0] for module in imports(name) if module}
        # Both load it on demand.
        if name not in {"zarrdask.storage.zarrdask_store", "zarrdask.compat.rechunker"}:
            assert "zarr" not in heads, name
        if name == "zarrdask.config":
            # The settings live in Dask's configuration, which is loaded when one is asked for.
            heads -= {"dask"}
        if folder(name) not in DASK:
            assert "dask" not in heads, name
        if name.removeprefix("zarrdask.") not in DISTRIBUTED:
            assert "distributed" not in heads, name


def test_config_loads_dask_on_demand_only():
    top = [n for n in parsed("zarrdask.config").body if isinstance(n, ast.Import | ast.ImportFrom)]
    assert not any(" dask" in ast.unparse(node) for node in top)


def test_the_root_holds_what_is_above_and_below_the_folders_only():
    assert {p.stem for p in ROOT.glob("*.py")} == {
        *("__init__", "packages", "other_names", "errors", "config", "system"),
        *("compliance", "extension"),
        "register",
    }


#: Packages that only the main thread imports: of the command line, and of notebooks.
ONE_THREAD = {"rich", "IPython"}


def _other_packages(node):
    """Return the modules of other packages that a statement imports."""
    if isinstance(node, ast.ImportFrom):
        modules = [node.module]
    elif isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    elif isinstance(node, ast.Call) and _called(node.func) == "import_module":
        modules = [a.value for a in node.args if isinstance(a, ast.Constant)]
    else:
        return []
    ours = {"zarrdask", *ONE_THREAD, *sys.stdlib_module_names}
    return [module for module in modules if module.partition(".")[0] not in ours]


def _early(node, imported):
    """Yield the modules that a tree imports before the packages that contain them."""
    imported = set(imported)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and getattr(child.test, "id", None) == "TYPE_CHECKING":
            continue
        for module in _other_packages(child):
            package = module.partition(".")[0]
            if module == package:
                imported.add(package)
            elif package not in imported:
                yield module
        yield from _early(child, imported)


def test_packages_are_imported_before_their_modules():
    # If one thread imports a module and another its package, Python may return modules that are
    # partially initialized. A parent package of ours is imported first; `load_module` does so too.
    for name in NAMES:
        parents = [parent for parent in NAMES if name.startswith(f"{parent}.")]
        imported = {
            module
            for parent in parents
            for node in parsed(parent).body
            if isinstance(node, ast.Import)
            for module in _other_packages(node)
        }
        early = [*_early(parsed(name), imported)]
        assert not early, f"{name}: {early}"
