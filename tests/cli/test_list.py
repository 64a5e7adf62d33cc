"""``list``: every entry of every registry, for people and for programs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from highway_bench.architectures import architectures
from highway_bench.blocks import blocks
from highway_bench.data import datasets
from highway_bench.families import families
from highway_bench.tasks import tasks

REGISTRIES = {
    "blocks": blocks,
    "families": families,
    "architectures": architectures,
    "tasks": tasks,
    "datasets": datasets,
}


@pytest.mark.parametrize("section", REGISTRIES)
def test_names(section: str, invoke: Any) -> None:
    shown = invoke("list", section)
    assert shown.exit_code == 0
    assert all(name in shown.stdout for name in REGISTRIES[section])
    listed = json.loads(invoke("list", section, "--json").stdout)
    assert [entry["name"] for entry in listed[section]] == list(REGISTRIES[section])


def test_blocks_have_equation_and_source(invoke: Any) -> None:
    shown = " ".join(invoke("list", "blocks").stdout.split())  # a narrow table breaks long equations
    assert all(name in shown for name in blocks if len(name) < 12)
    listed = {entry["name"]: entry for entry in json.loads(invoke("list", "blocks", "--json").stdout)["blocks"]}
    for name in blocks:
        assert (listed[name]["equation"], listed[name]["source"]) == (
            blocks.get(name).equation,
            blocks.get(name).source,
        )


def test_what_data_lack(invoke: Any) -> None:
    listed = json.loads(invoke("list", "datasets", "--json").stdout)
    missing = {entry["name"]: entry["missing"] for entry in listed["datasets"]}
    assert missing["digits"] is None
    assert "path" in missing["text"]
    assert "highway-bench data fetch sentiment" in missing["sentiment"]


def test_plugin(invoke: Any, here: Any) -> None:
    (here / "bad_plugin.py").write_text("import no_such_module_anywhere\n")
    done = invoke("list", "--plugin", "bad_plugin.py")
    assert done.exit_code == 2
    assert done.stderr == (
        "highway-bench: plug-in 'bad_plugin' failed to import: ModuleNotFoundError: No module named "
        "'no_such_module_anywhere'\n"
    )


def test_what_a_plugin_prints_goes_to_stderr(invoke: Any, here: Any) -> None:
    (here / "loud_plugin.py").write_text("print('loaded')\n")
    done = invoke("list", "blocks", "--json", "--plugin", "loud_plugin.py")
    assert json.loads(done.stdout)["blocks"]
    assert done.stderr == "loaded\n"
