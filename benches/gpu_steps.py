"""The steps of ``nox -s gpu``: what each shows, its command, and what it needs. To add one, add it to ``STEPS``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from highway_bench.errors import BadInput

ROOT = Path(__file__).resolve().parents[1]
WHOLE = "all of it: "  # begins the line of gpu_hours with the sum

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
    """A slice of the paper-scale Figure 1: every network of it, for one epoch of its four hundred.

    One worker has the GPU to itself, so the seconds of the networks add up to hours of a GPU."""
    slice_of = ["--trials", 2, "--steps", 25, "--seeds", 1, "--depth", 2] if session.tiny else ["--steps", 600]
    how = ["--scale", "desk" if session.tiny else "paper", "--workers", 1]
    return bench(session, "reproduce", "figure1", *how, *slice_of, "--out", session.state / "reproduce")


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
    *("typer", "rich", "optuna", "pebble", "filelock", "joblib", "psutil", "cloudpickle"),
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
