"""Entries: a block measured under a tiny protocol from a file to a card, its check, and its page."""

import math
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from highway_bench.blocks import blocks
from highway_bench.errors import BadInput, UnknownName
from highway_bench.frames.results import Results
from highway_bench.frames.rows import rows_of
from highway_bench.plan.settings import FRESH_SEEDS
from highway_bench.report.choice.ranking import kind_of
from highway_bench.report.choice.table import finals_of, wide_table
from highway_bench.results.parquet import ParquetRows, write_parquet
from highway_bench.results.store import Store
from highway_bench.studies.decide.candidate import starts_of
from highway_bench.studies.decide.rounds import Trainer
from highway_bench.studies.entries import board, columns, enter, folder, protocol
from highway_bench.studies.reproduce.arms import sgd, trained

MINE = '''"""A block of a stranger's."""
from highway_bench.blocks import Block, register_block


@register_block("halved-sum", equation="y = (x + H(x)) / 2", source="arXiv:2601.00001", summary="half the sum")
class Halved(Block):
    def __init__(self, site):
        super().__init__()
        self.transform, self.carry = site.family.transform(site), site.family.carry(site)

    def forward(self, x):
        return (self.carry(x) + self.transform(x)) / 2
'''
DEPTH = 2


@pytest.fixture(scope="module")
def tiny():
    """A column of two dense layers on digits: pre-norm's candidate and the rows of its finals."""
    template = trained(
        "pre-norm",
        "dense",
        depth=DEPTH,
        nominal_width=16,
        batch_size=50,
        dataset="digits",
        recipe=sgd(60, threshold=0.9),
        device="cpu",
    )
    (reference, *_) = starts_of(template, (DEPTH,), (0.3,), fresh=range(5), more=())
    result = Trainer(None, workers=1).measure(reference.run(DEPTH, 0.3, seed) for seed in range(5))
    known = Results(result.rows)
    (row,) = rows_of(wide_table(known))
    column = protocol.EntryColumn(kind_of("dense", "digits"), DEPTH, reference, row)
    return SimpleNamespace(column=column, finals=finals_of(known))


@pytest.fixture
def protocol_of_one(tiny, monkeypatch):
    """The protocol has the tiny column, and one of which nothing is known; checks run in this process."""
    unknown = protocol.EntryColumn(kind_of("resnet", "digits"), 10, tiny.column.reference, {}, "not known yet")
    every = [tiny.column, unknown]
    monkeypatch.setattr(protocol, "known_finals", lambda: tiny.finals)
    monkeypatch.setattr(enter, "check_block", lambda name: [])
    monkeypatch.setattr(board, "load_plugins", lambda files: (blocks.module_of("halved-sum"),))
    for module in (enter, board):
        monkeypatch.setattr(module, "entry_columns", lambda: every)
        monkeypatch.setattr(module, "problems_apart", lambda one, *quick: problems(one, every, quick=bool(quick)))
    return every


def problems(path, columns, *, quick=False):
    return list(board.problems(folder.read_entry(path), columns, quick=quick))


@pytest.fixture
def entered(protocol_of_one, tmp_path, monkeypatch):
    """The entry of a block in a file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    entry, _ = enter.enter("mine.py", paper="arXiv:2601.00001", author="A. B.", out=tmp_path / "entries", workers=1)
    yield entry
    blocks.unregister("halved-sum")


def edit(entry, change):
    """Change the rows of an entry, and draw its card again as an impostor would."""
    rows = ParquetRows(entry.folder / "rows.parquet")
    table = change(rows.frame())
    records = table.astype(object).where(table.notna(), None).to_dict("records")
    write_parquet(records, rows.runs(), entry.folder / "rows.parquet")


@pytest.mark.slow
def test_from_a_file_to_a_card_a_check_and_a_page(entered, protocol_of_one, capsys, monkeypatch):
    names = {path.name for path in entered.folder.iterdir()}
    assert names == {"entry.toml", "rows.parquet", "card.svg", "mine.py"}
    assert (entered.folder / "rows.parquet").stat().st_size < 100_000
    one, unknown = entered.results(protocol_of_one)
    assert one.word in ("better", "worse", "equal", "undecided")
    assert (one.seeds, unknown.word, unknown.seeds) == (5, "not known yet", 0)
    assert one.difference.low < one.difference.value < one.difference.high
    assert one.step_bounds.low < one.step < one.step_bounds.high
    card = (entered.folder / "card.svg").read_text()
    assert all(word in card for word in ("y = (x + H(x)) / 2", "A. B. · arXiv:2601.00001", one.word, "not known yet"))
    assert problems(entered.folder, protocol_of_one) == []

    # After an interruption between the two timings, both are taken again, in turn.
    with Store(next(Path("reports/entries").glob("*.sqlite"))) as store, store._db as db:
        db.execute("DELETE FROM rows WHERE task = 'throughput' AND block = 'halved-sum'")
    again, _ = enter.enter("mine.py", paper="arXiv:2601.00001", author="A. B.", out=Path("entries"), workers=1)
    assert again.results(protocol_of_one)[0].step > 0

    def status(*arguments):
        monkeypatch.setattr("sys.argv", ["board", "--folder", str(entered.folder.parent), *arguments])
        with pytest.raises(SystemExit) as ended:
            board.main()
        return ended.value.code, capsys.readouterr().out

    assert status("--check") == (0, "")
    page = (entered.folder.parent / "README.md").read_text()
    assert re.search(r"\| \[halved-sum\]\(halved-sum/entry.toml\) \| arXiv:2601.00001 \| A. B. \| " + one.word, page)

    # What an impostor may do with the rows.
    whole = (entered.folder / "rows.parquet").read_bytes()
    final = {"test_loss": 10.0}

    def better(table):
        of_block = table["block"].eq("halved-sum") & table["metric"].isin(final) & table["trial"].isna()
        return table.assign(value=table["value"].where(~of_block, table["value"] / 10))

    edit(entered, better)
    assert problems(entered.folder, protocol_of_one)[0].startswith("card.svg is not that")
    (entered.folder / "card.svg").write_text(entered.card(protocol_of_one))
    assert [line for line in problems(entered.folder, protocol_of_one) if "end at" in line]
    (entered.folder / "rows.parquet").write_bytes(whole)
    edit(entered, lambda table: table[~(table["seed"].eq(4) & table["block"].eq("halved-sum"))])
    assert any("lacks 1 trainings" in line for line in problems(entered.folder, protocol_of_one, quick=True))
    (entered.folder / "rows.parquet").write_bytes(whole)
    edit(
        entered, lambda table: pd.concat([table, table[table["seed"].eq(4)].assign(digest=lambda t: t["digest"] + "x")])
    )
    assert any("asks for" in line for line in problems(entered.folder, protocol_of_one, quick=True))
    (entered.folder / "rows.parquet").write_bytes(whole)
    (entered.folder / "card.svg").write_text(card)

    # Entries of another protocol stand apart; a folder that is none does not hide the others.
    (entered.folder.parent / "broken").mkdir()
    (entered.folder.parent / "broken" / "entry.toml").write_text("")
    about = (entered.folder / "entry.toml").read_text()
    (entered.folder / "entry.toml").write_text(about.replace('protocol = "1-', 'protocol = "0-'))
    code, said = status("--check")
    assert (code, "broken is no entry" in said) == (1, True)
    assert "Of other protocols: halved-sum (0-" in (entered.folder.parent / "README.md").read_text()


def test_a_machine_on_which_pre_norm_trains_otherwise_compares_nothing(tiny, monkeypatch):
    finals = tiny.finals.assign(held_out=tiny.finals["held_out"] * 10)
    monkeypatch.setattr(protocol, "known_finals", lambda: finals)
    here = columns.held_out(tiny.finals, tiny.column, "pre-norm")
    with pytest.raises(columns.ReferenceDisagrees, match="nothing is compared"):
        columns.check(tiny.column, here, 0.05)
    monkeypatch.setattr(protocol, "known_finals", lambda: tiny.finals)
    columns.check(tiny.column, here, 0.05)


@pytest.mark.parametrize(
    ("pairs", "agrees"),
    [
        ([(1.0, 1.02), (1.1, 1.0)], True),
        ([(3.0, 1.0), (3.3, 1.0)], False),
        ([(math.inf, 1.0), (1.0, 1.0)], False),
        ([(math.inf, math.inf), (1.0, 1.0)], True),
        ([(math.inf, math.inf)] * 2, True),
        ([(1.0, math.nan), (1.0, 1.0)], False),
    ],
)
def test_a_repetition_agrees_within_the_scatter_of_pre_norms_seeds(pairs, agrees):
    assert board.agree(pairs, dict(enumerate([1.0, 1.05, 0.95, 1.02, 0.98]))) is agrees


def test_the_protocols_columns_and_what_each_block_lacks():
    every = protocol.entry_columns()
    assert [one.depth for one in every] == [50, 10, 10, 6]
    assert every[0].candidates("rezero")
    assert {"MLP, 50", "ResNet block, 10"} <= {
        label
        for label, why in protocol.EntryWork("value-residual", every).missing.items()
        if why == protocol.NOT_FOR_IT
    }
    # Further seeds of pre-norm, which language has, make no new protocol.
    assert {frozenset(one.committed()) for one in every if one.row} == {frozenset(range(FRESH_SEEDS))}
    other = [replace(every[0], row=every[0].row | {"rate": 1e-9}), *every[1:]]
    assert protocol.protocol_name(every) != protocol.protocol_name(other)


def test_a_file_without_one_block_and_a_folder_that_is_no_entry_are_refused(tmp_path):
    (tmp_path / "none_here.py").write_text("")
    with pytest.raises(BadInput, match="no block"):
        enter.block_in(str(tmp_path / "none_here.py"))
    with pytest.raises(UnknownName):
        enter.block_in("highway_bench.blocks.rezero", "rezerro")
    with pytest.raises(BadInput, match="no entry"):
        folder.read_entry(tmp_path)
