"""Text in a terminal: tables that are too narrow, characters that it cannot print, and those that would control it."""

import io
import os
import subprocess
import sys

import pytest
from rich.console import Console

from highway_bench.terminal import Heading, TextTable, print_part, printable

TEXT = ("block", "what it is")
BLOCKS = TextTable(
    "blocks",
    "Blocks",
    tuple(Heading(head, number=head not in TEXT) for head in (*TEXT, "multiply-adds", "ratio")),
    (
        ("highway-free", "a gate of its own for the carry", "15,470,264,320", "1.69× [1.66, 1.71]"),
        ("plain", "no [red]shortcut[/red]", "4.58e-05", "1.00×"),
    ),
)


def printed(table, width):
    out = io.StringIO()
    print_part(table, Console(file=out, width=width))
    return out.getvalue()


@pytest.mark.parametrize("width", [200, 80, 70])
def test_numbers_stay_whole_and_text_gives_way(width):
    lines = printed(BLOCKS, width).splitlines()
    assert max(map(len, lines)) <= width
    for number in ("15,470,264,320", "4.58e-05", "1.69×", "[1.66,", "1.71]"):
        assert sum(number in line for line in lines) == 1
    assert "".join(line.partition(" │ ")[0].strip() for line in lines if " │ " in line) == "highway-freeplain"


def test_what_cannot_fit_runs_over_the_edge():
    lines = printed(BLOCKS, 30).splitlines()
    assert any("15,470,264,320" in line and "1.69×" in line for line in lines)
    assert len({len(line) for line in lines[1:]}) == 1


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_what_a_terminal_cannot_print_is_replaced(environment):
    """By rich, by typer and by a user's code, on both streams."""
    code = (
        "import sys, typer\n"
        "from rich.console import Console\n"
        "from highway_bench.terminal import Heading, TextTable, print_part, replace_unprintable\n"
        "replace_unprintable()\n"
        "typer.echo('\\u2713 typer')\n"
        "typer.echo('\\u2713 error', err=True)\n"
        "print('\\u2713 print')\n"
        "print_part(TextTable('', '\\u2713', (Heading('a'),), (('1',),)), Console())\n"
    )
    unset = {"PYTHONIOENCODING", "PYTHONUTF8"}
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=kept | environment, check=True)
    assert done.stderr == b"? error\n"
    assert [line.strip() for line in done.stdout.splitlines()[:3]] == [b"? typer", b"? print", b"?"]
    assert all(byte < 128 for byte in done.stdout)


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
def test_control_characters_are_printed_as_text(text, shown):
    assert printable(text) == shown
    assert printable(printable(text)) == shown


def test_a_table_prints_names_as_text():
    text = printed(TextTable("", EVIL, (Heading("name", number=False),), ((EVIL,), ("two\nlines",)), left_out=2), 200)
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "two" in text
    assert text.endswith("and 2 more\n")
