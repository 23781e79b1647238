"""Levels that are added to a group that exists."""

from concurrent.futures import ThreadPoolExecutor

import zarrdask
from zarrdask.pyramids.changes import change_attributes


def test_attributes_that_are_changed_concurrently_are_all_kept():
    group = zarrdask.create_group({}, attributes={"ome": {"version": "0.5"}})
    names = {f"n{number}": number for number in range(6)}

    def add(name):
        change_attributes(group.node_path, lambda _: {"ome": {name: names[name]}})

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(add, names))
    attributes = zarrdask.open_group(group.store).attrs.asdict()
    assert attributes == {"ome": {"version": "0.5", **names}}
