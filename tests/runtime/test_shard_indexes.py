"""Indexes of shards that are kept."""

from zarrdask.runtime.shard_indexes import INDEXES, IndexPlace, KeptIndex


def test_indexes_that_were_used_last_stay(setting):
    setting({"zarrdask.index-cache-size": 2000})
    INDEXES.clear()
    places = [IndexPlace("store", f"c/{n}", 0, 100) for n in range(5)]
    first, second, third = [KeptIndex(bytes(100), n) for n in range(3)]
    for _ in range(3):
        INDEXES.put(places[0], first)
    INDEXES.put(places[1], second)
    INDEXES.put(places[2], third)
    assert INDEXES.get(places[0]) == first
    INDEXES.put(places[3], first)
    assert [INDEXES.get(place) for place in places] == [first, None, third, first, None]
    INDEXES.put(places[0], None)
    INDEXES.put(places[4], KeptIndex(bytes(2000), 1))
    assert [INDEXES.get(place) for place in places] == [None, None, third, first, None]
    setting({"zarrdask.index-cache-size": 0})
    INDEXES.put(places[4], first)
    assert not any(map(INDEXES.get, places))
