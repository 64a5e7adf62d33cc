"""The run of a comparison, its rows and its tables."""

import pytest

import highway_bench as hb
from highway_bench.peers.table import peer_table, peer_tables, verdict
from highway_bench.plan.plan import Plan
from highway_bench.results.schema import Status
from tests.inline_engine import InlineEngine

SMALL = {"width": [4], "depth": 1, "batch_size": 2, "mode": ["eager"], "device": "cpu"}
QUICK = {"seconds": 0, "samples": 2, "processes": 2, "limit": 0}


def test_a_comparison_is_stored_and_printed(cells, tmp_path):
    store = tmp_path / "peers.sqlite"
    first = hb.compare_peers(store, peer=["fused-map", "two-linear-maps"], recipe=QUICK, **SMALL)
    assert first.summary.counts == {Status.OK: 2}
    again = hb.compare_peers(store, peer=["fused-map"], recipe=QUICK, **SMALL)
    assert (again.summary.stored, again.summary.measured) == (1, 0)

    table = peer_table(first.rows)
    assert list(table["peer"]) == ["fused-map", "two-linear-maps"]
    assert table["ratio_low"].notna().all()
    assert list(table["saved_ratio"]) == [1.0, 1.0]  # one layer, whose x is the input
    (shown,) = peer_tables(table)
    assert shown.title == "highway, dense"
    assert [row[0].split()[0] for row in shown.entries] == ["fused-map", "two-linear-maps"]
    near = table.assign(ratio=1.0012, ratio_low=1.0004, ratio_high=1.0021)
    assert "1.0012 [1.0004, 1.0021]" in peer_tables(near)[0].entries[0]


@pytest.mark.parametrize(
    ("value", "low", "high", "expected"),
    [
        (0.9, 0.85, 0.95, "faster"),
        (1.05, 1.01, 1.09, "slower"),
        (1.0, 0.95, 1.05, "no difference detected"),
        (0.8, 0.5, 1.3, "undecided"),
        (0.8, float("nan"), float("nan"), "undecided"),
    ],
)
def test_verdicts(value, low, high, expected):
    assert verdict(value, low, high) == expected


def test_a_package_that_is_not_installed_is_a_row_without_numbers(cells, monkeypatch, tmp_path):
    monkeypatch.setattr("highway_bench.peers.base.Peer.version", None)
    plan = Plan(cells("keras"), ("highway_bench.peers.task",), loads=False)
    table = peer_table(plan.run(engine=InlineEngine(tmp_path)).rows)
    assert (list(table["status"]), list(table["version"])) == ([Status.SKIPPED], [None])
    (shown,) = peer_tables(table)
    assert "keras is not installed" in shown.entries[0][-1]
