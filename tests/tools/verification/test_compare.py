"""`verify` of two stores: elements are compared bit by bit, whatever the grids and formats."""

import json

import zarrdask
from tests.tools.verification.arrays import VALUES, make


class TestMetadata:
    def test_each_difference_is_told(self):
        a = make(VALUES, fill_value=1, dimension_names=("y", "x"), attributes={"k": 1})
        b = make(VALUES, fill_value=2, dimension_names=("x", "y"), attributes={"k": 2})
        found = zarrdask.compare(a, b)
        assert [d.what for d in found.differences] == [
            "fill value",
            "dimension names",
            "attributes",
        ]
        assert found.same_elements
        assert not found.ok
        assert 'metadata  /: attributes: {"k": 1} and {"k": 2}' in str(found)

    def test_dimension_names_of_v2_are_not_attributes(self):
        names = ("y", "x")
        a = make(VALUES, dimension_names=names)
        b = make(VALUES, dimension_names=names, zarr_format=2)
        assert "_ARRAY_DIMENSIONS" in json.loads(b.store.get(".zattrs"))
        assert zarrdask.compare(a, b).ok

    def test_the_order_of_attributes_makes_no_difference(self):
        a, b = (make(VALUES, attributes=dict(items)) for items in ([("a", 1), ("b", 2)],) * 2)
        b.attrs.clear()
        b.attrs.update({"b": 2, "a": 1})
        assert zarrdask.compare(a, b).ok

    def test_hierarchies(self):
        stores = [{}, {}]
        for store in stores:
            root = zarrdask.create_group(store)
            root.create_array("g/a", shape=3, dtype="i4")[...] = 1
            root.create_array("b", shape=3, dtype="i4")[...] = 1
        a, b = stores
        assert zarrdask.compare(a, b).ok
        other = zarrdask.open_group(b, mode="r+")
        other.create_array("only", shape=1, dtype="i4")
        other["g"].attrs["k"] = 1
        del other["b"]
        other.create_group("b")
        found = zarrdask.compare(a, b)
        assert [str(each) for each in found.differences] == [
            "b: node: array and group",
            "only: node: missing and present",
            'g: attributes: {} and {"k": 1}',
        ]
        assert [each.path for each in found.arrays] == ["g/a"]
        assert not found.same_elements

    def test_below_other_paths(self):
        a, b = zarrdask.create_group({}), zarrdask.create_group({})
        a.create_array("x/z", shape=3, dtype="i4")[...] = 1
        b.create_array("y/v/z", shape=3, dtype="i4")[...] = 1
        found = zarrdask.compare(a["x"], b["y/v"])
        assert found.ok
        assert [each.path for each in found.arrays] == ["z"]

    def test_a_node_that_is_not_valid_is_told(self):
        stores = [{}, {}]
        for store in stores:
            zarrdask.create_group(store).create_array("a", shape=3, dtype="i4")
        stores[1]["a/zarr.json"] = b"{}"
        found = zarrdask.compare(*stores)
        assert [str(each) for each in found.differences] == ["a: node: valid and not valid"]
        assert not found.same_elements


class TestReport:
    def test_it_prints(self, tmp_path):
        a, b = make(VALUES, tmp_path / "a"), make(VALUES, tmp_path / "b")
        assert str(zarrdask.compare(a, b)).splitlines() == [
            f"{tmp_path}/a and {tmp_path}/b: 35 elements in 1 array",
            "the same",
        ]
        b[0, 1] = 0
        assert str(zarrdask.compare(a, b)).splitlines()[1:] == [
            "/: 1 of 35 elements differ, the first at (0, 1): 2.0 and 0.0",
            "NOT THE SAME",
        ]
        assert "NOT THE SAME" in zarrdask.compare(a, b)._repr_html_()

    def test_as_json(self):
        found = json.loads(json.dumps(zarrdask.compare(make(VALUES), make(VALUES + 1)).to_dict()))
        assert found["ok"] is False
        assert found["arrays"][0]["differing"] == 35
        assert found["arrays"][0]["first"] == [0, 0]

    def test_progress_is_told(self, capsys):
        zarrdask.compare(make(VALUES), make(VALUES), progress=True)
        assert "compare" in capsys.readouterr().err
