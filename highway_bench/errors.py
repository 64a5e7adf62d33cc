"""Errors that a user can correct. Each has a one-line message and an exit status.

All errors of the package for bad input derive from ``HighwayBenchError``. The command line prints the message without a
traceback and exits with ``exit_status``. Any other exception is a bug and is shown with its traceback.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

USER_ERRORS: Final = (Exception, SystemExit)
"""The errors that a user's code may raise: an exception, or ``SystemExit`` from a script that calls ``sys.exit``. Code
that imports or calls a plug-in, a block, a family's factory or a task must catch them. ``KeyboardInterrupt`` is not
among them: it comes from the user and stops the command."""


class HighwayBenchError(Exception):
    """Base of every error with a message written for the user."""

    exit_status = 1

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: one line."""
        return [f"{type(self).__name__}: {self}"]


class BadInput(HighwayBenchError):
    """Invalid input, such as an unknown name, an impossible width or a broken file."""

    exit_status = 2


class NothingMeasured(HighwayBenchError):
    """The command measured or found nothing, which must not count as a success."""

    exit_status = 3


def near_names(name: str, known: Iterable[str]) -> str:
    """The last part of a message about an unknown ``name``: similar known names, or all where none is similar."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=3)
    return f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(known) or 'none'}"


class UnknownName(BadInput, KeyError):
    """A name that no registry entry has. The message lists similar names, or all where none is similar."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        super().__init__(f"unknown {kind} {name!r}; {near_names(name, known)}")

    def __str__(self) -> str:  # KeyError would show the message in quotes
        return str(self.args[0])


class DuplicateName(BadInput):
    """Two entries have the same name. The message names the modules of both."""

    def __init__(self, kind: str, name: str, first: str, second: str) -> None:
        super().__init__(f"{kind} {name!r} is registered twice: in {first} and in {second}")


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise ``BadInput`` about ``path``, a file or folder, where the file system raises an error."""
    try:
        yield
    except OSError as error:
        raise BadInput(f"cannot write {os.fspath(path)}: {error.strerror or error}") from error
