"""What the tests of peers share: the task is registered for them alone, and cells are tiny."""

import pytest

QUICK = {"seconds": 0.0, "samples": 2, "processes": 1, "limit": 0}


@pytest.fixture
def cells():
    """Cells of peers, of two layers of eight units and a batch of three by default."""
    from highway_bench.peers.comparison import plan_of
    from highway_bench.peers.request import PeerRequest
    from highway_bench.tasks import tasks

    def make(*names, **words):
        sizes = {"width": (8,), "depth": 2, "batch_size": 3, "device": "cpu", "recipe": QUICK}
        return plan_of(PeerRequest(peer=names, **{**sizes, "mode": ("eager",), **words})).cells

    yield make
    tasks.unregister("peers")  # other tests count the package's own tasks
