"""Errors of commands: an error that a user can correct is one line on stderr and an exit status."""

from __future__ import annotations

import errno
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from highway_bench.errors import BadInput, HighwayBenchError
from highway_bench.os_names import SIGPIPE
from highway_bench.terminal import printable, replace_unprintable

if TYPE_CHECKING:
    from highway_bench.execution.progress import Event

INTERRUPTED = 128 + signal.SIGINT
PIPE_CLOSED = 128 + SIGPIPE
PACKAGE = Path(__file__).parents[1]
PYTHONS_FORMAT = warnings.formatwarning
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Interrupted(HighwayBenchError):
    """Ctrl-C, with a message for the user."""

    exit_status = INTERRUPTED

    @classmethod
    def after_storing(cls, store: Path, rerun: str | None = None) -> Interrupted:
        """Ctrl-C during measurements that are stored in ``store``; ``rerun`` if the command measures stored cells
        again."""
        resumes = "without --rerun the same command resumes" if rerun else "the same command resumes"
        return cls(f"interrupted; finished measurements are in {store}, and {resumes}")


@contextmanager
def measuring(store: Path, *, log: Path | None = None, rerun: str | None = None) -> Iterator[Callable[[Event], None]]:
    """Shows the progress of measurements that are stored in ``store``, and says after Ctrl-C that they are."""
    from highway_bench.execution.progress import showing_progress

    try:
        with showing_progress(log=log) as on_event:
            yield on_event
    except KeyboardInterrupt:
        raise Interrupted.after_storing(store, rerun) from None


class Commands(TyperGroup):
    """The group of all commands: turns ``HighwayBenchError``, Ctrl-C, a closed pipe and a full disk into exit
    statuses.

    A ``SystemExit`` is bad input, because it comes from a user's code (a block, a family): commands exit by
    ``typer.Exit``, which is not a ``SystemExit``.
    """

    def main(self, *arguments: Any, **options: Any) -> Any:
        if sys.stdout is None:  # closed by the shell: >&-
            sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (until the process ends)
        replace_unprintable()
        warnings.formatwarning = formatted
        try:
            return super().main(*arguments, **options)
        except OSError as error:
            if error.errno not in FULL:
                raise
            close_stdout()
            sys.exit(failed(f"cannot write: {error.strerror}", 1).exit_code)

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # here, so that a closed pipe raises within this try
        except HighwayBenchError as error:
            raise failed(str(error), error.exit_status) from error
        except SystemExit as error:
            from highway_bench.execution.failure import failure

            raise failed(f"stopped by {failure(error)[1]}", BadInput.exit_status) from error
        except KeyboardInterrupt:
            raise failed("interrupted", INTERRUPTED) from None
        except BrokenPipeError:
            close_stdout()  # the reader, such as head, has exited
            raise typer.Exit(PIPE_CLOSED) from None
        return result


def formatted(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """A warning of this package's own in one line; another one as Python has it."""
    if category is UserWarning and Path(filename).is_relative_to(PACKAGE):
        return f"highway-bench: {printable(str(message))}\n"
    return PYTHONS_FORMAT(message, category, filename, lineno, line)


def close_stdout() -> None:
    """Lose what is still written to stdout, so that Python's last flush does not raise."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def failed(message: str, status: int) -> typer.Exit:
    """Print ``message`` in one line on stderr, and return an exit with ``status``."""
    typer.echo(f"highway-bench: {printable(' '.join(message.split()))}", err=True)
    return typer.Exit(status)


def work_here() -> None:
    """Make modules in the working directory importable, for plug-ins and ``module:factory``."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # last: a json.py in this folder must not replace Python's
