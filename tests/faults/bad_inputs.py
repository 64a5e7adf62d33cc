"""Inputs that are valid but for one field: options, plug-ins, data files, stores and asv's results.

Each is a command with the files that it reads. Nothing in a changed field is valid on purpose, and some of it is by
chance.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import strategies as st

from highway_bench.results.schema import COLUMNS

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")  # no command line can have the others
NAMES = st.one_of(
    st.text(CHARACTERS, max_size=30),
    st.text(CHARACTERS, min_size=1, max_size=3).map(lambda text: text * 2000),
    st.sampled_from(["", "*", "[", "**", "plain*", ":", "a:b", "os:getcwd", "torch.nn:Linear", ".", "é", "ﬁ", "高速"]),
)
FILE_NAMES = NAMES.map(lambda text: text.replace("/", "_")).filter(lambda text: text not in ("", ".", ".."))
NUMBERS = st.one_of(st.integers(), st.integers(1, 200), st.integers(-(10**40), 10**40), st.just(10**400))
WORDS = st.one_of(
    NAMES,
    NUMBERS.map(str),
    st.floats().map(str),
    st.sampled_from(["true", "null", "auto", "tuned", "nan", "-inf", "1e400", "[1]", "{}", '"', "-0", "٣", "1_000"]),
)
JSON = st.one_of(
    st.none(),
    st.booleans(),
    NUMBERS,
    st.floats(),
    NAMES,
    st.lists(st.one_of(st.none(), NUMBERS, NAMES), max_size=3),
    st.dictionaries(NAMES, st.one_of(st.none(), NUMBERS, NAMES), max_size=3),
)
CELLS = st.one_of(
    st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(), NAMES, st.binary(max_size=20), JSON.map(repr)
)


@dataclass(frozen=True)
class BadInput:
    """The words of a command, and what writes the files that it reads into a folder, called first."""

    kind: str
    words: tuple[str, ...]
    prepare: Callable[[Path], None] = field(default=lambda folder: None)


# ------------------------------------------------------------------------------------------------------------ options

RUN = ("run", "--profile", "smoke", "--family", "dense", "--block", "plain", "--dry-run", "--store", "new.sqlite")
TASKS = ("trainability", "memory", "throughput", "propagation", "gates", "cost")
RECIPE = ("steps", "rate", "momentum", "decay", "samples", "seconds", "gain", "together", "optimiser", "loss")
NUMBERED = ("--depth", "--width", "--seed", "--batch-size", "--seq-len", "--threads", "--workers")
NAMED = ("--match", "--dtype", "--device", "--mode", "--phase", "--start", "--dataset", "--rerun", "--shard", "--block")
NAMED += ("--family", "--profile", "--engine", "--plugin", "--address")
OPTION_NAMES = ("gate_bias", "heads", "kernel", "activation", "norm_kind", "expansion", "init", "bias", "groups")


@st.composite
def options(draw):
    """A dry run, or a summary of a network, with one option changed."""
    kind = draw(st.sampled_from(["number", "name", "option", "recipe", "task", "show"]))
    base = RUN if kind == "task" else (RUN[0], draw(st.sampled_from(TASKS)), *RUN[1:])
    match kind:
        case "number":
            change = (draw(st.sampled_from(NUMBERED)), str(draw(NUMBERS)))
        case "name":
            change = (draw(st.sampled_from(NAMED)), draw(NAMES))
        case "option":
            which = draw(st.sampled_from(["--block-option", "--family-option"]))
            change = (which, f"{draw(st.sampled_from(OPTION_NAMES) | NAMES)}={draw(WORDS)}")
        case "recipe":
            change = ("--recipe", f"{draw(st.sampled_from(RECIPE) | NAMES)}={draw(WORDS)}")
        case "task":
            change = (draw(NAMES),)
        case _:
            base = ("show", draw(st.sampled_from(["highway", "residual"])), "--width", "8", "--depth", "2")
            which = draw(st.sampled_from(["--depth", "--width", "--family", "--match", "--block-option", "--dataset"]))
            change = (which, draw(WORDS))
    return BadInput("options", (*base, *change))


# ----------------------------------------------------------------------------------------------------------- plug-ins

PLUGIN = {
    "import": "from highway_bench.blocks import Block, register_block",
    "name": "'my-gate'",
    "equation": "'y = x + H(x)'",
    "source": "''",
    "summary": "'a gate'",
    "gates": "0",
    "group": "'control'",
    "option": "scale: float = 1.0",
    "super": "super().__init__()",
    "transform": "self.transform = site.family.transform(site)",
    "forward": "x + self.transform(x)",
}
CODE = st.one_of(
    NAMES.map(repr),
    JSON.map(repr),
    st.sampled_from(
        ["", "pass", "1 / 0", "(", "yield", "self", "x", "None", "x[0]", "x @ x", "site", "\ttab", "é = 1"]
    ),
    st.sampled_from(["raise SystemExit(3)", "exit()", "raise KeyError", "lambda: 0", "x.sum()", "torch", "import os"]),
)


def plugin_text(parts):
    """The source of a plug-in with a block."""
    return f"""
{parts["import"]}

@register_block({parts["name"]}, equation={parts["equation"]}, source={parts["source"]}, summary={parts["summary"]},
                gates={parts["gates"]}, group={parts["group"]})
class MyGate(Block):
    def __init__(self, site, *, {parts["option"]}) -> None:
        {parts["super"]}
        {parts["transform"]}

    def forward(self, x):
        return {parts["forward"]}
"""


@st.composite
def plugins(draw):
    """A plug-in with one part changed, or that is no Python; its module has a new name each time."""
    part = draw(st.sampled_from([*PLUGIN, "everything"]))
    if part == "everything":
        content = draw(st.one_of(st.binary(max_size=60), st.text(CHARACTERS, max_size=60).map(str.encode)))
    else:
        content = plugin_text(PLUGIN | {part: draw(CODE)}).encode()
    name = f"plugin_{abs(hash(content))}.py"
    command = draw(st.sampled_from([("show", "my-gate", "--width", "8", "--depth", "2"), ("list", "blocks")]))
    return BadInput("plug-ins", (*command, "--plugin", name), lambda folder: write(folder / name, content))


def write(path, content):
    """Write a file, in its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


# --------------------------------------------------------------------------------------------------------- data files

TWEETS = [f"{number}\t{rating}\tSo {word} a day number{number % 3}" for number, (rating, word) in enumerate(
    [(1.5, "good"), (-2.25, "bad"), (0.5, "fine"), (-0.5, "long")] * 6
)]  # fmt: skip
IDX = {
    "train-images-idx3-ubyte": struct.pack(">iiii", 2051, 2, 28, 28) + bytes(2 * 28 * 28),
    "train-labels-idx1-ubyte": struct.pack(">ii", 2049, 2) + bytes(2),
    "t10k-images-idx3-ubyte": struct.pack(">iiii", 2051, 2, 28, 28) + bytes(2 * 28 * 28),
    "t10k-labels-idx1-ubyte": struct.pack(">ii", 2049, 2) + bytes(2),
}


@st.composite
def data_files(draw):
    """A table of texts, or images, with one field of one file changed."""
    if draw(st.booleans()):
        lines = [*TWEETS]
        number, column = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, 3))
        fields = lines[number].split("\t")
        fields[column : column + 1] = [draw(WORDS)]
        lines[number] = "\t".join(fields)
        files = {"sentiment/tweets.tsv": "\n".join(lines).encode()}
        if draw(st.integers(0, 4)) == 0:
            files = {"sentiment/tweets.tsv": draw(st.binary(max_size=80))}
        words = ("fetch", "sentiment", "--option", "corpus=tweets")
    else:
        files = {f"mnist/{name}": content for name, content in IDX.items()}
        name = draw(st.sampled_from([*files]))
        at = draw(st.integers(0, 15))
        files[name] = files[name][:at] + draw(st.binary(max_size=4)) + files[name][at + 4 :]
        words = ("fetch", "mnist")

    def prepare(folder):
        for path, content in files.items():
            write(folder / "data" / path, content)

    return BadInput("data files", words, prepare)


# ------------------------------------------------------------------------------------------------------------- stores

STORE_COMMANDS = (
    ("results", "show"),
    ("results", "check"),
    ("status",),
    ("report", "--out", "page"),
    ("run", "memory", "--profile", "smoke", "--family", "dense", "--block", "plain", "--dry-run"),
)


@st.composite
def stores(draw, sound):
    """A copy of the store ``sound`` with one value changed, or some bytes."""
    command = draw(st.sampled_from([*STORE_COMMANDS, *STORE_COMMANDS[:4]]))
    what = draw(st.sampled_from(["cell", "cell", "record", "meta", "bytes"]))
    row, column = draw(st.integers(1, 8)), draw(st.sampled_from([*COLUMNS]))
    value, text, at = draw(CELLS), draw(JSON.map(to_json)), draw(st.floats(0, 1, exclude_max=True))
    name, content = draw(FILE_NAMES.map(lambda name: name[:60] + ".sqlite")), draw(st.binary(min_size=1, max_size=40))
    name = name if len(name.encode()) < 200 and not name.startswith("-") else "changed.sqlite"
    key = draw(st.sampled_from(["blocks", "tasks", "digests", "command", "started", "machines", "plugins", "cores"]))

    def prepare(folder):
        path = folder / name
        shutil.copyfile(sound, path)
        if what == "bytes":
            with path.open("r+b") as out:
                out.seek(int(at * path.stat().st_size))
                out.write(content)
            return
        with closing(sqlite3.connect(path)) as db, db:
            if what == "cell":
                db.execute(f'UPDATE OR IGNORE "rows" SET "{column}" = ? WHERE rowid = ?', (value, row))
            elif what == "record":
                db.execute(
                    "UPDATE OR IGNORE runs SET provenance = json_set(provenance, ?, json(?))", (f"$.{key}", text)
                )
            else:
                where = ("schema", "progress")[row % 2]
                db.execute("UPDATE OR IGNORE meta SET value = ? WHERE name = ?", (text, where))

    return BadInput("stores", (*command, "--store", name), prepare)


def to_json(value):
    """``value`` as JSON; numbers that JSON lacks as text."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return json.dumps(repr(value))


# ------------------------------------------------------------------------------------------------------ asv's results


@st.composite
def asv_results(draw, root, machine, point):
    """One machine's folder with one field of its files changed, to be imported into the checkout ``root``."""
    files = {"machine.json": machine, "point.json": point}
    name = draw(st.sampled_from([*files, "point.json", "point.json"]))
    changed = json.loads(json.dumps(files[name]))
    path = draw(st.sampled_from(sorted(paths_in(changed), key=repr)))
    *parents, last = path
    part = changed
    for one in parents:
        part = part[one]
    if draw(st.booleans()):
        part[last] = draw(JSON)
    else:
        del part[last]
    text = json.dumps(changed)
    if draw(st.integers(0, 9)) == 0:
        text = text[: draw(st.integers(0, len(text)))]

    def prepare(folder):
        shutil.rmtree(root / "reports", ignore_errors=True)
        for file, data in files.items():
            write(folder / "box" / file, (text if file == name else json.dumps(data)).encode())

    return BadInput("asv results", ("history", "import", "box", "--root", str(root)), prepare)


def paths_in(data, above=()):
    """The path of every field of a JSON value."""
    fields = [*data.items()] if isinstance(data, dict) else [*enumerate(data)]
    found = []
    for key, value in fields:
        found.append((*above, key))
        if isinstance(value, dict | list):
            found += paths_in(value, (*above, key))
    return found
