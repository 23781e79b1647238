"""The rooms are layers: each imports only those below it, and there are no cycles."""

import ast
import re
import sys
from functools import cache
from pathlib import Path

import zarrdask

ROOT = Path(zarrdask.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
#: The rooms, from the bottom up, as docs/contributing.md draws them. Up to `parallel` they are the
#: kernel; those above are edges, which the kernel never imports.
ROOMS = [
    *("errors", "config"),
    *("display", "runtime", "formats", "storage", "arrays", "parallel"),
    *("tools", "xarray", "compat"),
    *("register", "testing", "__init__", "__main__"),
]
EDGES = {"tools", "xarray", "compat"}
RANK = {name: rank for rank, name in enumerate(ROOMS)}
#: The folders of a room, and of some rooms the modules beside them, import only those before them.
FOLDERS = {
    "formats": ("grids", "indexing", "dtypes", "codecs", "metadata"),
    "storage": (
        # The interface of stores, and the requests that it consists of.
        *("file_calls", "refusals", "identity", "capabilities", "counted_requests"),
        "concurrent_requests",
        *("value_parts", "base", "wrapper", "memory", "listing", "partial_access"),
        *("request", "request_store", "policy_store"),
        # Kinds of stores, and views of them.
        *("zarr", "local", "transfer", "locks", "cache", "remote", "zip", "references"),
        # What opens any of them, and what opens others by it.
        *("schemes", "resolve", "adapters", "snapshots"),
    ),
    "arrays": ("cancellation", "writers", "chunks", "hierarchy", "nodes", "samples"),
    "parallel": ("plan", "execution", "graph", "rewrite"),
    "tools": ("conventions", "verification", "pyramids", "synchronization", "cli"),
}
#: The most names that each edge takes from the kernel: what would have to be public if it were a
#: package of its own.
SEAMS = {
    "tools.verification": 96,
    "tools.conventions": 16,
    "tools.pyramids": 105,
    "tools.synchronization": 30,
    "tools.cli": 32,
    "xarray": 159,
    "compat": 29,
}
DISTRIBUTED = {
    "parallel.execution.client",
    "parallel.execution.compute",
    "parallel.execution.counter",
    "parallel.execution.executor",
    "parallel.execution.locks",
    "parallel.rewrite.cluster",
    "runtime.serialize",
}
#: The modules that import zarr-python, which nothing imports but zarr-python or users.
ZARR_PYTHON = {
    "zarrdask.storage.adapters.zarrdask_store",
    "zarrdask.compat.rechunker",
    "zarrdask.compat.zarr_pipeline",
}


def room(module):
    """Return the room that a module belongs to: a folder or a module of the root."""
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


def _own_imports():
    """Yield each module with each module of the package that it imports."""
    for name in NAMES:
        # The names of `zarrdask` itself are loaded when they are asked for.
        for other in sorted(imports(name) & NAMES.keys() - {"zarrdask"}):
            yield name, other


def test_a_room_imports_only_rooms_below_it():
    assert not [pair for pair in _own_imports() if RANK[room(pair[1])] > RANK[room(pair[0])]]


def test_the_kernel_imports_no_edge():
    kernel = {name for name in NAMES if RANK[room(name)] <= RANK["parallel"]}
    assert not [pair for pair in _own_imports() if pair[0] in kernel and room(pair[1]) in EDGES]


def test_a_folder_imports_only_those_before_it_in_its_room():
    for name, other in _own_imports():
        order = FOLDERS.get(room(name), ())
        inner, outer = ((*each.split("."), "", "")[2] for each in (name, other))
        if room(name) == room(other) and inner in order and outer in order:
            assert order.index(outer) <= order.index(inner), f"{name} imports {other}"


def test_all_that_is_in_a_room_is_in_its_order():
    for name, order in FOLDERS.items():
        inside = {path.stem for path in (ROOT / name).iterdir() if not path.name.startswith("__")}
        folders = {path.name for path in (ROOT / name).iterdir() if path.is_dir()} - {"__pycache__"}
        assert set(order) in (inside, folders), name


def _names_from_kernel(edge):
    """Return the names that an edge takes from the rooms of the kernel."""
    taken = set()
    for name in NAMES:
        if name.removeprefix("zarrdask.").startswith(edge):
            for node in walk(parsed(name), ast.AST):
                is_own = isinstance(node, ast.ImportFrom) and node.module.startswith("zarrdask.")
                if is_own and RANK["display"] <= RANK[room(node.module)] <= RANK["parallel"]:
                    taken |= {f"{node.module}.{alias.name}" for alias in node.names}
    return taken


def test_edges_take_a_bounded_number_of_names_from_the_kernel():
    seams = {edge: len(_names_from_kernel(edge)) for edge in SEAMS}
    assert all(count <= SEAMS[edge] for edge, count in seams.items()), seams


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


def test_dask_and_zarr_python_are_imported_in_their_rooms_only():
    for name in NAMES:
        heads = {module.split(".")[0] for module in imports(name) if module}
        if name not in ZARR_PYTHON:
            assert "zarr" not in heads, name
        if name == "zarrdask.config":
            # The settings live in Dask's configuration, which is loaded when one is asked for.
            heads -= {"dask"}
        if RANK[room(name)] < RANK["parallel"] and name != "zarrdask.runtime.serialize":
            assert "dask" not in heads, name
        if name.removeprefix("zarrdask.") not in DISTRIBUTED:
            assert "distributed" not in heads, name


def test_config_loads_dask_on_demand_only():
    top = [n for n in parsed("zarrdask.config").body if isinstance(n, ast.Import | ast.ImportFrom)]
    assert not any(" dask" in ast.unparse(node) for node in top)


def test_the_root_holds_the_rooms_only():
    assert {p.stem for p in ROOT.iterdir() if p.name != "__pycache__"} == {*ROOMS, "py"}


def test_folders_are_small_and_names_of_modules_are_not_shared_by_three():
    folders, names = {}, {}
    for path in MODULES:
        if path.name != "__init__.py":
            folders.setdefault(path.parent, []).append(path.stem)
            names.setdefault(path.stem, []).append(path)
    assert not {str(f): len(each) for f, each in folders.items() if len(each) > LARGEST_FOLDER}
    assert not {name: paths for name, paths in names.items() if len(paths) > 2}


#: Modules.
LARGEST_FOLDER = 20

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
