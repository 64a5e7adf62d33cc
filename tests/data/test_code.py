"""Code: which files are its text, how they are split, and that the texts of two Pythons do not mix."""

import platform

import pytest

from highway_bench.data import code as _standard_library
from highway_bench.data import make_dataset
from highway_bench.data.code import (
    MOST_BYTES,
    MOST_TEST_BYTES,
    fitting,
    module_of,
    source_text,
    standard_library,
)
from highway_bench.errors import BadInput
from highway_bench.plan.checks import check_cells, check_data
from highway_bench.plan.plan import Plan
from highway_bench.plan.selection import Selection
from highway_bench.tasks.from_cell import pinned
from tests.cells import cell


@pytest.fixture
def library(tmp_path, monkeypatch):
    """Makes a small standard library, that of the running Python from then on."""

    def make(name, *others):
        folder = tmp_path / name
        files = [*(f"module_{number}.py" for number in range(30)), *others]
        for number, file in enumerate(files):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text("".join(f"{name}_{number}_{line} = {line % 7}\n" for line in range(12)))
        monkeypatch.setattr(_standard_library, "library_folder", lambda: folder)
        return folder

    return make


CODE = cell(
    "trainability", "pre-norm", "transformer", family_options={"causal": True}, seq_len=16, dataset="code", steps=2
)


def test_the_running_pythons_library():
    text = standard_library()
    train, test = text.parts
    assert len(train) + len(test) <= MOST_BYTES
    assert 0.5 * MOST_TEST_BYTES < len(test) <= MOST_TEST_BYTES
    assert not set(text.train) & set(text.test)
    assert not {*map(module_of, text.train)} & {*map(module_of, text.test)}
    assert {"inspect.py", "json/decoder.py"} <= {*text.train, *text.test}


def test_what_is_no_part_of_the_library(library):
    others = "site-packages/a.py", "test/b.py", "json/tests/c.py", "idlelib/idle_test/d.py", "__pycache__/e.py"
    folder = library("one", *others, "_sysconfigdata_x.py", "config-3/x.py", "json/tests.py", "notes.txt")
    (folder / "empty.py").write_text("")
    (folder / "z.py").write_bytes((folder / "module_3.py").read_bytes())
    text = standard_library()
    found = {*text.train, *text.test}
    assert found == {*(f"module_{number}.py" for number in range(30)), "json/tests.py"}
    parts = [b"\n".join((folder / name).read_bytes() for name in part) for part in (text.train, text.test)]
    assert list(text.parts) == parts
    assert source_text.__wrapped__(folder) == text


@pytest.mark.parametrize(("most", "taken"), [(0, ""), (1, "a"), (3, "ab"), (5, "bc"), (6, "abc")])
def test_names_are_taken_in_a_fixed_order_while_they_fit(most, taken, monkeypatch):
    order = {b"b": 0, b"c": 1, b"a": 2}
    monkeypatch.setattr(_standard_library, "crc32", order.__getitem__)
    assert fitting({"a": 1, "b": 2, "c": 3}, most) == set(taken)


def test_more_than_the_most_bytes(library, monkeypatch):
    folder = library("one")
    monkeypatch.setattr(_standard_library, "MOST_BYTES", 2_000)
    text = source_text(folder)
    assert 1_500 < sum(map(len, text.parts)) <= 2_000
    assert len(text.test) > 0
    source_text.cache_clear()


def test_every_planned_cell_says_which_text_it_has(library):
    library("one")
    words = {"task": ("trainability",), "block": ("plain",), "family": ("transformer",), "seq_len": (16,)}
    options = {"python": platform.python_version(), "digest": standard_library().digest}
    cells = Plan.of("smoke", Selection(**words, dataset="code", device="cpu")).cells
    assert cells
    assert [cell.recipe["dataset"] for cell in cells] == [options] * len(cells)


def test_two_texts_do_not_mix(library):
    library("one")
    first = pinned(CODE)
    library("two")
    second = pinned(CODE)
    assert first.identity != second.identity
    assert pinned(first) is first
    assert first.recipe["dataset"]["python"] == second.recipe["dataset"]["python"]
    check_cells([first, second])
    check_data([second])
    with pytest.raises(BadInput, match="digest"):
        check_data([first])
    with pytest.raises(BadInput, match=r"3\.1\.4"):
        make_dataset("code", python="3.1.4").load()


def test_a_cell_that_does_not_say_which_text_it_has(library):
    library("one")
    with pytest.raises(BadInput, match="python and digest"):
        check_cells([CODE])


def test_a_python_without_sources(tmp_path, monkeypatch):
    monkeypatch.setattr(_standard_library, "library_folder", lambda: tmp_path)
    dataset = make_dataset("code")
    assert str(tmp_path) in str(dataset.missing())
    with pytest.raises(BadInput, match="no Python files"):
        dataset.load()
