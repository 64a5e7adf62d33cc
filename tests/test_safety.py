"""Files and names from outside run nothing, write nowhere else, and control neither a page nor a terminal."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from highway_bench.report.files import write_report
from highway_bench.results import Store, row
from highway_bench.terminal import print_table, printable

PACKAGE = Path(__file__).parents[1] / "highway_bench"


def test_a_checkpoint_cannot_run_code(tmp_path: Path) -> None:
    """A pickle that creates a file when it is loaded, in a checkpoint with the right length and hash."""
    import hashlib
    import pickle

    import torch

    from highway_bench.training.checkpoint import read

    class Touch:
        def __reduce__(self) -> tuple[object, tuple[Path]]:
            return Path.touch, (tmp_path / "ran",)

    content = io.BytesIO()
    torch.save({"key": Touch()}, content)
    header = {"keys": ["key"], "bytes": len(content.getvalue())}
    header["sha256"] = hashlib.sha256(content.getvalue()).hexdigest()
    (tmp_path / "a.checkpoint").write_bytes(json.dumps(header).encode() + b"\n" + content.getvalue())
    with pytest.raises(pickle.UnpicklingError):
        read(tmp_path / "a.checkpoint")
    assert not (tmp_path / "ran").exists()


EVIL = "x\x1b]0;owned\x07\x1b[2J</script><script>alert(1)</script>$\\frac{$\u202eé"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 网络 ×", "plain é 网络 ×"),
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202egnp", "\\u202egnp"),
        ("\udcff", "\\udcff"),
        ("a\u00a0b\u2009c", "a\u00a0b\u2009c"),
    ],
)
def test_control_characters_are_printed_as_text(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(printable(text)) == shown


def test_a_table_prints_names_as_text() -> None:
    out = io.StringIO()
    print_table(Console(file=out, width=200), EVIL, ["name"], [[EVIL], ["two\nlines"]], [False])
    assert not {"\x1b", "\x07", "\u202e"} & set(out.getvalue())
    assert "two" in out.getvalue()


def evil_store(path: Path) -> Path:
    """A store whose texts are all hostile, with the numbers of a report."""
    with Store(path) as store:
        for number, block in enumerate(("plain", EVIL)):
            store.put(
                f"{number:032x}",
                [
                    row(
                        digest=f"{number:032x}",
                        task="memory",
                        task_version="1",
                        block=block,
                        block_options=json.dumps({EVIL: EVIL}) if number else "{}",
                        family="dense",
                        family_options="{}",
                        match="params",
                        width=8,
                        nominal_width=8,
                        depth=2,
                        batch_size=1,
                        phase="train-step",
                        dtype="float32",
                        device="cpu",
                        mode="eager",
                        recipe="{}",
                        seed=0,
                        threads=1,
                        metric="peak",
                        unit="B",
                        better="lower",
                        status=status,
                        message=EVIL,
                        value=value,
                        n=1,
                        machine=EVIL,
                        torch=EVIL,
                        run_id=EVIL,
                        time_utc="2026-01-01T00:00:00",
                    )
                    for status, value in ([("ok", 8.0)] if not number else [("failed", None)])
                ],
            )
        store.add_run(EVIL, {"command": ["run", EVIL], "started": "2026", "machines": {"cpu": EVIL}, "commit": EVIL})
    return path


def test_names_are_escaped_in_a_page(tmp_path: Path) -> None:
    written = write_report(evil_store(tmp_path / "s.sqlite"), tmp_path / "page")
    page = written.page.read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "alert(1)" in page
    assert all(path.resolve().is_relative_to(tmp_path / "page") for path in written.figures)


@pytest.mark.parametrize("words", [("results", "show"), ("results", "check"), ("results", "merge", "all.sqlite")])
def test_names_are_escaped_in_a_terminal(tmp_path: Path, words: tuple[str, ...]) -> None:
    store = str(evil_store(tmp_path / "s.sqlite"))
    given = [*words, store] if "merge" in words else [*words, "--store", store]
    done = subprocess.run(
        [sys.executable, "-m", "highway_bench", *given],
        capture_output=True,
        cwd=tmp_path,
        timeout=600,
        check=True,
        env={"PYTHONPATH": str(PACKAGE.parent), "PATH": "", "PYTHONIOENCODING": "utf-8"},
    )
    assert not {"\x1b", "\x07", "\u202e"} & set(done.stdout.decode() + done.stderr.decode())
