"""Errors that a user can mend: each is one clear line and carries the exit status it leads to.

Everything the package raises on bad input derives from ``HighwayBenchError``; the command line prints its
message without a traceback and leaves with ``exit_status``. Any other exception is a bug and shows itself whole.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

USER_ERRORS: Final = (Exception, SystemExit)
"""What the code of a user may raise: an exception, or ``SystemExit``, as a script that ends in ``sys.exit`` does.

To be caught wherever a plug-in, a block, a family's factory or a task is imported or called. ``KeyboardInterrupt`` is
not one of them: it is the user's own, and ends the command."""


class HighwayBenchError(Exception):
    """Base of every error with a message written for the user."""

    exit_status = 1


class BadInput(HighwayBenchError):
    """What was asked for cannot be: an unknown name, an impossible width, a broken file."""

    exit_status = 2


class NothingMeasured(HighwayBenchError):
    """The command would have reported on nothing; it must never pass for a success."""

    exit_status = 3


def near_names(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown ``name``: the known names that are near to it, or all where none is."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=3)
    return f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(known) or 'none'}"


class UnknownName(BadInput, KeyError):
    """A name that no registry entry has; the message lists near ones, or all where none is near."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        super().__init__(f"unknown {kind} {name!r}; {near_names(name, known)}")

    def __str__(self) -> str:  # KeyError would show the message in quotes
        return str(self.args[0])


class DuplicateName(BadInput):
    """Two entries want one name; the message says where both stand."""

    def __init__(self, kind: str, name: str, first: str, second: str) -> None:
        super().__init__(f"{kind} {name!r} is registered twice: in {first} and in {second}")
