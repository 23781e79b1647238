"""A program that does the common jobs where the system lacks what Windows or macOS lacks.

``python tests/runtime/other_platforms.py windows DIRECTORY`` takes calls and flags away from the
modules of Python, then imports zarrdask. There, open files can be neither replaced nor removed.
"""

import importlib
import os
import pkgutil
import shutil
import signal
import stat
import sys
import time
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

# What other packages have looked up, they keep.
import dask.array as da
import distributed  # noqa: F401
import filelock
import numpy as np

_MACOS_LACKS = "copy_file_range preadv pwritev sched_getaffinity O_TMPFILE O_PATH posix_fadvise"
_WINDOWS_LACKS = f"""{_MACOS_LACKS} pread pwrite readv writev geteuid getuid getegid getgid fork
    register_at_fork uname sysconf statvfs fchmod chown mkfifo setsid killpg sync O_NOFOLLOW
    O_DIRECTORY O_NONBLOCK O_NOCTTY O_CLOEXEC O_SYNC"""
_UNIX_MODULES = ("fcntl", "resource", "termios", "pwd", "grp", "pty")


def _remove(module: ModuleType, names: list[str]) -> None:
    for name in names:
        if hasattr(module, name):
            delattr(module, name)


def _is_open(path: str) -> bool:
    """Whether this process has a file open."""
    try:
        status = os.stat(path)
    except OSError:
        return False
    for number in os.listdir("/proc/self/fd") if stat.S_ISREG(status.st_mode) else ():
        try:
            if os.path.samestat(os.fstat(int(number)), status):
                return True
        except OSError:
            continue  # the descriptor of the listing
    return False


def _refused(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call that refuses files that are open, and descriptors of directories."""

    def checked(*paths: Any, dir_fd: int | None = None) -> Any:
        if dir_fd is not None:
            raise NotImplementedError("dir_fd unavailable on this platform")
        # filelock, which removes files by pathlib, has code of its own for Windows.
        caller = sys._getframe(1).f_code.co_filename
        if "filelock" not in caller and "pathlib" not in caller and any(map(_is_open, paths)):
            raise PermissionError(13, "a file is open", *paths[:1])
        return call(*paths)

    return checked


def _msvcrt() -> ModuleType:
    import fcntl

    module: Any = ModuleType("msvcrt")
    module.LK_UNLCK, module.LK_NBLCK = 0, 2

    def locking(fd: int, mode: int, nbytes: int) -> None:
        flag = fcntl.LOCK_EX | fcntl.LOCK_NB if mode else fcntl.LOCK_UN
        fcntl.lockf(fd, flag, nbytes, os.lseek(fd, 0, os.SEEK_CUR))

    module.locking = locking
    return module


def become_windows() -> None:
    """Take away what Windows lacks."""
    sys.modules["msvcrt"] = _msvcrt()
    unix_locks: Any = sys.modules[filelock.UnixFileLock.__module__]
    unix_locks.os = SimpleNamespace(**vars(os))
    shutil._use_fd_functions = False  # type: ignore[attr-defined]
    real_open = os.open

    def open_file(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if dir_fd is not None:
            raise NotImplementedError("dir_fd unavailable on this platform")
        if os.path.isdir(path):
            raise PermissionError(13, "Permission denied", path)
        return real_open(path, flags, mode)

    os.open = open_file
    for name in ("replace", "rename", "unlink", "remove"):
        setattr(os, name, _refused(getattr(os, name)))
    _remove(os, _WINDOWS_LACKS.split())
    _remove(time, [name for name in dir(time) if name.lower().startswith("clock_")])
    _remove(signal, ["pthread_sigmask", "SIGKILL", "SIGHUP", "SIGUSR1"])
    for names in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
        names.clear()
    sys.modules.update(dict.fromkeys(_UNIX_MODULES))  # type: ignore[arg-type]


def become_macos() -> None:
    """Take away what macOS lacks."""
    _remove(os, _MACOS_LACKS.split())
    _remove(time, ["CLOCK_BOOTTIME"])


def import_all(platform: str) -> None:
    """Import the modules of zarrdask, for which the platform is another one."""
    actual, sys.platform = sys.platform, platform
    import zarrdask

    for module in pkgutil.walk_packages(zarrdask.__path__, "zarrdask."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:  # of an extra: not every environment has each
                if (error.name or "zarrdask").partition(".")[0] in ("zarrdask", *_UNIX_MODULES):
                    raise
    sys.platform = actual


def do_common_jobs() -> None:
    """Write, replace, append, rechunk, copy, resize and erase arrays in the current directory."""
    import zarrdask

    values = np.arange(2400, dtype="f4").reshape(60, 40)
    blocks = da.from_array(values, chunks=(13, 11))
    options = {"chunks": (5, 10), "shards": (20, 20)}
    zarrdask.to_zarr(blocks, "a.zarr", **options)
    zarrdask.to_zarr(blocks, "a.zarr", overwrite=True, **options)
    zarrdask.append(blocks, "a.zarr")
    url = f"file://{os.path.abspath('a.zarr')}"
    np.testing.assert_array_equal(zarrdask.from_zarr(url)[60:].compute(), values)

    part = zarrdask.create_array("part.zarr", shape=(60, 40), chunks=(7, 9), dtype="f4")
    part[3:50, 2:33] = values[3:50, 2:33]
    zarrdask.to_zarr(blocks[:20], "part.zarr", region=(slice(0, 20), slice(None)))
    np.testing.assert_array_equal(part[:20], values[:20])
    part.resize((30, 40))

    zarrdask.to_zarr(blocks, "a.zip")
    zarrdask.append(blocks, "a.zip")
    np.testing.assert_array_equal(zarrdask.from_zarr("a.zip")[:60].compute(), values)

    zarrdask.rechunk("a.zarr", "b.zarr", chunks=(120, 5), max_mem="10 MiB").execute(progress=False)
    zarrdask.copy("a.zarr", "c.zarr", progress=False)
    if not (zarrdask.compare("a.zarr", "b.zarr").ok and zarrdask.compare("a.zarr", "c.zarr").ok):
        raise AssertionError("other values")
    group = zarrdask.create_group("g.zarr")
    group.create_array("x", shape=(3,), dtype="i4")[...] = 1
    zarrdask.create_group("g.zarr", overwrite=True)


def main() -> None:
    """Do the jobs on a platform, in a directory."""
    platform, directory = sys.argv[1:]
    os.chdir(directory)
    if platform == "windows":
        become_windows()
        import_all("win32")
    else:
        become_macos()
        import_all("darwin")
    do_common_jobs()


if __name__ == "__main__":
    main()
