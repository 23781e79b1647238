"""What a plan to rewrite an array draws of itself."""

import numpy as np

from tests.axes import grids_of
from zarrdask.parallel.plan.plan_report import PlanReport
from zarrdask.parallel.plan.rechunk_strategies import schemes
from zarrdask.parallel.plan.strategies import Costs


def test_a_pass_that_packs_is_drawn_with_its_pieces_each_owned_by_its_region():
    grids = grids_of((3000, 4000), 8, (100, 4000), (3000, 200))
    costs = Costs(28 * 2**20)
    report = PlanReport(grids, costs, tuple(schemes(grids, costs)))
    first, second = (stage.regions for stage in report.scheme.stages)
    picture = report.picture(0)
    # Regions of whole rows, cut where those of whole columns end.
    assert (first.counts[1], second.counts[0]) == (1, 1)
    cuts = np.union1d(first.edges[1], second.edges[1])
    assert [slot.end for slot in picture.across.slots] == cuts[1:].tolist()
    assert [slot.end for slot in picture.down.slots] == first.edges[0][1:].tolist()
    assert {cell.label for cell in picture.cells.values()} == {
        f"{row}, 0" for row in range(first.counts[0])
    }
    assert f"{first.size * second.size} merged from several chunks" in dict(picture.legend).values()
