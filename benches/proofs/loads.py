"""Other programs on the machine, next to which something is measured; and the commands of scripts that measure so.

Such a script has two commands: ``collect`` adds lines to a file under a load, ``judge`` prints tables of them in
Markdown.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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


def run_command(
    description: str,
    file: Path,
    amount: tuple[str, float],
    collect: Callable[[str, Any, Path], None],
    judge: Callable[[Path], list[str]],
) -> None:
    """Run the command that the arguments name, on ``file`` unless they name another.

    ``amount`` is the name and the default of the option that says how much ``collect`` measures.
    """
    name, default = amount
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("command", choices=("collect", "judge"))
    parser.add_argument("--load", choices=tuple(LOADS), default="idle")
    parser.add_argument("--file", type=Path, default=file)
    parser.add_argument(f"--{name}", dest="amount", type=type(default), default=default)
    given = parser.parse_args()
    if given.command == "collect":
        collect(given.load, given.amount, given.file)
    else:
        sys.stdout.write("\n".join([*judge(given.file), ""]))
