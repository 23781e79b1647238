"""A fork of a store as a file, and the changes of jobs that share only a URL."""

import pickle
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from zarrdask.errors import MetadataError, StoreError, UnsupportedError, ZarrdaskError
from zarrdask.formats.store_keys import check_key
from zarrdask.storage.adapters.forks import Fork
from zarrdask.storage.adapters.icechunk import session_of
from zarrdask.storage.base import Store
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.local.private import PrivateStore
from zarrdask.storage.resolve import resolve

_FORK, _CHANGES = "fork", "changes/"


class SavedFork:
    """A fork of a session of icechunk, and the changes of jobs, as files under a URL.

    Jobs of a batch system that share only the URL write to the session: one process saves
    a fork, each job writes to a copy of it, and one process merges the changes of all jobs.

    The files are pickled, and contain the credentials of the repository: keep them where only you
    can read and write, and erase them after the commit. In a local directory, only you can read the
    files, for any umask.

    Parameters
    ----------
    url : str, os.PathLike, MutableMapping or Store
        The directory of the files: a new one for each run.
    storage_options : dict, optional
        Options of fsspec.

    Examples
    --------
    In one process, in each job, and in one process at the end::

        zarrdask.storage.SavedFork(url).save(session)

        with zarrdask.storage.SavedFork(url).changing("part-7") as store:
            zarrdask.to_zarr(x, store, "temperature", region=region)

        zarrdask.storage.SavedFork(url).merge(session)
        session.commit("all parts")
    """

    def __init__(self, url: Any, storage_options: dict[str, Any] | None = None) -> None:
        files = resolve(url, storage_options)
        if type(files) is LocalStore:
            files = PrivateStore(files.root, files.follow_links)
        self._files = files

    def __repr__(self) -> str:
        return f"<SavedFork {self._files.url}>"

    def save(self, session: Any) -> None:
        """Save a fork of a session.

        Parameters
        ----------
        session : icechunk.Session, or its store
            A writable session without changes: commit new arrays, and the shapes that the jobs
            need, before.

        Raises
        ------
        UnsupportedError
            If the store can't be forked.
        StoreError
            If the session has changes, or a fork was saved here before.
        """
        copy = _fork_of(session)
        copy.check_unchanged()
        if not self._files.create(_FORK, pickle.dumps(copy)):
            raise StoreError(
                "a fork was saved here before, and its jobs may be running; use another URL for "
                "each run",
                key=self._files.url,
            )

    @contextmanager
    def changing(self, job: str = "") -> Iterator[Store]:
        """Return a context with a store for one job, whose changes are saved at its end.

        If the block fails, nothing is saved.

        Parameters
        ----------
        job : str, optional
            The name of the job, without "/". If it runs again, its changes replace the changes of
            its first run. By default each call has a new name.

        Raises
        ------
        MetadataError
            If no file can have the name.
        """
        key = f"{_CHANGES}{_name(job or uuid4().hex)}"
        copy = self._load()
        store = copy.begin()
        yield store
        self._files.set(key, copy.end(store))

    def merge(self, session: Any, jobs: Iterable[str] | None = None) -> tuple[str, ...]:
        """Merge the changes of all jobs into a session, which you commit.

        Parameters
        ----------
        session : icechunk.Session, or its store
            A writable session of the snapshot from which the fork was saved.
        jobs : iterable of str, optional
            The names of the jobs that must have saved changes.

        Returns
        -------
        tuple of str
            The names of the jobs, sorted.

        Raises
        ------
        StoreError
            If changes of a job are missing or damaged, two jobs have changed the same chunk or the
            metadata of the same node, or the session began at another snapshot. Nothing is merged
            then.
        """
        target, saved = _fork_of(session), self._load()
        target.check_same(saved)
        names = sorted(key.removeprefix(_CHANGES) for key in self._files.list_prefix(_CHANGES))
        if missing := sorted(map(str, set(jobs or ()) - set(names))):
            raise StoreError(
                "jobs have saved no changes; run them again",
                key=self._files.url,
                found=", ".join(missing),
            )
        parts = {name: self._read(_CHANGES + name) for name in names}
        changed = {name: self._changed(target, name, part) for name, part in parts.items()}
        _check_disjoint(changed)
        target.receive(saved.name, parts.values())
        return tuple(names)

    def _load(self) -> Fork:
        with self._reporting_damage(_FORK):
            copy = pickle.loads(self._read(_FORK))
        if not isinstance(copy, Fork):
            raise self._damaged(_FORK)
        return copy

    def _changed(self, target: Fork, job: str, changes: bytes) -> list[str]:
        with self._reporting_damage(_CHANGES + job):
            return [*target.changed(changes)]

    @contextmanager
    def _reporting_damage(self, key: str) -> Iterator[None]:
        # A damaged pickle raises errors of any class, and so does what it is made of.
        try:
            yield
        except ZarrdaskError:
            raise
        except Exception as error:
            raise self._damaged(key) from error

    def _damaged(self, key: str) -> StoreError:
        return StoreError(
            "this file of a saved fork is damaged, or was written by another version of zarrdask "
            "or icechunk; run the job again, or save a new fork under another URL",
            key=f"{self._files.url}/{key}",
        )

    def _read(self, key: str) -> bytes:
        value = self._files.get(key)
        if value is None:
            raise StoreError("no fork was saved here", key=f"{self._files.url}/{key}")
        return value


def _name(job: str) -> str:
    """Return the name of a job if its changes are found by it: as a file right in the directory."""
    if not isinstance(job, str) or "/" in job or job.startswith("."):
        raise MetadataError(
            "invalid name of a job",
            key="job",
            found=job,
            expected='text without "/" that does not begin with "."',
        )
    return check_key(job)


def _fork_of(session: Any) -> Fork:
    store = resolve(session)
    if not store.capabilities.forks:
        raise UnsupportedError(
            "this store can't be forked",
            key=store.url,
            expected="a writable session of icechunk",
        )
    return session_of(store, "fork").fork()


def _check_disjoint(changed: dict[str, list[str]]) -> None:
    """Check that no two jobs have changed the same."""
    changed_by = dict[str, str]()
    for name, keys in changed.items():
        for key in keys:
            other = changed_by.setdefault(key, name)
            if other != name:
                raise StoreError(
                    "two jobs have changed the same chunk, or the metadata of the same node; give "
                    "each job whole chunks or shards, and commit new nodes and shapes before the "
                    "fork is saved",
                    key=key,
                    found=f"{other} and {name}",
                )
