"""What the tests know of a server, and the processes that it consists of."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.error import HTTPError
from urllib.request import urlopen
from uuid import uuid4

#: Seconds that a server may take until it answers.
START_SECONDS = 60


class Cloud(NamedTuple):
    """A server that answers.

    Attributes
    ----------
    scheme : str
        The scheme of its URLs.
    options : dict
        The ``storage_options`` by which URLs in it are opened.
    make_bucket : callable
        Makes a bucket of this name.
    """

    scheme: str
    options: dict[str, Any]
    make_bucket: Callable[[str], object]

    def new_url(self) -> str:
        """Return the URL of a new bucket."""
        name = f"bucket-{uuid4().hex}"
        self.make_bucket(name)
        return f"{self.scheme}://{name}"


class Processes:
    """Processes in a folder of their own, which end together.

    Attributes
    ----------
    folder : Path
        The folder.
    """

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self.folder = folder
        self._environment = {**os.environ, **variables}
        self._running = list[subprocess.Popen[bytes]]()

    def run(self, *command: str) -> None:
        """Run a command to its end."""
        with self._output(command) as output:
            subprocess.run(command, **self._given(output), check=True, timeout=START_SECONDS)

    def start(self, *command: str) -> None:
        """Start a command that goes on."""
        with self._output(command) as output:
            self._running.append(subprocess.Popen(command, **self._given(output)))

    def _output(self, command: Sequence[str]) -> BinaryIO:
        output = (self.folder / "output.txt").open("ab", buffering=0)
        output.write(f"$ {' '.join(command)}\n".encode())
        return output

    def _given(self, output: BinaryIO) -> dict[str, Any]:
        streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
        return {"cwd": self.folder, "env": self._environment, **streams}

    def wait_for(self, url: str) -> None:
        """Wait until a server answers, with whatever status."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and all(each.poll() is None for each in self._running):
            try:
                urlopen(url, timeout=5).close()
            except HTTPError:
                return
            except OSError:
                time.sleep(0.05)
            else:
                return
        said = (self.folder / "output.txt").read_text(errors="replace")
        raise RuntimeError(f"{url} does not answer:\n{said[-2000:]}")

    def end(self) -> None:
        """End what goes on, which has nothing to save."""
        for process in self._running:
            process.kill()
        for process in self._running:
            process.wait()


@contextmanager
def processes(**variables: str) -> Iterator[Processes]:
    """Return a context in which processes run, with these environment variables."""
    with tempfile.TemporaryDirectory(prefix="zarrdask-server-") as folder:
        running = Processes(Path(folder), variables)
        try:
            yield running
        except subprocess.SubprocessError:
            sys.stderr.write((running.folder / "output.txt").read_text(errors="replace"))
            raise
        finally:
            running.end()


def free_port() -> int:
    """Return a port of loopback that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
