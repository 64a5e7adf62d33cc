"""``list``, ``show``, ``data`` and ``check``: what can be measured, for people and for programs."""

import json
import sys

import pytest

from highway_bench.architectures import architectures
from highway_bench.blocks import blocks
from highway_bench.catalogue import catalogue
from highway_bench.cli._output import text_of
from highway_bench.cli.entries import COLUMNS, IMPORTED, Section
from highway_bench.data import datasets
from highway_bench.declared import FILES, declared, declared_in
from highway_bench.errors import BadInput
from highway_bench.families import families
from highway_bench.scaffold import block_text
from highway_bench.tasks import tasks

SECTIONS = ("blocks", "families", "architectures", "tasks", "datasets")
REGISTRIES = dict(zip(SECTIONS, (blocks, families, architectures, tasks, datasets), strict=True))


@pytest.mark.parametrize("section", REGISTRIES)
def test_names(section, invoke):
    shown = invoke("list", section)
    assert shown.exit_code == 0
    assert all(name in shown.stdout for name in REGISTRIES[section])
    listed = json.loads(invoke("list", section, "--json").stdout)
    assert [entry["name"] for entry in listed[section]] == list(REGISTRIES[section])


@pytest.mark.parametrize("section", FILES)
def test_the_source_says_what_is_registered(section):
    keys = set(COLUMNS[Section(section)]) - IMPORTED
    own = f"highway_bench.{FILES[section].partition('/')[0]}."  # other tests import plug-ins
    read, registered = declared(section), [one for one in catalogue(section) if one.get("module", own).startswith(own)]
    for key in keys:
        assert [text_of(entry[key]) for entry in read] == [text_of(entry[key]) for entry in registered]


def test_an_installed_package_adds_its_entries(here, shell):
    (here / "its_blocks.py").write_text(
        "from highway_bench.blocks import Block, register_block\n"
        "@register_block('its-own', equation='y = x', source='none', summary='none', starts=())\n"
        "class Own(Block): pass\n"
    )
    package = here / "its_blocks-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: its-blocks\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[highway_bench.blocks]\nits-own = its_blocks\n")
    assert "its-own" in shell("list blocks").stdout


def test_a_file_that_is_no_python_is_named(tmp_path):
    (tmp_path / "broken.py").write_text("class :\n")
    with pytest.raises(BadInput, match=r"broken\.py.*SyntaxError"):
        declared_in([tmp_path / "broken.py"])


def test_what_a_plugin_prints_goes_to_stderr(invoke, here):
    (here / "loud_plugin.py").write_text("print('loaded')\n")
    done = invoke("list blocks --json --plugin loud_plugin.py")
    assert json.loads(done.stdout)["blocks"]
    assert done.stderr == "loaded\n"


def test_a_network_as_json(invoke):
    shown = json.loads(invoke("show highway --family conv --depth 10 --width 16 --match width --json").stdout)
    layer = 2 * (9 * 16 * 16 + 16)
    assert (shown["layer_params"], shown["params"]) == (layer, 10 * layer)
    assert shown["flops"] == 10 * 2 * 2 * 9 * 16 * 16 * 16**2
    assert [entry["repeats"] for entry in shown["layers"]] == [10] * len(shown["layers"])
    assert (shown["equal"]["block"], shown["mismatch"]) == ("plain", 0)


def test_a_network_of_ones_own_family(invoke, here):
    (here / "show_layers.py").write_text("from torch import nn\ndef make(width): return nn.Linear(width, width)\n")
    shown = invoke("show residual --family show_layers:make --depth 3")
    assert shown.exit_code == 0
    assert "H = show_layers:make(width)" in shown.stdout


def test_data_that_lack_something(invoke):
    missing = {
        entry["name"]: entry["missing"] for entry in json.loads(invoke("list datasets --json").stdout)["datasets"]
    }
    assert missing["digits"] is None
    assert "path" in missing["text"]
    assert "highway-bench fetch" in missing["sentiment"]
    assert "highway-bench fetch" in invoke("list datasets").stdout


def test_data_are_fetched_and_loaded(here, invoke, monkeypatch):
    with monkeypatch.context() as lacking:
        lacking.setattr("highway_bench.data.digits.Digits.missing", lambda _: "everything")
        lacking.setattr("highway_bench.data.digits.Digits.fetch", lambda _: here / "fetched", raising=False)
        [digits] = json.loads(invoke("fetch digits --json").stdout)["datasets"]
    assert digits["fetched"] == str(here / "fetched")
    assert (digits["train"], digits["outputs"], digits["target"]) == ([1437, 1, 8, 8], 10, "class")
    assert "1,437" in invoke("fetch dig*").stdout


def test_broken_contract(here, invoke):
    """What ``check`` says of a gate that gets no gradient: one row, with the families that have it."""
    text = block_text("bad-gate")
    assert "y: Tensor = x + h * t " in text
    (here / "bad_gate.py").write_text(text.replace("x + h * t ", "x + h * t.detach() "))
    done = invoke("check bad-gate --plugin bad_gate.py --family mlp --family conv-pair")
    blocks.unregister("bad-gate")
    sys.modules.pop("bad_gate", None)
    assert done.exit_code == 1
    assert done.stdout.count("trains everything") == 1
    assert "mlp, conv-pair" in done.stdout
    assert done.stderr.startswith("highway-bench: bad-gate has ")
    assert done.stderr.count("\n") == 1


def test_a_kept_contract_and_the_next_step(invoke):
    done = invoke("check residual --family dense")
    assert done.exit_code == 0
    assert "residual meets the contract" in done.stdout
    assert "Its equation is not checked. Next: highway-bench run --profile smoke --block plain" in done.stdout
