"""Python as it is on other platforms: their scripts run in processes that lack calls of Linux."""

import multiprocessing
import sys
import textwrap
import traceback

#: Lets the packages that zarrdask uses see the real platform, and zarrdask the other one.
_IMPORTS = """
import contextlib, ctypes, errno, fcntl, io, os, pathlib, shutil, signal, sys, threading, time
import cloudpickle, filelock, fsspec, numcodecs, numpy as np, psutil

def remove(module, *names):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)

def without_proc(call):
    def checked(path, *arguments, **options):
        if os.fspath(path).startswith("/proc/") if isinstance(path, (str, os.PathLike)) else False:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return call(path, *arguments, **options)
    return checked

real_readlink = os.readlink
"""

_MACOS = """
os.process_cpu_count = os.cpu_count
remove(os, "copy_file_range", "sched_getaffinity", "preadv", "pwritev", "O_PATH")
class Library:
    pass
ctypes.CDLL = lambda name: Library()
io.open, os.readlink = without_proc(io.open), without_proc(os.readlink)
"""

_WINDOWS = """
os.process_cpu_count = os.cpu_count
if hasattr(shutil, "_rmtree_impl"):  # Python 3.14 chooses when it is imported
    shutil._rmtree_impl = shutil._rmtree_unsafe
remove(
    os, "copy_file_range", "sched_getaffinity", "pread", "preadv", "pwrite", "pwritev", "fchmod",
    "geteuid", "getuid", "fork", "register_at_fork", "O_PATH", "O_NOFOLLOW", "O_NONBLOCK",
    "O_DIRECTORY", "O_NOCTTY", "O_CLOEXEC", "statvfs",
)
remove(signal, "pthread_sigmask", "SIGKILL")
sys.modules["fcntl"] = None

class FileLock:
    # filelock's own class for Windows can't be used here, and that for Linux needs what is removed.
    def __init__(self, path, thread_local=True, poll_interval=0.05):
        self.path, self.pause = path, poll_interval

    def acquire(self, timeout=-1):
        while True:
            self.fd = calls["open"](self.path, os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(self.fd), calls["stat"](self.path)):
                    return
            except (BlockingIOError, FileNotFoundError) as error:
                if timeout == 0:
                    os.close(self.fd)
                    raise filelock.Timeout(self.path) from error
            os.close(self.fd)
            time.sleep(self.pause)

    def release(self):
        calls["unlink"](self.path)
        os.close(self.fd)

filelock.FileLock = FileLock
shutil._use_fd_functions = False
io.open, os.readlink = without_proc(io.open), without_proc(os.readlink)

def no_library(name):
    raise TypeError("expected a name of a library")
ctypes.CDLL = no_library

def is_open(path):
    path = os.path.realpath(path)
    for fd in os.listdir("/proc/self/fd"):
        try:
            target = real_readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
        if target == path or target.startswith(f"{path}/"):
            return True
    return False

def refuse_open(*paths):
    for path in paths:
        if os.path.lexists(path) and is_open(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

calls = {
    name: getattr(os, name) for name in ("open", "unlink", "stat", "replace", "rename", "kill")
}

def open_(path, flags, mode=0o777, *, dir_fd=None):
    if dir_fd is not None:
        raise NotImplementedError("dir_fd unavailable on this platform")
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    return calls["open"](path, flags, mode)

def unlink(path, *, dir_fd=None):
    if dir_fd is not None:
        raise NotImplementedError("dir_fd unavailable on this platform")
    refuse_open(path)
    calls["unlink"](path)

def stat_(path, *, dir_fd=None, follow_symlinks=True):
    if dir_fd is not None:
        raise NotImplementedError("dir_fd unavailable on this platform")
    return calls["stat"](path, follow_symlinks=follow_symlinks)

def replace(source, target):
    refuse_open(source, target)
    calls["replace"](source, target)

def rename(source, target):
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
    refuse_open(source)
    calls["rename"](source, target)

def kill(pid, number):
    caller = sys._getframe(1).f_globals["__name__"]
    if caller.startswith("zarrdask"):
        raise AssertionError("this ends processes, or interrupts them, on Windows")
    calls["kill"](pid, number)

os.open, os.unlink, os.remove, os.stat = open_, unlink, unlink, stat_
os.replace, os.rename, os.kill = replace, rename, kill
os.supports_dir_fd = set()

sys.platform = "win32"
import zarrdask.runtime.system
sys.platform = "linux"
"""

PLATFORMS = {"macOS": _MACOS, "Windows": _WINDOWS}


def serve(platform, connection):
    """Run the scripts of `Process.run`, each with names of its own, and answer what went wrong."""
    # What the fork server has imported saw the real platform.
    for name in [name for name in sys.modules if name.partition(".")[0] == "zarrdask"]:
        del sys.modules[name]
    names = {"__name__": "__main__"}
    exec(_IMPORTS + PLATFORMS.get(platform, ""), names)
    while work := connection.recv():
        script, *sys.argv[1:] = work
        try:
            exec(script, dict(names))
            answer = ""
        except BaseException:
            answer = traceback.format_exc()
        connection.send(answer)


class Process:
    """A process that lacks what a platform does: it runs scripts, one after the other."""

    def __init__(self, platform):
        context = multiprocessing.get_context("forkserver")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=serve, args=(platform, other))
        self._process.start()
        other.close()

    def start(self, script, *arguments):
        """Let it run a script with these arguments; `finish` waits for it."""
        self._connection.send([textwrap.dedent(script), *map(str, arguments)])

    def finish(self):
        """Wait for the script that was started."""
        problem = self._connection.recv()
        assert not problem, problem

    def run(self, script, *arguments):
        self.start(script, *arguments)
        self.finish()

    def close(self):
        """End it, and fail if it failed."""
        self._connection.send(None)
        self._process.join()
        self._connection.close()
        assert self._process.exitcode == 0
