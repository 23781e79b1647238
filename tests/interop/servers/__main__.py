"""Starts a server, until Ctrl-C: `python -m tests.interop.servers {ceph,azurite,google}`."""

import signal
import sys
from importlib import import_module

SERVERS = ("ceph", "azurite", "google")


def main(name: str) -> None:
    """Serve, and say how a URL is opened."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with import_module(f"tests.interop.servers.{name}").serving() as cloud:
        url, options = cloud.new_url(), cloud.options
        print(f"zarrdask.open_group({url!r}, storage_options={options!r})", flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            print("ended", flush=True)


if __name__ == "__main__":
    if sys.argv[1:] not in [[name] for name in SERVERS]:
        sys.exit(f"usage: python -m tests.interop.servers {'|'.join(SERVERS)}")
    main(sys.argv[1])
