"""Microsoft's Azurite, which answers as Azure's object store does, of npm."""

from collections.abc import Iterator
from contextlib import contextmanager

from azure.storage.blob import BlobServiceClient

from tests.interop.peers.environments import command_of
from tests.interop.servers.cloud import Cloud, free_port, processes

#: The account that Azurite has, and its key, which is no secret.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@contextmanager
def serving() -> Iterator[Cloud]:
    """Return a context in which Azurite serves."""
    command, port = command_of("azurite", "azurite-blob"), free_port()
    endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
    with processes() as azurite:
        where = ("--blobHost", "127.0.0.1", "--blobPort", str(port))
        azurite.start(
            *(command, *where, "--inMemoryPersistence", "--silent"),
            # The packages of Azure are newer than Azurite.
            *("--skipApiVersionCheck", "--disableTelemetry"),
        )
        azurite.wait_for(endpoint)
        client = BlobServiceClient(endpoint, credential=KEY)
        keys = {"account_name": ACCOUNT, "account_key": KEY}
        yield Cloud("az", {**keys, "endpoint_url": endpoint}, client.create_container)
