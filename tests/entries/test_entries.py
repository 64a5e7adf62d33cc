"""Entries: a block measured under a tiny protocol from a file to a card, its check, and its page."""

import math
import re
from types import SimpleNamespace

import pytest

from highway_bench.blocks import blocks
from highway_bench.errors import BadInput, UnknownName
from highway_bench.frames.results import Results
from highway_bench.frames.rows import rows_of
from highway_bench.report.choice.ranking import kind_of
from highway_bench.report.choice.table import finals_of, wide_table
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
    """The protocol has the tiny column, and one of which nothing is known."""
    unknown = protocol.EntryColumn(kind_of("resnet", "digits"), 10, tiny.column.reference, {}, "not known yet")
    every = [tiny.column, unknown]
    monkeypatch.setattr(columns, "known_finals", lambda: tiny.finals)
    for module in (enter, board):
        monkeypatch.setattr(module, "entry_columns", lambda: every)
    monkeypatch.setattr(enter, "check_block", lambda name: [])
    return every


@pytest.fixture
def entered(protocol_of_one, tmp_path, monkeypatch):
    """The entry of a block in a file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    entry, _ = enter.enter("mine.py", paper="arXiv:2601.00001", out=tmp_path / "entries", workers=1)
    yield entry
    blocks.unregister("halved-sum")


def test_from_a_file_to_a_card_a_check_and_a_page(entered, protocol_of_one, capsys, monkeypatch):
    names = {path.name for path in entered.folder.iterdir()}
    assert names == {"entry.toml", "rows.parquet", "card.svg", "halved_sum.py"}
    assert (entered.folder / "rows.parquet").stat().st_size < 100_000
    one, unknown = entered.results(protocol_of_one)
    assert one.word in ("better", "worse", "equal", "undecided")
    assert (one.seeds, unknown.word, unknown.seeds) == (5, "not known yet", 0)
    assert one.difference.low < one.difference.value < one.difference.high
    assert one.step.low < one.step.value < one.step.high
    card = (entered.folder / "card.svg").read_text()
    assert 'width="800" height="200"' in card
    assert all(word in card for word in ("y = (x + H(x)) / 2", "arXiv:2601.00001", one.word, "not known yet"))

    def status(*arguments):
        monkeypatch.setattr("sys.argv", ["board", "--folder", str(entered.folder.parent), *arguments])
        with pytest.raises(SystemExit) as ended:
            board.main()
        return ended.value.code, capsys.readouterr().out

    assert status() == (0, "")
    page = (entered.folder.parent / "README.md").read_text()
    assert re.search(r"\| \[halved-sum\]\(halved-sum\) \| arXiv:2601.00001 \| " + one.word, page)
    assert status("--check") == (0, "")
    (entered.folder / "card.svg").write_text(card.replace(one.word, "wonderful"))
    (entered.folder.parent / "README.md").write_text("mine")
    code, said = status("--check")
    assert (code, said.count("\n")) == (1, 2)
    assert "card.svg is not that of rows.parquet" in said

    with monkeypatch.context() as patch:
        patch.setattr(board, "repeated", lambda *_: [3.0, 3.1])
        assert any("ends at" in line for line in board.problems(entered, protocol_of_one))

    # Rows of another version of the protocol stand apart, and are not judged.
    about = (entered.folder / "entry.toml").read_text()
    (entered.folder / "entry.toml").write_text(about.replace("protocol = 1", "protocol = 0"))
    assert status() == (0, "")
    assert "Of another protocol: halved-sum (protocol 0)" in (entered.folder.parent / "README.md").read_text()
    assert status("--check") == (0, "")


def test_a_machine_on_which_pre_norm_trains_otherwise_compares_nothing(tiny, monkeypatch):
    finals = tiny.finals.assign(held_out=tiny.finals["held_out"] * 10)
    monkeypatch.setattr(columns, "known_finals", lambda: finals)
    here = columns._scores(tiny.finals, tiny.column, "pre-norm")
    with pytest.raises(columns.ReferenceDisagrees, match="nothing is compared"):
        columns.check(tiny.column, here, 0.05)


@pytest.mark.parametrize(("again", "agrees"), [((0.0, 0.02), True), ((1.0, 1.2), False), ((math.inf, 0.0), False)])
def test_a_repetition_agrees_within_the_scatter_of_seeds(again, agrees):
    assert board.agree(again, [0.0, 0.05, -0.05, 0.02, -0.02]) is agrees


def test_columns_are_those_that_the_package_knows():
    every = protocol.entry_columns()
    assert [one.depth for one in every] == [50, 10, 10, 6]
    assert all(one.missing or one.candidates("rezero") for one in every)
    assert not [one for one in every if one.kind.name == "mlp" and one.candidates("value-residual")]


def test_a_file_without_one_block_and_a_folder_that_is_no_entry_are_refused(tmp_path):
    (tmp_path / "none_here.py").write_text("")
    with pytest.raises(BadInput, match="no block"):
        enter.block_in(str(tmp_path / "none_here.py"))
    with pytest.raises(UnknownName):
        enter.block_in("highway_bench.blocks.rezero", "rezerro")
    with pytest.raises(BadInput, match="no entry"):
        folder.read_entry(tmp_path)
