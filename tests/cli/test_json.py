"""``--json``: the keys of every command and the kinds of their values are frozen, numbers are numbers.

A key that goes, and a value that changes its kind or its meaning, raise ``JSON_SCHEMA``. A new key is only added here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from highway_bench.cli import app
from highway_bench.cli._output import JSON_SCHEMA, print_json, show, text_table
from highway_bench.execution.runner import Summary
from highway_bench.results import COLUMNS, Status
from highway_bench.results.schema import JSON_KINDS
from highway_bench.studies.reproduce.base import Conclusion, reproductions
from highway_bench.studies.reproduce.request import Request
from highway_bench.studies.reproduce.running import Reproduced

Invoke = Callable[..., Any]

STRING, NUMBER, FLAG, OBJECT = "string", "number", "flag", "object"
NO_STRING, NO_NUMBER = "string or null", "number or null"
ANY = "any"  # a user's option: a number, a text, a list

ENTRY = {"name": STRING, "summary": STRING, "source": STRING, "options": OBJECT, "module": STRING}
BLOCK = ENTRY | {
    "equation": STRING,
    "group": STRING,
    "evidence": STRING,
    "init_state": STRING,
    "starts": OBJECT,
    "gates": NUMBER,
    "norms": NUMBER,
}
FAMILY = ENTRY | {"transform": STRING, "kind": STRING}
ARCHITECTURE = {
    "name": STRING,
    "summary": STRING,
    "source": STRING,
    "inputs": [NUMBER],
    "outputs": NUMBER,
    "module": STRING,
}
TASK = {
    "name": STRING,
    "summary": STRING,
    "version": STRING,
    "metrics": [{"name": STRING, "unit": STRING, "better": STRING, "label": STRING}],
    "words": [STRING],
    "module": STRING,
}
WORD = {"name": STRING, "tasks": [STRING], "type": STRING, "values": STRING, "summary": STRING}
DATASET = ENTRY | {"missing": NO_STRING}
PROFILE = {"name": STRING, "summary": STRING, "tasks": [STRING]}

CELL = {
    "task": STRING,
    "block": STRING,
    "family": STRING,
    "depth": NUMBER,
    "width": NUMBER,
    "nominal_width": NUMBER,
    "match": STRING,
    "block_options": OBJECT,
    "family_options": OBJECT,
    "start": NO_STRING,
    "batch_size": NUMBER,
    "seq_len": NO_NUMBER,
    "phase": NO_STRING,
    "dtype": STRING,
    "device": STRING,
    "mode": STRING,
    "dataset": NO_STRING,
    "recipe": OBJECT,
    "trial": NO_NUMBER,
    "seed": NUMBER,
    "threads": NUMBER,
}
ENDING = {"cell": CELL, "status": STRING, "message": NO_STRING}
ROW = {
    name: ANY if name in JSON_KINDS else NO_STRING if kind == "TEXT" else NO_NUMBER
    for name, (kind, _) in COLUMNS.items()
}

NETWORK = {
    "block": STRING,
    "equation": STRING,
    "family": STRING,
    "transform": STRING,
    "dataset": NO_STRING,
    "depth": NUMBER,
    "width": NUMBER,
    "nominal_width": NUMBER,
    "match": STRING,
    "mismatch": NUMBER,
    "input": [NUMBER],
    "params": NUMBER,
    "flops": NUMBER,
    "layer_params": NUMBER,
    "layer_flops": NUMBER,
    "layers": [
        {
            "name": STRING,
            "module": STRING,
            "level": NUMBER,
            "output": [NUMBER],
            "params": NUMBER,
            "flops": NUMBER,
            "repeats": NUMBER,
        }
    ],
}
POWER = {"n": NUMBER, "effect": NO_NUMBER, "power": NO_NUMBER, "smallest": NO_NUMBER, "needed": NO_NUMBER}
POWER |= {"steady": NO_NUMBER}
REGION = {"least": NO_NUMBER, "most": NO_NUMBER, "closed": FLAG}
CLAIM = {
    "published": STRING,
    "source": STRING,
    "evidence": STRING,
    "rule": STRING,
    "quantity": STRING,
    "statistic": STRING,
    "confidence": NUMBER,
    "guard": STRING,
    "irrefutable": STRING,
    "needs": STRING,
    "least": NUMBER,
    "region": REGION,
    "refuted": [REGION],
    "unit": STRING,
    "stated": NO_NUMBER,
    "n": NUMBER,
    "version": NUMBER,
    "date": STRING,
    "power": POWER,
}
FINDING = CLAIM | {
    "measured": STRING,
    "quantities": [
        {"name": STRING, "value": NO_NUMBER, "low": NO_NUMBER, "high": NO_NUMBER, "n": NUMBER, "unit": STRING}
    ],
    "verdict": STRING,
    "why": STRING,
}
HISTORY_CELL = {"block": STRING, "family": STRING, "depth": NUMBER, "size": STRING}
LEFT_OUT = {**HISTORY_CELL, "reason": STRING, "failed": FLAG}
FOLLOWED = {"series": STRING, **HISTORY_CELL, "machine": STRING}

ADVICE = {
    "layer": STRING,
    "kind": STRING,
    "depth": NUMBER,
    "joins": NUMBER,
    "width": NUMBER,
    "batch_size": NUMBER,
    "minutes": NUMBER,
    "data": STRING,
    "loss": NO_STRING,
    "chance_loss": NUMBER,
    "optimiser": STRING,
    "device": STRING,
    "repetition": NUMBER,
    "bytes": NUMBER,
    "workers": NUMBER,
}

SMALL = ("memory", "--profile", "smoke", "--family", "dense", "--block", "plain", "--workers", "1")
ONCE = [word for recipe in ("seconds=0", "samples=2", "processes=1", "limit=0") for word in ("--recipe", recipe)]
COST = {"cells": NUMBER, "stored": NUMBER, "seconds": NUMBER, "bytes": NUMBER}
COMMANDS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "list": (
        (),
        {
            "blocks": [BLOCK],
            "families": [FAMILY],
            "architectures": [ARCHITECTURE],
            "tasks": [TASK],
            "words": [WORD],
            "datasets": [DATASET],
            "profiles": [PROFILE],
        },
    ),
    "answer": (
        ("mlp", "--depth", "50"),
        {
            "kind": STRING,
            "for": STRING,
            "sentence": STRING,
            "depths": [{"depth": NUMBER, "take": STRING, "as_good": [STRING], "rows": [OBJECT]}],
        },
    ),
    "export": (("rezero", "--depth", "48"), {"connection": STRING, "depth": NUMBER, "text": STRING}),
    "show": (("highway", "--dataset", "digits", "--depth", "2"), NETWORK | {"equal": NETWORK | {"equal": "null"}}),
    "run": (
        (*SMALL, "--mode", "cudagraph"),  # skipped, which no profile expects
        {
            "run_id": STRING,
            "store": STRING,
            "cells": NUMBER,
            "counts": OBJECT,
            "measured": NUMBER,
            "stored": NUMBER,
            "seconds": NUMBER,
            "exit_status": NUMBER,
            "failures": [ENDING],
            "unexpected": [ENDING],
        },
    ),
    "run --dry-run": (SMALL, COST | {"store": STRING, "cells": [CELL]}),
    "report": ((), {"page": STRING, "figures": [STRING], "tables": [STRING]}),
    "report --latex": (("tables",), {"page": "null", "figures": [STRING], "tables": [STRING]}),
    "report --one-file": (("page.html",), {"page": STRING, "figures": [STRING], "tables": [STRING]}),
    "reproduce": (
        (),
        {
            "reproductions": [
                {"name": STRING, "title": STRING, "source": STRING, "options": [STRING], "scales": [STRING]}
            ]
        },
    ),
    "decide --dry-run": (
        (),
        {
            "candidates": [
                {
                    "family": STRING,
                    "block": STRING,
                    "start": STRING,
                    "width": NUMBER,
                    "depths": [NUMBER],
                    "steps": NUMBER,
                }
            ],
            "usual": NUMBER,
            "left": NUMBER,
            "core_hours": NUMBER,
        },
    ),
    "compare-my-block --dry-run": (
        ("highway_bench.blocks.rezero",),
        {"block": STRING, "candidates": [{"family": STRING, "width": NUMBER, "depths": [NUMBER]}]},
    ),
    "advise --dry-run": (
        ("dense", "--depth", "2", "--block", "plain"),
        ADVICE | {"connections": [{"block": STRING, "start": STRING, "width": NUMBER}], "notes": [STRING]},
    ),
    "peers --dry-run": (("sequential",), COST | {"store": STRING, "cells": [CELL]}),
    "peers": (
        ("two-linear-maps", "--width", "4", "--depth", "1", "--batch-size", "2", "--mode", "eager", *ONCE),
        {
            "store": STRING,
            "comparisons": [
                {
                    **dict.fromkeys(
                        ("peer", "version", "block", "family", "phase", "mode", "device", "machine"), STRING
                    ),
                    **dict.fromkeys(("depth", "width", "batch_size"), NUMBER),
                    **dict.fromkeys(("step_time", "peer_time", "saved_activations", "peer_saved"), NUMBER),
                    **dict.fromkeys(("status", "verdict"), STRING),
                    "difference": NUMBER,
                    "message": NO_STRING,
                    "ratio": {"value": NUMBER, "low": NO_NUMBER, "high": NO_NUMBER},
                    "gpu_ratio": {"value": NO_NUMBER, "low": NO_NUMBER, "high": NO_NUMBER},
                }
            ],
            "failures": [ENDING],
        },
    ),
    "reproduce --names": ((), {"names": [STRING]}),
    "reproduce flops --dry-run": ((), COST | {"usual": FLAG, "claims": [CLAIM | {"power": "null"}]}),
    "reproduce inits --dry-run": ((), COST | {"usual": FLAG, "claims": [CLAIM]}),
    "reproduce flops": ((), {"name": STRING, "findings": [FINDING], "files": [STRING], "counts": OBJECT}),
    "new-block": (("my-gate",), {"name": STRING, "file": STRING, "in_tree": FLAG}),
    "check": (
        ("highway", "--family", "dense"),
        {
            "block": STRING,
            "passed": FLAG,
            "seconds": NUMBER,
            "results": [{"check": STRING, "family": STRING, "problem": NO_STRING, "note": NO_STRING}],
        },
    ),
    "results show": ((), {"rows": [ROW]}),
    "results export": (("rows.csv",), {"file": STRING, "rows": NUMBER}),
    "results export --by-run": (("data",), {"folder": STRING, "files": [STRING], "bytes": NUMBER}),
    "results compact": (("docs/data",), {"file": STRING}),
    "results import": (("docs/data",), {"store": STRING, "cells": NUMBER}),
    "results merge": (
        ("all.sqlite", "reports/results.sqlite"),
        {
            "store": STRING,
            "cells": NUMBER,
            "stores": [{"store": STRING, "added": NUMBER, "replaced": NUMBER, "same": NUMBER, "older": NUMBER}],
        },
    ),
    "results check": ((), {"store": STRING, "cells": NUMBER, "problems": [STRING]}),
    "results salvage": (
        ("reports/results.sqlite", "whole.sqlite"),
        {
            "store": STRING,
            "cells": NUMBER,
            "rows": NUMBER,
            "runs": NUMBER,
            "left_out": [STRING],
            "lost_rows": NUMBER,
            "lost_runs": NUMBER,
        },
    ),
    "results prune": (
        ("--dry-run",),
        {"store": STRING, "cells": NUMBER, "rows": NUMBER, "removed": FLAG},
    ),
    "status": (
        (),
        {
            "store": STRING,
            "run_id": STRING,
            "state": STRING,
            "process": NUMBER,
            "started": STRING,
            "updated": STRING,
            "command": [STRING],
            "cells": NUMBER,
            "counts": OBJECT,
            "done": NUMBER,
            "failed": NUMBER,
            "left": NUMBER,
            "running": [STRING],
            "failures": [{"cell": STRING, "status": STRING, "message": NO_STRING}],
        },
    ),
    "data list": ((), {"data_folder": NO_STRING, "cache_folder": STRING, "datasets": [DATASET]}),
    "data fetch": (("digits",), {"name": STRING, "fetched": NO_STRING}),
    "data check": (
        ("digits",),
        {
            "datasets": [
                {
                    "name": STRING,
                    "train": [NUMBER],
                    "test": [NUMBER],
                    "input": STRING,
                    "target": STRING,
                    "outputs": NUMBER,
                    "chance_loss": NUMBER,
                    "chance_accuracy": NO_NUMBER,
                }
            ]
        },
    ),
    "history init": ((), {"written": [STRING]}),
    "history run": (
        (),
        {
            "machine": STRING,
            "files": [STRING],
            "values": OBJECT,
            "without": [STRING],
            "failed": [STRING],
            "dirty": FLAG,
            "lines": [STRING],
        },
    ),
    "history import": (("folder",), {"written": [STRING], "lines": [STRING]}),
    "history publish": ((), {"index": STRING, "machines": [STRING], "points": NUMBER, "lines": [STRING]}),
    "history gate": (
        (),
        {
            "findings": [
                {
                    "verdict": STRING,
                    **FOLLOWED,
                    "before": NUMBER,
                    "after": NUMBER,
                    "commit": STRING,
                    "good": STRING,
                    "trend": FLAG,
                    "ratio": {"value": NUMBER, "low": NUMBER, "high": NUMBER},
                    "waited": NUMBER,
                    "remark": STRING,
                }
            ],
            "lost": [{**FOLLOWED, "reason": STRING}],
            "judged": NUMBER,
            "machines": [STRING],
            "lines": [STRING],
            "load": STRING,
            "culprits": [
                {"commit": STRING, "subject": STRING, "commits": NUMBER, "series": NUMBER, "blocks": [STRING]}
            ],
        },
    ),
    "history noise": (
        (),
        {
            "pairs": NUMBER,
            "cells": [
                {
                    **HISTORY_CELL,
                    "ratio": NUMBER,
                    "sd": NUMBER,
                    "pairs_needed": NUMBER,
                }
            ],
            "left_out": [LEFT_OUT],
        },
    ),
    "history compare": (
        ("HEAD", "HEAD"),
        {
            "steps": [
                {
                    **HISTORY_CELL,
                    "first": NUMBER,
                    "second": NUMBER,
                    "ratio": NUMBER,
                    "low": NUMBER,
                    "high": NUMBER,
                    "ratios": [NUMBER],
                    "waited": NUMBER,
                    "verdict": STRING,
                }
            ],
            "counts": [{**FOLLOWED, "before": NUMBER, "after": NUMBER}],
            "left_out": [LEFT_OUT],
        },
    ),
}
WITHOUT_JSON = {"serve"}  # runs until it is interrupted


def kind_of(value: Any) -> str:
    """What JSON calls a value; a flag is no number."""
    kinds = {bool: FLAG, int: NUMBER, float: NUMBER, str: STRING, dict: OBJECT, list: "list", type(None): "null"}
    return kinds[type(value)]


def departures(value: Any, contract: Any, where: str = "") -> list[str]:
    """Where ``value`` is not as ``contract`` says; in a list, each element is."""
    if isinstance(contract, list):
        if not isinstance(value, list):
            return [f"{where}: {kind_of(value)}, not a list"]
        return [one for index, item in enumerate(value) for one in departures(item, contract[0], f"{where}[{index}]")]
    if isinstance(contract, dict):
        if not isinstance(value, dict):
            return [f"{where}: {kind_of(value)}, not an object"]
        wrong = [f"{where}.{name}: only in one of them" for name in sorted(value.keys() ^ contract.keys())]
        both = [name for name in contract if name in value]
        return wrong + [one for name in both for one in departures(value[name], contract[name], f"{where}.{name}")]
    if contract == ANY or kind_of(value) in contract.split(" or "):
        return []
    return [f"{where}: {kind_of(value)}, not {contract}"]


@pytest.fixture
def reproduced(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reproduction that was measured already."""
    finding = reproductions.get("inits").claims(Request())[0].judge([])
    summary = Summary("run", {Status.OK: 1}, 1, 0, 1.0, {})
    done = Reproduced(reproductions.get("flops"), Conclusion(findings=[finding]), summary, [here / "findings.md"])
    monkeypatch.setattr("highway_bench.studies.reproduce.running.reproduce", lambda *_, **__: done)


@pytest.mark.parametrize("command", COMMANDS)
def test_keys_and_kinds(command: str, invoke: Invoke, request: pytest.FixtureRequest) -> None:
    words, contract = COMMANDS[command]
    needs = {
        "history": "history",
        "results": "store",
        "status": "store",
        "report": "store",
        "reproduce": "reproduced",
    }
    if command.split()[0] in needs:
        request.getfixturevalue(needs[command.split()[0]])
    done = invoke(*command.split(), *words, "--json")
    printed = json.loads(done.stdout)
    assert next(iter(printed)) == "schema"
    assert departures(printed, {"schema": NUMBER} | contract) == [], done.stderr
    assert printed["schema"] == JSON_SCHEMA == 5


def leaves(group: Any, path: tuple[str, ...] = ()) -> set[str]:
    """Every command of ``group`` that is no group itself."""
    inner = getattr(group, "commands", None)
    if inner is None:
        return {" ".join(path)}
    return {leaf for name, command in inner.items() for leaf in leaves(command, (*path, name))}


def test_every_command_is_there_and_prints_json() -> None:
    named = {case.partition(" --")[0] for case in COMMANDS}
    assert named == leaves(get_command(app)) - WITHOUT_JSON | {"reproduce flops", "reproduce inits"}


def test_a_result_is_printed_in_one_form_alone(capsys: pytest.CaptureFixture[str]) -> None:
    def not_asked_for() -> Any:
        pytest.fail("the other form is not asked for")
        yield

    show({"value": 1}, not_asked_for(), as_json=True)
    assert json.loads(capsys.readouterr().out)["value"] == 1
    show(not_asked_for, ["a\x1b[2J", text_table("Cells", ["name"], [["[red]"], [None]])], as_json=False)
    first, title, *_, name, empty = capsys.readouterr().out.splitlines()
    assert (first, title.strip(), name.strip(), empty.strip()) == ("a\\x1b[2J", "Cells", "[red]", "")


def test_what_json_lacks_is_no_text() -> None:
    with pytest.raises(TypeError):
        print_json({"value": 1j})
    with pytest.raises(ValueError, match="nan"):
        print_json({"value": float("nan")})


def test_departures_are_seen() -> None:
    """The comparison itself: a number as text, a flag as a number, keys too many and too few."""
    contract = {"a": NUMBER, "b": [STRING], "c": FLAG}
    assert departures({"a": 1, "b": ["x"], "c": True}, contract) == []
    assert departures({"a": "1", "b": [2], "c": 0}, contract) == [
        ".a: string, not number",
        ".b[0]: number, not string",
        ".c: number, not flag",
    ]
    assert departures({"a": True, "b": "x", "d": 1}, contract) == [
        ".c: only in one of them",
        ".d: only in one of them",
        ".a: flag, not number",
        ".b: string, not a list",
    ]
