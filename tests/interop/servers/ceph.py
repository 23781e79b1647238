"""Ceph's S3: one monitor, one OSD in memory and one `radosgw`, of Debian's packages."""

from collections.abc import Iterator
from contextlib import contextmanager
from shutil import which
from uuid import uuid4

import boto3

from tests.interop.peers.environments import MissingPeer
from tests.interop.servers.cloud import Cloud, free_port, processes

#: Debian's packages.
PACKAGES = ("ceph-mon", "ceph-osd", "radosgw")
#: Nothing is authenticated but the requests to S3, nothing is stored twice, and the monitor decides
#: at once: it waits for no others.
_SETTINGS = """
[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{monitor}]
mon data = {folder}/mon
osd data = {folder}/osd
rgw data = {folder}/rgw
run dir = {folder}
crash dir = {folder}
log file = {folder}/$name.log
mon cluster log file = {folder}/cluster.log
admin socket =
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind msgr1 = false
ms mon client mode = crc
auth cluster required = none
auth service required = none
auth client required = none
paxos propose interval = 0.05
paxos min wait = 0.01
mon allow pool size one = true
osd objectstore = memstore
memstore device bytes = 2147483648
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pg autoscale mode = off
rgw frontends = beast endpoint=127.0.0.1:{gateway}
rgw override bucket index max shards = 1
rgw dynamic resharding = false
rgw num control oids = 1
"""


@contextmanager
def serving() -> Iterator[Cloud]:
    """Return a context in which Ceph serves S3."""
    missing = [name for name in PACKAGES if which(name) is None]
    if missing:
        raise MissingPeer(f"on Debian: apt-get install {' '.join(missing)}")
    monitor, gateway, osd = free_port(), free_port(), str(uuid4())
    endpoint, keys = f"http://127.0.0.1:{gateway}", {"key": "testing", "secret": "of-tests"}
    with processes(CEPH_CONF="ceph.conf") as ceph:
        folder, fsid = ceph.folder, str(uuid4())
        named = {"folder": folder, "monitor": monitor, "gateway": gateway, "fsid": fsid}
        (folder / "ceph.conf").write_text(_SETTINGS.format(**named))
        for name in ("osd", "rgw"):
            (folder / name).mkdir()
        address = f"[v2:127.0.0.1:{monitor}]"
        ceph.run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", address, "monmap")
        ceph.run("ceph-mon", "--mkfs", "-i", "a", "--monmap", "monmap")
        ceph.start("ceph-mon", "-f", "-i", "a")
        ceph.run("ceph", "--connect-timeout", "30", "osd", "new", osd)
        ceph.run("ceph-osd", "--mkfs", "-i", "0", "--osd-uuid", osd)
        ceph.start("ceph-osd", "-f", "-i", "0")
        user = ("--uid", "tests", "--display-name", "tests")
        credentials = ("--access-key", keys["key"], "--secret", keys["secret"])
        ceph.run("radosgw-admin", "user", "create", *user, *credentials)
        ceph.start("radosgw", "-f", "-n", "client.rgw")
        ceph.wait_for(endpoint)
        client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            aws_access_key_id=keys["key"],
            aws_secret_access_key=keys["secret"],
            region_name="us-east-1",
        )
        options = {**keys, "endpoint_url": endpoint}
        yield Cloud("s3", options, lambda name: client.create_bucket(Bucket=name))
