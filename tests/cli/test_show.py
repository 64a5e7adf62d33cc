"""``show``: a network's numbers, with plain's beside."""

from __future__ import annotations

import json
from typing import Any


def test_equal_parameters_of_the_paper(invoke: Any) -> None:
    """Plain 71 against highway 50: 5,112 and 5,100 parameters a layer."""
    shown = invoke("show", "highway", "--depth", "9", "--dataset", "mnist-5k").stdout
    totals = [line for line in shown.splitlines() if line.startswith(("highway ", "plain "))]
    assert "50" in totals[0]
    assert "5,100" in totals[0]
    assert "71" in totals[1]
    assert "5,112" in totals[1]
    assert "a multiply-add is two" in " ".join(shown.split())


def test_json(invoke: Any) -> None:
    shown = json.loads(
        invoke(
            "show", "highway", "--family", "conv", "--depth", "10", "--width", "16", "--match", "width", "--json"
        ).stdout
    )
    layer = 2 * (9 * 16 * 16 + 16)
    assert (shown["layer_params"], shown["params"]) == (layer, 10 * layer)
    assert shown["flops"] == 10 * 2 * 2 * 9 * 16 * 16 * 16**2
    assert [entry["repeats"] for entry in shown["layers"]] == [10] * len(shown["layers"])
    assert shown["equal"]["block"] == "plain"
    assert shown["mismatch"] == 0


def test_own_family(invoke: Any, here: Any) -> None:
    (here / "show_layers.py").write_text("from torch import nn\ndef make(width): return nn.Linear(width, width)\n")
    shown = invoke("show", "residual", "--family", "show_layers:make", "--depth", "3")
    assert shown.exit_code == 0
    assert "H = show_layers:make(width)" in shown.stdout


def test_a_width_that_no_layer_has_is_one_line(invoke: Any) -> None:
    refused = invoke("show", "highway", "--width", "1" + "0" * 400)
    assert refused.exit_code == 2
    assert "width is at most 2,147,483,647" in refused.stderr
