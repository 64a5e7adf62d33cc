"""Results on data of the user's own belong to the items: not to a path, a name or a source."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from highway_bench.cell import Cell
from highway_bench.data import datasets
from highway_bench.execution.schedule import Schedule
from highway_bench.plugins import load_plugins
from highway_bench.results import Store

SHEEP = "".join(f"{number} sheep\n" for number in range(200))

PLUG_IN = """
import torch
from dataclasses import dataclass
from pathlib import Path
from highway_bench.data import Data, DataSet, Split, register_dataset

@register_dataset("read-from-a-file", summary="labels in a file", source="a test")
@dataclass(frozen=True)
class Labels(DataSet):
    file: str
    input_kind, target_kind, input_shape, outputs, chance_loss = "image", "class", (1, 1, 2), 2, 0.5

    def load(self, *, seed=0):
        labels = torch.tensor(list(map(int, Path(self.file).read_text())))
        part = Split(torch.zeros(len(labels), 1, 1, 2), labels)
        return Data(part, part)
"""


def key(store: Store, dataset: str, **options: str) -> str:
    recipe = {"steps": 2, "rate": 0.1, "dataset": options}
    family = "bilstm" if dataset == "language" else "dense"
    cell = Cell(task="trainability", block="plain", family=family, depth=1, width=4, nominal_width=4, recipe=recipe)
    schedule = Schedule(store)
    schedule.add({cell.but(dataset=dataset): ()})
    (item,) = schedule.ready()
    return item.digest


def test_a_text_that_is_replaced_is_another_one(store: Store, tmp_path: Path) -> None:
    text, moved = tmp_path / "text.txt", tmp_path / "moved.txt"
    text.write_text(SHEEP)
    before = key(store, "language", path=str(text))
    text.rename(moved)
    assert key(store, "language", path=str(moved)) == before
    text.write_text(SHEEP.replace("sheep", "goats"))
    assert key(store, "language", path=str(text)) != before


@pytest.fixture
def plug_in(tmp_path: Path) -> Iterator[Path]:
    """The folder of a plug-in with a data set, which is registered until the test ends."""
    (tmp_path / "labels_in_a_file.py").write_text(PLUG_IN)
    load_plugins([str(tmp_path / "labels_in_a_file.py")])
    yield tmp_path
    datasets.unregister("read-from-a-file")


def test_a_plug_ins_data_belong_to_what_it_reads(store: Store, plug_in: Path) -> None:
    labels = plug_in / "labels"
    labels.write_text("0101010101")
    before = key(store, "read-from-a-file", file=str(labels))
    with (plug_in / "labels_in_a_file.py").open("a") as file:
        file.write("\nUNUSED = 1\n")
    importlib.reload(sys.modules["labels_in_a_file"])
    assert key(store, "read-from-a-file", file=str(labels)) == before
    labels.write_text("1101010100")
    assert key(store, "read-from-a-file", file=str(labels)) != before
