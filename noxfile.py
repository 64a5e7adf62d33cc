"""The sessions that developers and users run: ``nox -l`` lists them, ``nox -s NAME -- …`` passes arguments on.

constraints.txt pins the packages. To use your own environment and torch, install the package with the session's groups,
such as ``pip install -e . --group tests``; then ``--no-venv`` runs the session there and installs nothing.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

import nox
from nox.command import CommandFailed

nox.needs_version = ">=2026.7.11"
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["tests"]
nox.options.error_on_missing_interpreters = True

PYPROJECT = nox.project.load_toml("pyproject.toml")
STORE = Path("reports/results.sqlite")
UNDECIDED = 5  # exit status of the gate
PAGE = Path("reports/page/index.html")
DOCS = Path("reports/docs")
WIDTH = shutil.get_terminal_size(fallback=(160, 24)).columns
PROOFS = {  # by name, its module and the arguments without any
    **{
        name: (f"benches.proofs.{name.replace('-', '_')}", ())
        for name in ("gate", "load", "advice", "advice-docs", "cost", "large-store", "cluster-overhead", "cluster-rows")
    },
    "faults": ("pytest", ("tests/faults", "tests/cluster/test_cluster.py", "-k", "faults or check_chain")),
    "cluster": ("pytest", ("tests/cluster",)),
}
ARCHIVES = ("wheel", "sdist")
NOT_BUILT = shutil.ignore_patterns(".git", ".nox", ".venv", ".*_cache", "__pycache__", "build", "dist", "reports")
VERSIONS = {"lowest": "3.11", "notebook": "3.12", "newest": "3.13"}  # the Python of each set in tests/versions
MACHINE = """
from highway_bench.history.machine import this_machine
print(this_machine().name)
"""


def install(session: nox.Session, *packages: str, groups: tuple[str, ...] = ()) -> None:
    """Install packages and dependency groups at their pinned versions; with ``--no-venv``, install nothing."""
    if session.venv_backend == "none":
        session.log("no virtual environment: using what is installed")
    else:
        session.install("-c", "constraints.txt", *packages, *nox.project.dependency_groups(PYPROJECT, *groups))


def run(session: nox.Session, *command: str, **options: Any) -> Any:
    """Run a command. When it is interrupted, wait until it has stored what it measured; nox would wait 0.3 seconds."""
    return session.run(*command, interrupt_timeout=None, **options)


def to(output: TextIO) -> dict[str, Any]:
    """Options of a command whose output goes to a file; its progress and errors do not."""
    return {"stdout": output, "stderr": None}


def output_of(session: nox.Session, *command: str) -> str:
    """What a command prints, without its errors, which the user sees."""
    return str(session.run(*command, silent=True, stderr=None, external=True)).strip()


def failure_of(session: nox.Session, *command: str, **options: Any) -> CommandFailed | None:
    """Run a command; its failure if some of its measurements failed (status 1), since the others are stored."""
    try:
        run(session, *command, **options)
    except CommandFailed as error:
        if error.return_code != 1:
            raise
        return error
    return None


@nox.session
def bench(session: nox.Session) -> None:
    """Measure the standard profile and write the page; arguments go to highway-bench run.

    Then measure this commit's point in the history, quickly, and publish asv's pages. The answer comes last.
    """
    install(session, "-e", ".[history]")
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--store")
    parser.add_argument("--profile", default="standard")
    known, others = parser.parse_known_args(session.posargs)
    store, page = Path(known.store or STORE), PAGE
    if known.profile == "smoke" and known.store is None:  # a trial run must not mix with real results
        store, page = Path("reports/smoke.sqlite"), Path("reports/smoke/index.html")

    command = ("highway-bench", "run", "--profile", known.profile, "--store", str(store), *others)
    if {"--dry-run", "--help", "-h"} & set(others):
        run(session, *command)
        return
    answer = page.parent / "answer.txt"
    with printed_last(session, answer) as output:
        failures = {"highway-bench run": failure_of(session, *command, **to(output), env={"COLUMNS": str(WIDTH)})}
        make_page(session, store, page)
        failures["highway-bench history run"] = follow(session, page.parent / "history.log")
    if failed := [name for name, failure in failures.items() if failure is not None]:
        session.error(f"exit status 1 of {' and of '.join(failed)}")


@contextmanager
def printed_last(session: nox.Session, path: Path) -> Iterator[TextIO]:
    """A file for a command's output, which is printed at the end, and also where something failed in between."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("w", encoding="utf-8") as output:
            yield output
    finally:
        sys.stdout.write(path.read_text(encoding="utf-8"))


def follow(session: nox.Session, log: Path) -> CommandFailed | None:
    """Measure this commit's point and publish asv's pages, except in a copy without git. Returns the failure, if any.

    If a benchmark fails, the other benchmarks' values are published all the same. asv's output goes to the file
    ``log``.
    """
    if not Path(".git").exists():
        session.log("no git here: no history")
        return None
    session.log(f"this commit's point in the history takes two minutes; asv's output: {log}")
    try:
        with log.open("w", encoding="utf-8") as output:
            failure = failure_of(session, "highway-bench", "history", "run", "--quick", **to(output))
    except CommandFailed as error:
        if error.return_code != 2:
            raise
        session.warn("no point in the history: the reason is printed above")  # a shallow clone, for example
        return None
    session.run("highway-bench", "history", "publish")
    return failure


@nox.session
def gate(session: nox.Session) -> None:
    """Fail if something regressed in recent commits; measures this commit first. Arguments go to the gate.

    Undecided, on a machine that is too busy to tell, is a warning.
    """
    install(session, "-e", ".[history]")
    run(session, "highway-bench", "history", "gate", "--measure", *session.posargs, success_codes=[0, UNDECIDED])


@nox.session
def proof(session: nox.Session) -> None:
    """Prove the tool itself: -- NAME (see PROOFS), and arguments of the proof, whose file says what it measures.

    The faults, 200 kills, 20 lost nodes and 10,000 bad inputs, take up to an hour and write their figures to
    reports/faults.json. In pieces, each going on where the last one ended: HIGHWAY_BENCH_CHAIN=folder
    HIGHWAY_BENCH_KILLS=50 nox -s proof -- faults tests/faults/test_kills.py
    """
    name, *arguments = session.posargs or [""]
    if name not in PROOFS:
        session.error(f"name a proof: {', '.join(PROOFS)}")
    install(session, "-e", ".[history,cluster]", groups=("tests",))
    module, default = PROOFS[name]
    full = {"HIGHWAY_BENCH_FAULTS": "full", "HIGHWAY_BENCH_FIGURES": str(Path("reports/faults.json").resolve())}
    run(session, "python", "-m", module, *(arguments or default), env=full if name == "faults" else None)


@nox.session
def entries(session: nox.Session) -> None:
    """Write the board of entries/; with -- --check, fail if a card is not that of its rows, or two repeated seeds end
    elsewhere."""
    install(session, "-e", ".")
    run(session, "python", "-m", "highway_bench.studies.entries.board", *session.posargs)


@nox.session
def results(session: nox.Session) -> None:
    """Write the pages of docs/results from the committed rows; with -- --check, fail if they are not those."""
    install(session, "-e", ".[history]")
    session.run("python", "-m", "docs.pages", *session.posargs)


def make_page(session: nox.Session, store: Path, page: Path, *arguments: str) -> None:
    """Write the page, and print the paths of page and store."""
    session.run("highway-bench", "report", "--store", str(store), "--out", str(page.parent), *arguments)
    session.log(f"store: {store.resolve()}")
    session.log(f"page:  {page.resolve()}")


@nox.session
def step(session: nox.Session) -> None:
    """Time a step of every block and family with pytest-benchmark, saved per machine; arguments go to pytest."""
    install(session, "-e", ".", groups=("bench",))
    machine = output_of(session, "python", "-c", MACHINE)
    storage = f"file://./reports/.benchmarks/{machine}"  # by machine: pytest-benchmark does not distinguish GPUs
    chosen = any(word.startswith("benches") for word in session.posargs)
    session.run(
        "python",
        "-m",
        "pytest",
        *([] if chosen else ["benches"]),
        f"--benchmark-storage={storage}",
        "--benchmark-autosave",
        *session.posargs,
    )


@nox.session
def gpu(session: nox.Session) -> None:
    """Measure all that a GPU can show, in steps whose state is in one folder: docs/gpu.md.

    With -- --minutes 9 the next call goes on. Without a GPU, -- --device cpu --tiny rehearses every step.
    """
    install(session, "-e", ".[history,peers]", groups=("tests",))
    run(session, "python", "-m", "benches.gpu", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests, file by file on every core, and every benchmark's body once; arguments go to pytest.

    With arguments, one process runs, unless -n is among them. -- -m slow -n auto tests benches runs the slow tests:
    interrupted and killed runs, built commits, compiled steps.
    """
    install(session, "-e", ".[history,peers]", groups=("tests",))
    # By file, because the tests of a file share costly fixtures; in order, because a file of few tests may take long.
    everything = ("-m", "not slow", "-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder", "tests", "benches")
    session.run("python", "-m", "pytest", "--benchmark-disable", *(session.posargs or everything))


@nox.session
@nox.parametrize("python,name", [(python, name) for name, python in VERSIONS.items()], ids=list(VERSIONS))
def versions(session: nox.Session, name: str) -> None:
    """Run the package with the lowest versions that it takes, a hosted notebook's, and the newest.

    The smoke profile and its page, the committed rows, and the contracts of blocks and families; of a notebook's also
    cells in a real kernel. Warnings of this package's own code are errors. tests/versions has the versions, and says
    how they were resolved.
    """
    if session.venv_backend == "none":
        session.error("this session installs other versions: omit --no-venv")
    folder, out = Path("tests/versions").resolve(), Path("reports/versions", name)
    session.install("-r", str(folder / f"{name}.txt"), "-e", ".")
    session.run("pip", "check")
    shutil.rmtree(out, ignore_errors=True)
    strict = {"PYTHONPATH": str(folder)}  # its sitecustomize is imported by every process
    smoke, committed = (str(out / f"{store}.sqlite") for store in ("smoke", "committed"))
    run(session, "highway-bench", "run", "--profile", "smoke", "--strict", "--store", smoke, env=strict)
    session.run("highway-bench", "report", "--store", smoke, "--out", str(out), env=strict)
    if not (out / PAGE.name).is_file():
        session.error(f"no page was written: {out / PAGE.name}")
    session.run("highway-bench", "results", "import", "docs/data", "--store", committed, env=strict)
    own = "filterwarnings=error:::highway_bench"
    session.run("python", "-m", "pytest", "-n", "auto", "-o", own, "tests/blocks", "tests/families")
    if name == "notebook":
        session.run("python", "-m", "pytest", "-o", own, "-m", "slow", "tests/interactive")


@nox.session(reuse_venv=False)
def release(session: nox.Session) -> None:
    """What must pass before a release, apart from .ci/run: archives, which stay in dist/, versions, the notebook.

    With -- --tag, on a clean tree, then write version, date and commit into CITATION.cff, commit that and tag it.
    """
    if session.venv_backend == "none":
        session.error("this session installs archives into its own environment: omit --no-venv")
    tags = "--tag" in session.posargs
    version = re.search(r'^__version__ = "(.+)"$', Path("highway_bench/__init__.py").read_text("utf-8"), re.MULTILINE)
    if version is None:
        session.error("highway_bench/__init__.py has no __version__")
    tag = f"v{version[1]}"
    if tags and output_of(session, "git", "status", "--porcelain"):
        session.error("the tree is not clean: commit or remove what git status lists")
    if tags and output_of(session, "git", "tag", "--list", tag):
        session.error(f"{tag} exists: raise __version__")
    for kind in ARCHIVES:
        check_archive(session, kind)
    run(session, sys.executable, "-m", "nox", "-s", "versions", external=True)
    notebook = ("-m", "slow", "tests/interactive/test_notebook.py", "-k", "page")
    how: dict[str, Any] = {"env": {"HIGHWAY_BENCH_NOTEBOOK": "run"}, "external": True}
    run(session, sys.executable, "-m", "nox", "-s", "tests", "--", *notebook, **how)
    if not tags:
        session.log("nothing was tagged: nox -s release -- --tag")
        return
    commit = output_of(session, "git", "rev-parse", "HEAD")
    path = Path("CITATION.cff")
    path.write_text(cited(path.read_text("utf-8"), version[1], commit), "utf-8")
    session.run("git", "commit", "--quiet", "--message", f"Release {version[1]}", str(path), external=True)
    session.run("git", "tag", "--annotate", "--message", f"highway_bench {version[1]}", tag, external=True)


def check_archive(session: nox.Session, kind: str) -> None:
    """Build the wheel or the sdist without git, install it, measure the smoke profile with it and write the page, all
    outside the checkout."""
    constraints = str(Path("constraints.txt").resolve())
    with tempfile.TemporaryDirectory() as name:
        tree, built, work = (Path(name) / part for part in ("tree", "built", "work"))
        shutil.copytree(".", tree, ignore=NOT_BUILT)
        session.install("-c", constraints, "build")
        session.run("python", "-m", "build", f"--{kind}", "--outdir", str(built), str(tree))
        shutil.rmtree(tree)  # the built archive runs below, not this copy
        (archive,) = built.iterdir()
        session.install("-c", constraints, str(archive))
        session.install("--no-deps", "--force-reinstall", str(archive))  # not that of the archive before
        work.mkdir()
        with session.chdir(work):
            session.run("highway-bench", "run", "--profile", "smoke", "--strict")
            session.run("highway-bench", "report")
            if not PAGE.is_file():
                session.error(f"no page was written: {PAGE}")
        Path("dist").mkdir(exist_ok=True)
        shutil.copy2(archive, "dist")


def cited(text: str, version: str, commit: str) -> str:
    """The text of CITATION.cff with a release's version, today's date and the commit that was tested."""
    facts = {"version": version, "date-released": datetime.now(UTC).date(), "commit": commit}
    kept = [line for line in text.splitlines() if line.partition(":")[0] not in facts]
    end = kept.index("type: software") + 1
    return "\n".join([*kept[:end], *(f"{name}: {value}" for name, value in facts.items()), *kept[end:], ""])


@nox.session
def docs(session: nox.Session) -> None:
    """Build the pages and the API reference, check their links, run every example of the help; arguments go to Sphinx.

    A broken link within this checkout fails; addresses on the network are not checked.
    """
    install(session, "-e", ".[history]", groups=("docs", "tests"))
    session.run(
        "sphinx-build", "--fail-on-warning", "--keep-going", "--quiet", "-c", "docs", *session.posargs, ".", str(DOCS)
    )
    session.log(f"pages: {(DOCS / 'docs/index.html').resolve()}")
    session.run("python", "-m", "pytest", "tests/cli/test_help.py")


@nox.session
def lint(session: nox.Session) -> None:
    """Check the code, its layout and the package's types: ruff, and mypy, strict; arguments go to ruff check (--fix
    corrects what it can), and nothing else runs then."""
    install(session, "-e", ".[history]", groups=("lint", "types"))
    session.run("ruff", "check", *(session.posargs or (".",)))
    if not session.posargs:
        session.run("ruff", "format", "--check", ".")
        session.run("mypy")
