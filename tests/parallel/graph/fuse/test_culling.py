from dask.highlevelgraph import HighLevelGraph

from tests.covering import for_each
from zarrdask.parallel.graph.fuse.culling import culled


@for_each("name", "abcdefgh")
def test_no_layer_is_kept_whole_whatever_their_order(name):
    layers = {layer: {(layer, number): number for number in range(3)} for layer in "abcdefgh"}
    graph = HighLevelGraph(layers, {layer: set() for layer in layers})
    assert set(culled(graph, [(name, 0)])) == {(name, 0)}
