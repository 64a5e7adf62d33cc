"""All that a GPU can show, in steps; ``nox -s gpu`` runs this, and docs/gpu.md explains it.

    nox -s gpu                             # every step
    nox -s gpu -- --minutes 9              # what fits; the next call goes on
    nox -s gpu -- --device cpu --tiny      # a rehearsal

The state is in one folder: what each step gave, its log, and a summary. Steps come in the order in which an
interruption loses least: short ones first, then those whose command itself goes on where it stopped.

To add a step, add it to ``STEPS``.
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
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from highway_bench.errors import BadInput
from highway_bench.provenance.git import git

ROOT = Path(__file__).resolve().parents[1]
CLOSING = 20.0  # seconds at the end of a call, for a command that is interrupted and for the page
WHOLE = "all of it: "  # begins the line of gpu_hours with the sum
DONE, FAILED, CUT, LACKING = "done", "failed", "cut", "lacking"

Command = list[str]


@dataclass(frozen=True)
class Session:
    """What is measured, and where the state is. ``commit`` is ``None`` in a copy without git that was given none."""

    state: Path
    device: str
    tiny: bool
    commit: str | None
    with_git: bool

    @property
    def store(self) -> Path:
        return self.state / "results.sqlite"

    @property
    def identity(self) -> dict[str, Any]:
        """What must be equal for a call to go on with a state."""
        return {"device": self.device, "tiny": self.tiny, "commit": self.commit}


@dataclass(frozen=True)
class Step:
    """A command, what it shows, and roughly its minutes on a data-centre GPU.

    ``resumes``: after an interruption the command goes on where it stopped. Otherwise it starts only if a call has the
    minutes left, or nothing else to do. ``after`` is the step whose result it takes. ``needs`` are the modules that it
    imports besides torch and what comes with it. ``data_lack`` says which data it lacks; empty for none.
    """

    name: str
    shows: str
    command: Callable[[Session], Command]
    minutes: float
    resumes: bool = False
    after: str = ""
    needs: Sequence[str] = ()
    only_with_git: bool = False
    data_lack: Callable[[Session], str] = lambda _: ""


def python(*arguments: object) -> Command:
    """A command of this interpreter."""
    return [sys.executable, *map(str, arguments)]


def bench(session: Session, name: str, *arguments: object) -> Command:
    """``highway-bench NAME`` on the session's device and store."""
    return python("-m", "highway_bench", name, *arguments, "--device", session.device, "--store", session.store)


def gpu_tests(session: Session) -> Command:
    """The tests that are marked ``gpu``, in the files that have such a mark; one of these in a rehearsal."""
    files = sorted(path for path in (ROOT / "tests").rglob("test_*.py") if "mark.gpu" in path.read_text("utf-8"))
    chosen = [path for path in files if path.name == "test_gpu.py"][:1] if session.tiny else files
    report = f"--junitxml={session.state / 'tests.xml'}"
    # A warning of a driver or library that no test has met yet must not fail the tests that meet it first.
    return python("-m", "pytest", "-m", "gpu", "-W", "default", "-p", "no:cacheprovider", report, *chosen)


def times(session: Session) -> Command:
    """Step times and bytes of ``standard``."""
    if session.tiny:
        return bench(session, "run", "throughput", *TINY)
    return bench(session, "run", "throughput", "memory")


def dtypes(session: Session) -> Command:
    """Steps in TF32 and bfloat16 next to IEEE float32, a size that does not fill the device and one that does."""
    names = ("float32", "tf32", "bfloat16") if session.device == "cuda" else ("float32", "bfloat16")
    if session.tiny:
        return bench(session, "run", "throughput", *TINY, *each("--dtype", names))
    chosen = [*each("--dtype", names), *each("--block", ("plain", "highway")), *each("--family", ("dense", "conv"))]
    size = ["--depth", 4, "--phase", "forward-backward", "--threads", 1, *each("--width", ("128", "1024"))]
    return bench(session, "run", "throughput", *chosen, *size, "--mode", "eager")


def modes(session: Session) -> Command:
    """Dense and transformer stacks in every mode, timed in turn."""
    modes = ("eager", "compile", "cudagraph") if session.device == "cuda" else ("eager", "compile")
    if session.tiny:
        return bench(session, "run", "throughput", *TINY, *each("--mode", modes), "--depth", 1)
    blocks = ("plain", "highway", "residual", "pre-norm")
    chosen = [*each("--mode", modes), *each("--block", blocks), *each("--family", ("dense", "transformer"))]
    # More samples than in the step before: eager cells are timed again, in turn with the other modes.
    size = ["--depth", 4, "--phase", "forward-backward", "--threads", 1, "--recipe", "samples=40"]
    return bench(session, "run", "throughput", *chosen, *size)


def peers(session: Session) -> Command:
    """Our networks against other implementations of them, in a store of their own."""
    out = ["--store", session.state / "peers.sqlite", "--tables", session.state / "peers.md"]
    size = ["sequential", "--width", 50, "--mode", "eager", *each("--recipe", ONCE)] if session.tiny else []
    return python("-m", "highway_bench", "peers", *size, "--device", session.device, *out)


def each(option: str, values: Sequence[str]) -> Command:
    """A repeated option."""
    return [word for value in values for word in (option, value)]


def population(session: Session) -> Command:
    """A population of networks against one by one, and against a user's loop."""
    how = "--benchmark-disable" if session.tiny else f"--benchmark-json={session.state / 'population.json'}"
    return python("-m", "pytest", "-p", "no:cacheprovider", ROOT / "benches/test_population.py", how)


def point(session: Session) -> Command:
    """The commit's point in the history."""
    if session.tiny:  # a quick point takes two minutes
        return python("-m", "highway_bench", "history", "run", "--help")
    commit = ["--commit", session.commit] if session.commit and not session.with_git else []
    out = ["--out", session.state / "history"]
    return python("-m", "highway_bench", "history", "run", "--full", "--device", session.device, *out, *commit)


def imported(session: Session) -> Command:
    """The point in this checkout's history."""
    if session.tiny:
        return python("-m", "highway_bench", "history", "import", "--help")
    return python("-m", "highway_bench", "history", "import", session.state / "history")


def figure1(session: Session) -> Command:
    """A slice of the paper-scale Figure 1: every network of it, for one epoch of its four hundred."""
    slice_of = ["--trials", 2, "--steps", 25, "--seeds", 1, "--depth", 2] if session.tiny else ["--steps", 600]
    scale = ["--scale", "desk" if session.tiny else "paper"]
    return bench(session, "reproduce", "figure1", *scale, *slice_of, "--out", session.state / "reproduce")


def rest(session: Session) -> Command:
    """The standard profile, of which stored cells are not measured again; in a rehearsal, what counts and trains."""
    return bench(session, "run", *(["memory", "cost", "gates", *TINY] if session.tiny else []))


def hours(session: Session) -> Command:
    """The GPU-hours that the whole of it would take."""
    return python("-m", "benches.gpu_hours", session.store, "--device", session.device)


def no_mnist(session: Session) -> str:
    """Why the paper-scale Figure 1 has no data, from which it is downloaded where there is a network."""
    if session.tiny:
        return ""
    from highway_bench.data import make_dataset

    try:
        make_dataset("mnist").load()
    except BadInput as error:
        return str(error)
    return ""


TINY = ("--profile", "smoke", "--family", "dense", "--block", "plain", "--block", "highway", "--phase", "forward")
ONCE = ("seconds=0.02", "samples=3", "processes=1", "limit=0")
RUNS = (  # what the command line, the runner, the store and the data import
    *("typer", "rich", "optuna", "pebble", "filelock", "psutil"),
    *("numpy", "pandas", "pyarrow", "scipy", "sklearn", "mlxtend"),
)
DRAWS = (*RUNS, "jinja2", "matplotlib", "seaborn")
STEPS = (
    Step("about", "GPU, driver and versions", lambda _: python("-m", "torch.utils.collect_env"), 0.5),
    Step("tests", "the tests that need a GPU", gpu_tests, 2, needs=("pytest", "hypothesis", "pynvml", *RUNS)),
    Step("times", "step times, GPU times, clocks and bytes of the standard profile", times, 5, True, needs=RUNS),
    Step("population", "trials in a population against one by one", population, 6, needs=("pytest_benchmark", *RUNS)),
    Step("dtypes", "float32, TF32 and bfloat16 next to each other", dtypes, 2, True, needs=RUNS),
    Step("modes", "eager, compiled and as a CUDA graph", modes, 6, True, needs=RUNS),
    Step("peers", "our networks against other implementations of them", peers, 8, True, needs=RUNS),
    Step("point", "the commit's point in the history", point, 8, needs=("asv", "virtualenv", "json5", *RUNS)),
    Step(
        "import",
        "the point in this checkout",
        imported,
        0.2,
        after="point",
        needs=("asv", "json5", *RUNS),
        only_with_git=True,
    ),
    Step("standard", "the rest of the standard profile", rest, 10, True, needs=RUNS),
    Step("figure1", "a slice of the paper-scale Figure 1", figure1, 8, True, needs=DRAWS, data_lack=no_mnist),
    Step("hours", "the GPU-hours of the whole Figure 1", hours, 0.2, after="figure1", needs=DRAWS),
)


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
                process.wait(CLOSING / 2)
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
    status, reason = run_command(command, session.state / "page.log", 120)
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
        has_page = write_page(session)
        (session.state / "summary.md").write_text(state.summary(STEPS) + results_of(session), encoding="utf-8")
    say(f"\n{state.summary(steps)}\nstate: {session.state}")
    failed = any(state.status(step.name) in ({FAILED} if step.only_with_git else {FAILED, LACKING}) for step in steps)
    return int(failed or not has_page)


if __name__ == "__main__":
    sys.exit(main())
