"""``list``: every entry of every registry, for people and for programs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from highway_bench.architectures import architectures
from highway_bench.blocks import blocks
from highway_bench.catalogue import catalogue
from highway_bench.cli.entries import COLUMNS, IMPORTED, Section, text_of
from highway_bench.data import datasets
from highway_bench.declared import FILES, declared, declared_in
from highway_bench.errors import BadInput
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


@pytest.mark.parametrize("section", FILES)
def test_the_source_says_what_is_registered(section: str) -> None:
    keys = set(COLUMNS[Section(section)].values()) - IMPORTED
    own = f"highway_bench.{FILES[section].partition('/')[0]}."  # other tests import plug-ins
    read, registered = declared(section), [one for one in catalogue(section) if one.get("module", own).startswith(own)]
    for key in keys:
        assert [text_of(entry[key]) for entry in read] == [text_of(entry[key]) for entry in registered]


def test_an_installed_package_adds_its_entries(here: Any, shell: Any) -> None:
    (here / "its_blocks.py").write_text(
        "from highway_bench.blocks import Block, register_block\n"
        "@register_block('its-own', equation='y = x', source='none', summary='none', starts=())\n"
        "class Own(Block): pass\n"
    )
    package = here / "its_blocks-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: its-blocks\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[highway_bench.blocks]\nits-own = its_blocks\n")
    assert "its-own" in shell("list", "blocks").stdout


def test_a_file_that_is_no_python_is_named(tmp_path: Any) -> None:
    (tmp_path / "broken.py").write_text("class :\n")
    with pytest.raises(BadInput, match=r"broken\.py failed to import: SyntaxError"):
        declared_in([tmp_path / "broken.py"])


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
