"""What every command has in common: errors that a user can mend are one line on stderr and an exit status."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from highway_bench.errors import BadInput, HighwayBenchError

INTERRUPTED = 128 + signal.SIGINT
NOBODY_READS = 128 + signal.SIGPIPE


class Interrupted(HighwayBenchError):
    """Ctrl-C, with what is to be said of it."""

    exit_status = INTERRUPTED

    @classmethod
    def keeping(cls, store: Path, *, fresh: bool) -> Interrupted:
        """Ctrl-C amid measurements that go into ``store``; ``fresh``, where the command measures what it has again."""
        goes_on = "without --fresh the same command goes on" if fresh else "the same command goes on"
        return cls(f"interrupted; what was measured is kept in {store}, and {goes_on}")


class Commands(TyperGroup):
    """The group of all commands: turns ``HighwayBenchError``, Ctrl-C and a closed pipe into exit statuses.

    A ``SystemExit`` is bad input, for it comes from the code of a user (a block's, a family's): a command ends by
    ``typer.Exit``, which is another.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # here, where a closed pipe is still met
        except HighwayBenchError as error:
            raise failed(str(error), error.exit_status) from error
        except SystemExit as error:
            from highway_bench.execution.failure import failure

            raise failed(f"stopped by {failure(error)[1]}", BadInput.exit_status) from error
        except KeyboardInterrupt:
            raise failed("interrupted", INTERRUPTED) from None
        except BrokenPipeError:
            # The reader has left, as head does. What Python still flushes at its end goes nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(NOBODY_READS) from None
        return result


def failed(message: str, status: int) -> typer.Exit:
    """Say ``message`` in one line on stderr; what is returned leaves with ``status``."""
    typer.echo(f"highway-bench: {' '.join(message.split())}", err=True)
    return typer.Exit(status)


def work_here() -> None:
    """Make modules in the working directory importable, for plug-ins and ``module:factory``."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # behind all else: a json.py that lies here is not to stand in for Python's
