"""An emulator of Google's object store, of PyPI: its JSON interface, which gcsfs uses."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import Request, urlopen

from tests.interop.peers.environments import python_of
from tests.interop.servers.cloud import Cloud, free_port, processes


@contextmanager
def serving() -> Iterator[Cloud]:
    """Return a context in which the emulator serves."""
    # Else gcsfs asks Google itself of which kind a bucket is. It reads this when it is imported.
    os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"
    python, port = python_of("google"), free_port()
    endpoint = f"http://127.0.0.1:{port}"
    with processes() as google:
        where = ("--host", "127.0.0.1", "--port", str(port), "--in-memory")
        google.start(str(python), "-m", "gcp_storage_emulator", "start", *where)
        google.wait_for(endpoint)

        def make_bucket(name: str) -> None:
            body, kind = json.dumps({"name": name}).encode(), {"Content-Type": "application/json"}
            urlopen(Request(f"{endpoint}/storage/v1/b?project=tests", body, kind)).close()

        yield Cloud("gs", {"token": "anon", "endpoint_url": endpoint}, make_bucket)
