"""A file system of fsspec that waits 50 ms for each request, on a local disk: ``slow:///path``."""

import asyncio
from typing import Any

import fsspec
from fsspec.asyn import AsyncFileSystem
from fsspec.implementations.local import LocalFileSystem

SECONDS = 0.05


class SlowFileSystem(AsyncFileSystem):
    """Files, each read, written, listed or looked up by one request that takes a while."""

    protocol = "slow"
    cachable = True

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.files = LocalFileSystem(auto_mkdir=True)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.removeprefix("slow://").rstrip("/")

    async def _request(self, operation: Any, *args: Any, **options: Any) -> Any:
        await asyncio.sleep(SECONDS)
        return operation(*args, **options)

    async def _cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        return await self._request(self.files.cat_file, path, start=start, end=end)

    async def _pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        await self._request(self.files.pipe_file, path, value, mode=mode)

    async def _info(self, path: str, **_: Any) -> dict[str, Any]:
        return await self._request(self.files.info, path)

    async def _ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:  # noqa: FBT001, FBT002
        return await self._request(self.files.ls, path, detail=detail)

    async def _rm_file(self, path: str, **_: Any) -> None:
        await self._request(self.files.rm_file, path)


fsspec.register_implementation("slow", SlowFileSystem, clobber=True)
