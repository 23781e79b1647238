"""Writers of one dataset exclude each other if they append to it, or create it."""

from threading import Thread

import zarrdask
from tests.covering import for_each
from tests.xarray.writes import days
from zarrdask.xarray.writing.destination import Destination
from zarrdask.xarray.writing.request import WriteSettings

PATIENCE = 60


@for_each(("mode", "excludes"), [("a", True), ("w", True), ("r+", False)])
def test_only_writers_that_append_or_create_exclude_others(tmp_path_factory, mode, excludes):
    group = zarrdask.create_group(tmp_path_factory.mktemp("data") / "a")
    destination = Destination(group.node_path, "", WriteSettings(mode))

    def change_shape():
        with group.node_path.lock("shape"):
            pass

    thread = Thread(target=change_shape, daemon=True)
    with destination.alone(days(2)):
        thread.start()
        thread.join(0.2 if excludes else PATIENCE)
        assert thread.is_alive() == excludes
    thread.join(PATIENCE)
    assert not thread.is_alive()
