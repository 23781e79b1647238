"""How the tests speak with a peer: its driver runs as long as the tests do."""

import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tests.interop.peers.environments import python_of


class PeerError(Exception):
    """What a peer raised, as text; or that it died."""


class Peer:
    """A peer, started when it is first asked for something.

    Parameters
    ----------
    name : {"zarr2", "newest", "gdal"}
        Of its environment; its driver is the module beside this one that is called so.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.python = python_of(name)
        self.process: subprocess.Popen[str] | None = None
        self.exchange = TemporaryDirectory(prefix="zarrdask-peer-")

    def call(self, verb: str, **request: Any) -> Any:
        """Return what the driver's function gives."""
        if self.process is None:
            self.process = subprocess.Popen(
                [self.python, Path(__file__).with_name(f"{self.name}.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        print(json.dumps({"verb": verb, **request}), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()  # type: ignore[union-attr]
        if not line:
            raise PeerError(f"{self.name} ended with {self._end()} at {verb}({request})")
        answer = json.loads(line)
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer["result"]

    def write(
        self,
        values: np.ndarray,
        place: Path,
        name: str | None = None,
        *,
        fill: Any = None,
        **options: Any,
    ) -> None:
        """Create an array with values; the fill value goes as it is, not as JSON."""
        if fill is not None:
            options["fill"] = self._put("fill", np.asarray(fill))
        values_file = self._put("values", values)
        self.call("write", place=str(place), name=name, values=values_file, **options)

    def update(
        self, values: np.ndarray, place: Path, name: str | None, start: list[int], **options: Any
    ) -> None:
        """Write a region of an array."""
        values_file = self._put("values", values)
        options |= {"start": start, "values": values_file}
        self.call("update", place=str(place), name=name, **options)

    def read(self, place: Path, name: str | None = None, **options: Any) -> np.ndarray:
        """Return an array's values."""
        return self.look(place, name, **options)[0]

    def look(
        self, place: Path, name: str | None = None, **options: Any
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Return an array's values, and what else the peer tells of it."""
        file = f"{self.exchange.name}/read.npy"
        facts = self.call("read", place=str(place), name=name, values=file, **options)
        return np.load(file, allow_pickle=True), facts

    def _put(self, name: str, values: np.ndarray) -> str:
        file = f"{self.exchange.name}/{name}.npy"
        np.save(file, values, allow_pickle=True)
        return file

    def _end(self) -> int | None:
        process, self.process = self.process, None
        if process is None:
            return None
        process.stdin.close()  # type: ignore[union-attr]
        process.stdout.close()  # type: ignore[union-attr]
        return process.wait(10)

    def close(self) -> None:
        """End the driver and forget what was exchanged."""
        self._end()
        self.exchange.cleanup()
