"""Guard: what must stay while files move and code goes: cells with their keys, rules of claims, and the known answers.

    python -m tests.guard                  # compare with tests/guard.json
    python -m tests.guard --record         # write it again, where a change is wanted
    python -m tests.guard --since COMMIT   # compare with the file, and with the answers, of an earlier commit

The file has a hash of the keys of many cells for each entry of a registry, and a hash of every cell and of every rule
of each study. What an earlier commit has is compared; entries that came later are left out. The answers are compared
row by row.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Container, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from highway_bench.architectures import architectures
from highway_bench.blocks import blocks
from highway_bench.cell import Cell
from highway_bench.data import datasets
from highway_bench.execution.key import cell_key, versions_of
from highway_bench.families import families
from highway_bench.registry import load_plugin
from highway_bench.results.schema import COLUMNS
from highway_bench.source import SourceTree, hash_of
from highway_bench.studies.decide.protocol import PARTS, get_part
from highway_bench.studies.reproduce.base import reproductions
from highway_bench.studies.reproduce.running import request_for
from highway_bench.tasks import tasks

FILE = Path(__file__).with_suffix(".json")
ROOT = FILE.parents[1]
ANSWERS = "highway_bench/results/committed/answers.parquet"
SIZE: dict[str, Any] = {"depth": 3, "width": 8, "nominal_width": 8, "batch_size": 4, "seed": 1}
NO_ROWS = pd.DataFrame(columns=list(COLUMNS))
OPEN = {"seconds", "code"}  # their cells follow from the results of language, and from this Python's own library


def present(known: Container[str] | None = None) -> dict[str, str]:
    """By entry and study, how many cells or rules it has, and their hash. Where a hash is over all blocks or families,
    it is over the ``known`` ones, if these are given."""
    torch.set_num_threads(1)  # which some studies put into their cells
    os.environ.pop("HIGHWAY_BENCH_DATA", None)  # one trains on other digits where all of MNIST is there
    for plugin in ("highway_bench.peers.task", *(one for name in reproductions for one in study(name).plugins)):
        load_plugin(plugin)
    return dict(sorted({**dict(of_registries(known)), **dict(of_studies())}.items()))


def of_registries(known: Container[str] | None) -> Iterator[tuple[str, str]]:
    def names(registry: Iterable[str], kind: str) -> list[str]:
        return [name for name in registry if known is None or f"{kind} {name}" in known]

    every_block, every_family = names(blocks, "block"), names(families, "family")
    first = every_family[0]
    for task in tasks:
        yield f"task {task}", of_cells(cell(task, block, first) for block in every_block)
    for block in every_block:
        yield f"block {block}", of_cells(cell("propagation", block, family) for family in every_family)
    for family in every_family:
        yield f"family {family}", of_cells(cell("memory", block, family) for block in every_block)
    for dataset in datasets:
        yield f"data set {dataset}", of_cells([cell("trainability", "plain", first).but(dataset=dataset)])
    for architecture in architectures:
        layout = {"recipe": {"layout": architecture}}
        yield f"architecture {architecture}", of_cells([cell("cost", "plain", first).but(**layout)])


def of_studies() -> Iterator[tuple[str, str]]:
    for name in reproductions:
        for scale in study(name).scales:
            request = request_for(name, {"scale": scale, "device": "cpu"})
            yield f"reproduce {name} {scale}", of_cells(study(name).usual_cells(request, NO_ROWS))
            rules = [rule(claim) for claim in study(name).claims(request)]
            yield f"rules {name} {scale}", counted(rules)
    for part in PARTS.keys() - OPEN:
        yield f"decide {part}", of_cells(get_part(part).usual_cells())


def rule(claim: Any) -> str:
    """What decides a claim: its regions, runs and error, without words."""
    numbers = (claim.n, claim.least, claim.comparisons, claim.effect)
    refuted = [asdict(one) for one in claim.refuted or ()]
    return json.dumps([str(claim.statistic), claim.unit, numbers, asdict(claim.region), refuted], default=str)


def study(name: str) -> Any:
    return reproductions.get(name)


def cell(task: str, block: str, family: str) -> Cell:
    return Cell(task=task, block=block, family=family, **SIZE)


TREE = SourceTree()


def of_cells(cells: Iterable[Cell]) -> str:
    return counted([cell_key(one, versions=versions_of(one, TREE), torch="2.13", machine="a") for one in cells])


def counted(keys: list[str]) -> str:
    return f"{len(keys)} {hash_of(json.dumps(keys).encode())[:16]}"


def differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return [f"{name}: was {was}, is {after.get(name)}" for name, was in before.items() if was != after.get(name)]


def answers_since(commit: str) -> list[str]:
    """How the known answers differ from a commit's; nothing where the rows that they follow from differ too."""
    if subprocess.run(["git", "diff", "--quiet", commit, "--", "docs/data"], cwd=ROOT, check=False).returncode:
        return []
    before, after = (pd.read_parquet(io.BytesIO(one)) for one in (git(commit, ANSWERS), (ROOT / ANSWERS).read_bytes()))
    try:
        pd.testing.assert_frame_equal(before, after)
    except AssertionError as error:
        return [f"the answers differ: {' '.join(str(error).split())}"]
    return []


def git(commit: str, path: str) -> bytes:
    return subprocess.run(["git", "show", f"{commit}:{path}"], capture_output=True, check=True, cwd=ROOT).stdout


def main() -> str | None:
    parser = argparse.ArgumentParser(description="Compare cells, rules and answers with the recorded ones.")
    parser.add_argument("--record", action="store_true", help="write the present ones")
    parser.add_argument("--since", metavar="COMMIT", help="compare with those of an earlier commit")
    options = parser.parse_args()
    if options.record:
        FILE.write_text(json.dumps(present(), indent=1) + "\n", encoding="utf-8")
        return None
    since = options.since
    before = json.loads(FILE.read_bytes() if since is None else git(since, "tests/guard.json"))
    found = differences(before, present(before))
    return "\n".join(itertools.chain(found, answers_since(since) if since else [])) or None


if __name__ == "__main__":
    sys.exit(main())
