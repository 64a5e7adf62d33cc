"""The table of predicted and measured costs, and the lines that it is made from."""

import json

import pytest

from benches.proofs import cost as cost_known
from highway_bench.results import Store
from tests.cells import cell

SMALL = [
    cell("trainability", family=family, dataset="digits", recipe=cost_known.RECIPE | {"steps": 2}, match="params")
    for family in ("dense", cost_known.USERS)
]


def test_settings_are_distinct_and_have_a_users_layer():
    cost_known.plugins()
    every = cost_known.settings()
    assert len(set(every)) == len(every) == len({(one.family, one.block, one.depth) for one in every})
    assert cost_known.USERS in {one.family for one in every}


@pytest.mark.slow
def test_a_setting_is_measured_once(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cost_known, "settings", lambda: SMALL)
    rows = tmp_path / cost_known.FILE
    cost_known.main(["--rows", str(rows), "--minutes", "0"])
    assert not rows.exists()
    assert cost_known.main(["--rows", str(rows)]) == 0
    written = rows.read_text()
    first, users = map(json.loads, written.splitlines())
    assert (first["family"], users["family"]) == ("dense", cost_known.USERS)
    assert first["predicted_bytes"] == first["peak_bytes"]  # so shallow that the same network is measured
    assert first["seconds"] > 0 < first["predicted_seconds"]
    monkeypatch.setattr(cost_known, "measured", lambda trainings, store: pytest.fail("measured again"))
    cost_known.main(["--rows", str(rows)])
    assert rows.read_text() == written
    assert "| dense | 1 | 1 | 1.00 to 1.00 |" in capsys.readouterr().out


@pytest.mark.slow
def test_a_training_that_diverged_has_no_time(tmp_path, monkeypatch):
    hopeless = SMALL[0].but(block="residual", depth=40, recipe=cost_known.RECIPE | {"rate": 1e6, "steps": 20})
    monkeypatch.setattr(cost_known, "predictions", lambda cell: {})
    with Store(tmp_path / "store.sqlite") as store:
        (line,) = cost_known.measured([hopeless], store)
    assert line["seconds"] is None
    assert line["peak_bytes"] > 0


@pytest.mark.slow
def test_a_setting_that_failed_is_named(tmp_path, monkeypatch, capsys):
    """Its networks need more memory than there is."""
    monkeypatch.setattr(cost_known, "settings", lambda: [SMALL[0].but(depth=10**9)])
    monkeypatch.setattr(cost_known, "predictions", lambda cell: {})
    assert cost_known.main(["--rows", str(tmp_path / cost_known.FILE)]) == 1
    assert "oom (not run" in capsys.readouterr().err
    assert not (tmp_path / cost_known.FILE).exists()


def test_the_table_has_the_range_of_each_ratio(tmp_path):
    path = tmp_path / cost_known.FILE
    assert cost_known.judge(path)[2] == ""
    line = {"family": "dense", "machine": "a-cpu", "commit": "c" * 40, "peak_bytes": 100, "seconds": 2.0}
    line |= {"closed_form_bytes": 150, "closed_form_seconds": 6.0}
    both = [{"predicted_bytes": 95, "predicted_seconds": 1.0}, {"predicted_bytes": 104, "predicted_seconds": 3.0}]
    older = {"predicted_bytes": 9, "predicted_seconds": 9.0, "commit": "b" * 40}
    diverged = {"predicted_bytes": 100, "predicted_seconds": 1.0, "seconds": None}
    path.write_text("".join(json.dumps(line | one) + "\n" for one in (older, *both, diverged)))
    text = "\n".join(cost_known.judge(path))
    assert "| dense | 3 | 2 | 0.950 to 1.04 | 1.50 to 1.50 | 0.500 to 1.50 | 3.00 to 3.00 |" in text
    assert "a-cpu at cccccccc" in text
