"""Several commands on one store: one at a time measures, the others are refused, and no cell is measured twice."""

from collections import Counter

import pytest

from highway_bench.results import Store
from tests.faults.scale import note
from tests.faults.test_kills import Chain

DRIVERS = 3


@pytest.mark.slow
def test_several_drivers_on_one_store(tmp_path):
    """Each is started again until it has run: the first measures everything, and the others find it stored."""
    chain = Chain(tmp_path)
    cells = chain.cells(1)
    running = [chain.start() for _ in range(DRIVERS)]
    ended = Counter()
    while running:
        codes = [process.wait(600) for process in running]
        ended.update(codes)
        assert codes.count(0) >= 1 or ended[0], "no driver could write"
        running = [chain.start() for code in codes if code != 0]
    assert set(ended) <= {0, 1}
    assert ended[0] == DRIVERS
    assert ended[1] > 0, "no driver was refused"
    with Store(chain.store) as store:
        assert store.problems() == []
        assert len(store.rows(metric="loss")) == len(cells)
    measured = Counter(tuple(line.split()[:3]) for line in chain.log.read_text(encoding="utf-8").splitlines())
    note(
        "drivers on one store",
        drivers=DRIVERS,
        refused=ended[1],
        cells=len(cells),
        measured_twice=measured.total() - len(measured),
    )
    assert measured.total() == len(measured) == len(cells)
