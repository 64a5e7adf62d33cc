"""All that a GPU can show, in steps; ``nox -s gpu`` runs this, and docs/gpu.md explains it.

    nox -s gpu                             # every step
    nox -s gpu -- --minutes 9              # what fits; the next call goes on
    nox -s gpu -- --device cpu --tiny      # a rehearsal

The state is in one folder: what each step gave, its log, and a summary. Steps (benches/gpu_steps.py) come in the order
in which an interruption loses least: short ones first, then those whose command itself goes on where it stopped.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benches.gpu_steps import ROOT, STEPS, WHOLE, Command, Session, Step, python
from highway_bench.errors import BadInput
from highway_bench.provenance.git import git

CLOSING = 60.0  # seconds at the end of a call, for a command that is interrupted and for the page
INTERRUPTED = 10.0  # of these, for the command
DONE, FAILED, CUT, LACKING = "done", "failed", "cut", "lacking"


@dataclass
class State:
    """What became of each step, in a file of the folder."""

    path: Path
    identity: dict[str, Any]
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, session: Session) -> State:
        """The folder's state, or an empty one. Raises ``BadInput`` for that of another commit or device."""
        path = session.state / "state.json"
        if not path.is_file():
            return cls(path, session.identity)
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["identity"] != session.identity:
            raise BadInput(f"{session.state} has the state of {stored['identity']}: give another folder with --state")
        return cls(path, stored["identity"], stored["steps"])

    def note(self, step: Step, status: str, seconds: float = 0.0, reason: str = "", stored: str = "") -> None:
        """Store what became of ``step``; seconds add up over calls. ``stored`` is what ``progress`` gave after it."""
        seconds += self.steps.get(step.name, {}).get("seconds", 0.0)
        self.steps[step.name] = {"status": status, "seconds": round(seconds, 1), "reason": reason, "stored": stored}
        self._write()
        say(f"{step.name}: {status}{f' ({reason})' if reason else ''}, {seconds:.0f} s")

    def _write(self) -> None:
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps({"identity": self.identity, "steps": self.steps}, indent=1), encoding="utf-8")
        part.replace(self.path)

    def forget(self, step: Step) -> None:
        """Store that nothing became of ``step`` yet."""
        self.steps.pop(step.name, None)
        self._write()

    def status(self, name: str) -> str:
        """What became of the step ``name``; empty where nothing did yet."""
        return str(self.steps.get(name, {}).get("status", ""))

    def summary(self, steps: Sequence[Step]) -> str:
        """A table in Markdown."""
        lines = ["| step | shows | status | seconds | reason |", "|---|---|---|---|---|"]
        for step in steps:
            note = {"status": "not yet", "seconds": "", "reason": ""} | self.steps.get(step.name, {})
            lines.append(f"| {step.name} | {step.shows} | {note['status']} | {note['seconds']} | {note['reason']} |")
        return "\n".join(lines) + "\n"


def why_not(step: Step, session: Session, state: State) -> str:
    """What this machine or the ``state`` lacks for ``step``; empty for nothing."""
    if step.only_with_git and not session.with_git:
        return "no git here: at home, highway-bench history import FOLDER/history --commit HASH"
    if state.status(step.after) == LACKING:
        return f"{step.after} lacks something"
    lacking = [name for name in step.needs if importlib.util.find_spec(name) is None]
    return f"not installed: {', '.join(lacking)}" if lacking else step.data_lack(session)


def progress(session: Session) -> str:
    """What stores and checkpoints of long trainings hold, as a text that changes with it."""
    stores = sorted(session.state.glob("*.sqlite"))
    files = sorted(path for path in session.state.glob("*.checkpoints/*") if path.is_file())
    held: dict[str, Any] = {path.name: path.stat().st_mtime_ns for path in files}
    for path in stores:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as store:
            held[path.name] = store.execute('SELECT count(*) FROM "rows"').fetchone()[0]
    return json.dumps(held)


def run_steps(session: Session, state: State, steps: Sequence[Step], seconds: float, *, again: bool = False) -> None:
    """Run the steps that are not done, until ``seconds`` are over; ``again``: those that failed too."""
    deadline = time.monotonic() + seconds - CLOSING
    started = False
    over = {DONE} if again else {DONE, FAILED}
    for step in (step for step in steps if state.status(step.name) not in over):
        if reason := why_not(step, session, state):
            state.note(step, LACKING, reason=reason)
            continue
        if step.after and state.status(step.after) not in (DONE, FAILED):  # one that failed may have stored a part
            if step.after in {one.name for one in steps}:
                state.forget(step)
                say(f"{step.name}: waits for {step.after}")
            else:
                state.note(step, LACKING, reason=f"needs {step.after}: name it with --step too")
            continue
        left = deadline - time.monotonic()
        if left <= 0 or (started and not step.resumes and 60 * step.minutes > left):
            say(f"{step.name}: left for the next call")
            continue
        whole, started = not started, True
        began = time.monotonic()
        status, reason = run_command(step.command(session), session.state / f"{step.name}.log", left)
        stored = progress(session) if status == CUT and whole and step.resumes else ""
        if status == CUT and whole and not step.resumes:
            status, reason = FAILED, "takes longer than a call"
        elif stored and stored == state.steps.get(step.name, {}).get("stored"):
            status, reason = FAILED, "a group takes longer than a call"
        state.note(step, status, time.monotonic() - began, reason, stored)


def run_command(command: Command, log: Path, seconds: float) -> tuple[str, str]:
    """Run ``command``, interrupted after ``seconds``; its status, and the reason where it is not ``DONE``."""
    with log.open("ab") as out:
        out.write(f"$ {' '.join(command)}\n".encode())
        out.flush()
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)  # highway-bench stores what was measured
            try:
                process.wait(INTERRUPTED)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            return CUT, "the time was up"
        except BaseException:  # Ctrl-C went to the command too
            process.wait()
            raise
    if process.returncode == 0:
        return DONE, ""
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    return FAILED, f"exit status {process.returncode}: {lines[-1][:200]}"


def results_of(session: Session) -> str:
    """The ratios of populations and the hours of the whole Figure 1, in Markdown; empty before they are measured."""
    lines = []
    measured = session.state / "population.json"
    for one in json.loads(measured.read_text("utf-8"))["benchmarks"] if measured.is_file() else ():
        found = one["extra_info"]
        ratios = [f"{name} {value}" for name, value in found.items() if " / " in name]
        lines.append(f"- {one['group']}, {found['trials']} together: {'; '.join(ratios)}")
    log = session.state / "hours.log"
    whole = [line for line in log.read_text("utf-8").splitlines() if line.startswith(WHOLE)] if log.is_file() else []
    lines += [f"- Figure 1 at the paper's scale, {line}" for line in whole[-1:]]
    return "\n".join(["", *lines, ""]) if lines else ""


def write_page(session: Session) -> bool:
    """Write the page of what is stored so far; false, and a line that says why, if that failed."""
    if not session.store.is_file():
        return True
    command = python("-m", "highway_bench", "report", "--store", session.store, "--out", session.state / "page")
    status, reason = run_command(command, session.state / "page.log", CLOSING - INTERRUPTED)
    if status != DONE:
        say(f"no page: {reason}")
    return status == DONE


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def session_of(arguments: argparse.Namespace) -> Session:
    """The session that the arguments describe."""
    with_git = (ROOT / ".git").exists()
    commit = arguments.commit or (git(ROOT, "rev-parse", "HEAD") if with_git else None)
    state = (arguments.state or ROOT / "reports" / ("gpu-rehearsal" if arguments.tiny else "gpu")).resolve()
    state.mkdir(parents=True, exist_ok=True)
    return Session(state, arguments.device, arguments.tiny, commit, with_git)


def main() -> int:
    """Run the steps, then write page and summary. Returns the exit status; docs/gpu.md has its meaning."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--minutes", type=float, default=24 * 60.0, help="Time of this call; the next one goes on.")
    parser.add_argument("--state", type=Path, help="The folder of the state; by default reports/gpu.")
    parser.add_argument("--step", action="append", choices=[step.name for step in STEPS], help="Only these steps.")
    parser.add_argument("--again", action="store_true", help="Run failed steps again.")
    parser.add_argument("--commit", help="Which commit this copy is, where there is no git.")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument(
        "--tiny",
        action="store_true",
        help="A rehearsal, on next to nothing.",
    )
    given = parser.parse_args()
    # A script's background job ignores the interrupt, and its commands would too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    try:
        session = session_of(given)
        state = State.of(session)
    except BadInput as error:
        say(str(error))
        return 2
    steps = [step for step in STEPS if not given.step or step.name in given.step]
    try:
        run_steps(session, state, steps, 60 * given.minutes, again=given.again)
    except KeyboardInterrupt:
        return 130
    finally:
        (session.state / "summary.md").write_text(state.summary(STEPS) + results_of(session), encoding="utf-8")
        has_page = write_page(session)
    say(f"\n{state.summary(steps)}\nstate: {session.state}")
    failed = any(state.status(step.name) in ({FAILED} if step.only_with_git else {FAILED, LACKING}) for step in steps)
    return int(failed or not has_page)


if __name__ == "__main__":
    sys.exit(main())
