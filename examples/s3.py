"""Write to S3, look at what a read costs before it is done, and read: on a local server.

It needs ``pip install "zarrdask[s3]" "moto[server]"``. For a real bucket only the options change.
"""

import logging
from pathlib import Path
from tempfile import TemporaryDirectory

import dask.array as da
import fsspec
from moto.server import ThreadedMotoServer

import zarrdask


def main(folder):
    """Store tiles in a bucket, and read the mean of one place and one image."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # the server prints each request
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        options = {"key": "a", "secret": "b", "endpoint_url": f"http://{host}:{port}"}
        fsspec.filesystem("s3", **options).mkdir("tiles")
        return _work(folder, options)
    finally:
        server.stop()


def _work(folder, options):
    url = "s3://tiles/ndvi.zarr"
    ndvi = da.random.default_rng(3).random((24, 512, 512), chunks=(6, 512, 512), dtype="f4")
    zarrdask.to_zarr(
        ndvi,
        url,
        storage_options=options,
        chunks=(6, 64, 64),
        shards=(24, 256, 256),
        dimension_names=("time", "y", "x"),
    )
    x = zarrdask.from_zarr(url, storage_options=options)
    print(f"{x.nbytes >> 20} MiB in chunks of {ndvi.dtype.itemsize * 6 * 64 * 64 >> 10} KiB")

    field = x[:, 200:330, 120:250]
    plan = zarrdask.plan_read(field)
    print(f"a field: {plan.arrays[0].chunks} chunks in {plan.objects} objects")
    print(f"at most {plan.requests} requests; {plan.amplification:.1f} times the needed bytes")
    print(f"mean {field.mean().compute():.3f}")

    zarrdask.copy(url, folder / "here.zarr", source_options=options)
    same = zarrdask.compare(url, folder / "here.zarr", source_options=options).ok
    print(f"copied to the local disk: {same}")
    return plan


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(Path(folder))
