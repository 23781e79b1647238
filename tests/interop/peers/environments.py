"""The Pythons that have a peer: virtual environments that are made when needed, or the system's."""

import fcntl
import os
import subprocess
import sys
from glob import glob
from pathlib import Path
from shutil import which

FOLDER = Path(os.environ.get("ZARRDASK_PEERS", Path(__file__).parents[3] / ".peers")).absolute()
#: What an environment of its own holds. zarr-python 2 is not developed further.
REQUIREMENTS: dict[str, tuple[str, ...]] = {
    "zarr2": (
        *("zarr==2.18.7", "numcodecs[crc32c,msgpack]==0.15.*", "numpy<2.5"),
        "pytest",  # its sharding imports its own tests
    ),
    "newest": ("zarr[cast-value-rs]>=3.4", "numcodecs[msgpack]"),
    "google": ("gcp-storage-emulator>=2026.7",),
    "kerchunk": ("kerchunk>=0.2.10", "virtualizarr[hdf]>=2.5", "fastparquet", "h5py", "pyarrow"),
    "pyramids": (
        *("ome-zarr-models>=1.8", "ome-zarr>=0.21", "ngff-zarr>=0.50"),
        *("zarr-cm>=0.5", "topozarr>=0.2.1", "jsonschema>=4.23"),
    ),
    "dataset": ("xarray>=2024.10", "zarr>=3.0.8,<3.2"),
    "rechunker": (
        *("asciitree", "fasteners", "mypy-extensions", "packaging"),  # those of zarr and rechunker
        *("dask[array]", "distributed", "google-crc32c", "numcodecs[msgpack]>=0.16.4", "numpy"),
        *("cloudpickle", "fsspec", "psutil", "tqdm", "xarray>=2025.9,<2026"),
        *("hypothesis", "pytest", "setuptools", "setuptools-scm"),
    ),
}
#: What is installed without its requirements, which exclude newer releases of some of those above.
ALONE: dict[str, tuple[str, ...]] = {"rechunker": ("rechunker==0.5.4", "zarr==2.18.7")}
#: Packages of npm. Azurite: the last release that runs on Node 20.
NODE_PACKAGES = {"azurite": "azurite@3.35.0"}
#: The least version of Python that an environment needs, and the first that is too new.
#: numcodecs 0.15 has no wheels for Python 3.14.
VERSIONS = {"newest": ((3, 12), (4, 0)), "zarr2": ((3, 11), (3, 14))}
#: Debian's package: GDAL 3.6, the last that writes the draft of v3.
SYSTEM = os.environ.get("ZARRDASK_SYSTEM_PYTHON", "/usr/bin/python3")


class MissingPeer(Exception):
    """A peer is not here; the message tells how to get it."""


def python_of(peer: str) -> Path:
    """Return the Python that has a peer, made if there is none.

    Raises
    ------
    MissingPeer
        If it can't be.
    """
    if peer == "gdal":
        return _system()
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / f"{peer}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several workers of pytest-xdist want it at once
        return _made(peer)


def command_of(package: str, command: str) -> str:
    """Return a command of a package of npm, which is installed if it is not here.

    Raises
    ------
    MissingPeer
        If it can't be.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    home, wanted = FOLDER / package, NODE_PACKAGES[package]
    done = home / "package.txt"
    with (FOLDER / f"{package}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists() or done.read_text() != wanted:
            npm = which("npm")
            if npm is None:
                raise MissingPeer(f"{wanted} needs Node 20 or newer, with npm on PATH")
            quiet = ("--no-audit", "--no-fund", "--no-save", "--loglevel=error")
            try:
                subprocess.run([npm, "install", *quiet, "--prefix", str(home), wanted], check=True)
            except subprocess.CalledProcessError as error:
                reason = f"{home} can't be made ({error}); it needs a registry of npm"
                raise MissingPeer(reason) from error
            done.write_text(wanted)
    return str(home / "node_modules" / ".bin" / command)


def _system() -> Path:
    try:
        subprocess.run([SYSTEM, "-c", "from osgeo import gdal_array"], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise MissingPeer(
            f"{SYSTEM} has no GDAL. On Debian 12: apt-get install python3-gdal; elsewhere name "
            "a Python that has GDAL 3.6 in ZARRDASK_SYSTEM_PYTHON."
        ) from error
    return Path(SYSTEM)


def _made(peer: str) -> Path:
    home = FOLDER / peer
    python, done = home / "bin" / "python", home / "requirements.txt"
    base = python_for(peer)
    if base is None:
        low, high = (".".join(map(str, version)) for version in VERSIONS[peer])
        raise MissingPeer(f"{peer} needs a Python from {low} to below {high}: put one on PATH")
    requirements = "\n".join((*REQUIREMENTS[peer], *ALONE.get(peer, ())))
    if done.exists() and done.read_text() == requirements:
        return python
    try:
        make, install = _commands(base, home)
        subprocess.run(make, check=True)
        subprocess.run([*install, *REQUIREMENTS[peer]], check=True)
        if peer in ALONE:
            subprocess.run([*install, "--no-deps", *ALONE[peer]], check=True)
    except subprocess.CalledProcessError as error:
        raise MissingPeer(f"{home} can't be made ({error}); it needs a package index") from error
    done.write_text(requirements)
    return python


def _commands(base: str, home: Path) -> tuple[list[str], list[str]]:
    """Return the commands that make an environment and install into it: those of uv, if it is here.

    It takes a tenth of the time.
    """
    python = str(home / "bin" / "python")
    if uv := which("uv"):
        make = [uv, "venv", "--quiet", "--clear", "--seed", "--python", base, str(home)]
        return make, [uv, "pip", "install", "--quiet", "--python", python]
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    return [base, "-m", "venv", "--clear", str(home)], pip


def python_for(peer: str) -> str | None:
    """Return this Python, or else the first on PATH or of pyenv's that a peer can use."""
    low, high = VERSIONS.get(peer, ((3, 11), (4, 0)))
    if low <= sys.version_info < high:
        return sys.executable
    names = [f"python3.{minor}" for minor in range(11, 15)]
    pyenv = os.environ.get("PYENV_ROOT", str(Path.home() / ".pyenv"))
    found = [path for name in names if (path := which(name))]
    for python in (*found, *sorted(glob(f"{pyenv}/versions/3.*/bin/python3"))):
        # pyenv puts names on PATH of versions that are not switched on.
        check = f"import ensurepip, sys; sys.exit(not {low} <= sys.version_info < {high})"
        run = subprocess.run([python, "-c", check], stderr=subprocess.DEVNULL, check=False)
        if run.returncode == 0:
            return python
    return None
