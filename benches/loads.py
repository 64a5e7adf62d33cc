"""Other programs on the machine, next to which something is measured; and what scripts that measure so share."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WHILE = "import os\nparent = os.getppid()\nb = bytearray(2**27)\nwhile os.getppid() == parent: "
LOADS = {  # busy loops and copies of memory; they end with this process
    "idle": [],
    "work": [],
    "1": [WHILE + "pass"],
    "2": [WHILE + "pass"] * 2,
    "memory": [WHILE + "bytes(b)"],
}


@contextmanager
def running(load: str) -> Iterator[None]:
    """Run the programs of a load meanwhile."""
    programs = [subprocess.Popen([sys.executable, "-c", code]) for code in LOADS[load]]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def arguments(description: str, file: Path) -> argparse.ArgumentParser:
    """The arguments of a script that adds lines to a file under a load, and prints tables of them."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("command", choices=("collect", "judge"))
    parser.add_argument("--load", choices=tuple(LOADS), default="idle")
    parser.add_argument("--file", type=Path, default=file)
    return parser


def print_row(*values: object) -> None:
    """Print a row of a table in Markdown."""
    sys.stdout.write(f"| {' | '.join(map(str, values))} |\n")
