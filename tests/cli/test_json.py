"""``--json``: the keys of every command and the kinds of their values are frozen, numbers are numbers.

``json_keys.json`` has them by command line. A key that goes, and a value that changes its kind or its meaning, raise
``JSON_SCHEMA``. A new key is only added there.
"""

import json
from pathlib import Path

import pandas as pd
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
from tests.cli.conftest import leaves

ROW = {
    name: "any" if name in JSON_KINDS else "string or null" if kind == "TEXT" else "number or null"
    for name, (kind, _) in COLUMNS.items()
}
KEYS = json.loads(Path(__file__).with_name("json_keys.json").read_bytes())
KEYS["results show"] = {"rows": [ROW]}
NEEDS = {"history": "history", "results": "store", "status": "store", "report": "store", "reproduce": "reproduced"}
KINDS = {bool: "flag", int: "number", float: "number", str: "string", dict: "object", list: "list"}
WITHOUT_JSON = {"serve"}  # runs until it is interrupted


def kind_of(value):
    """What JSON calls a value; a flag is no number."""
    return KINDS.get(type(value), "null")


def departures(value, contract, where=""):
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
    if contract == "any" or kind_of(value) in contract.split(" or "):
        return []
    return [f"{where}: {kind_of(value)}, not {contract}"]


@pytest.fixture
def reproduced(here, monkeypatch):
    """A reproduction that was measured already."""
    inits = reproductions.get("inits")
    finding = inits.claims(Request())[0].judge(pd.DataFrame(columns=[*inits.by, "success"]))
    summary = Summary("run", {Status.OK: 1}, 1, 0, 1.0, {})
    done = Reproduced(reproductions.get("flops"), Conclusion(findings=[finding]), summary, [here / "findings.md"])
    monkeypatch.setattr("highway_bench.studies.reproduce.running.reproduce", lambda *_, **__: done)


@pytest.mark.parametrize("line", KEYS)
def test_keys_and_kinds(line, invoke, request):
    if needs := NEEDS.get(line.partition(" ")[0]):
        request.getfixturevalue(needs)
    done = invoke(line, "--json")
    printed = json.loads(done.stdout)
    assert next(iter(printed)) == "schema"
    assert departures(printed, {"schema": "number"} | KEYS[line]) == [], done.stderr
    assert printed["schema"] == JSON_SCHEMA == 5


@pytest.mark.parametrize("leaf", sorted(leaves(get_command(app)) - WITHOUT_JSON))
def test_every_command_is_there_and_prints_json(leaf):
    assert any(f"{line} ".startswith(f"{leaf} ") for line in KEYS)


def test_a_result_is_printed_in_one_form_alone(capsys):
    def not_asked_for():
        pytest.fail("the other form is not asked for")
        yield

    show({"value": 1}, not_asked_for(), as_json=True)
    assert json.loads(capsys.readouterr().out)["value"] == 1
    show(not_asked_for, ["a\x1b[2J", text_table("Cells", ["name"], [["[red]"], [None]])], as_json=False)
    first, title, *_, name, empty = capsys.readouterr().out.splitlines()
    assert (first, title.strip(), name.strip(), empty.strip()) == ("a\\x1b[2J", "Cells", "[red]", "")


def test_what_json_lacks_is_no_text():
    with pytest.raises(TypeError):
        print_json({"value": 1j})
    with pytest.raises(ValueError, match="nan"):
        print_json({"value": float("nan")})


def test_departures_are_seen():
    """The comparison itself: a number as text, a flag as a number, keys too many and too few."""
    contract = {"a": "number", "b": ["string"], "c": "flag"}
    assert departures({"a": 1, "b": ["x"], "c": True}, contract) == []
    assert len(departures({"a": "1", "b": [2], "c": 0}, contract)) == 3
    assert len(departures({"a": True, "b": "x", "d": 1}, contract)) == 4
