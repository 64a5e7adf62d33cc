"""``advise``: measures what an advice needs, within its minutes, and concludes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from highway_bench.execution.engines import AnyEngine
from highway_bench.execution.progress import NotebookOutput, in_notebook, showing_progress, stderr_console
from highway_bench.families import AnyLayer
from highway_bench.options import with_near_names
from highway_bench.plan.plan import AnyPath
from highway_bench.plan.selection import AnyBlock, OneOrMore, Selection
from highway_bench.plugins import load_plugins
from highway_bench.provenance.machine import cores
from highway_bench.results.store import Store
from highway_bench.studies.advice import ADVICES
from highway_bench.studies.advice.answer import Advice
from highway_bench.studies.advice.fit import fit
from highway_bench.studies.advice.measured import MeasuredCells
from highway_bench.studies.advice.page import write_page
from highway_bench.studies.advice.request import requested
from highway_bench.studies.advice.stored import Decisions
from highway_bench.studies.advice.work import AdviceWork
from highway_bench.terminal import prints_to_stderr


@with_near_names
def advise(
    layer: AnyLayer,
    *,
    depth: int,
    minutes: float = 10.0,
    data: Any = None,
    target: str | None = None,
    data_options: Mapping[str, Any] | None = None,
    loss: str | Callable[..., Any] | None = None,
    optimiser: str | None = None,
    steps: int | None = None,
    width: int | None = None,
    batch_size: int | None = None,
    block: OneOrMore[AnyBlock] = (),
    family_options: Mapping[str, Any] | None = None,
    device: str | None = None,
    repetition: int = 0,
    out: AnyPath = ADVICES,
    plugins: Sequence[str] = (),
    engine: AnyEngine = "local",
    workers: int | None = None,
    progress: bool | None = None,
    command: Sequence[str] | None = None,
) -> Advice:
    """Which connection to use for ``layer`` at ``depth``, with what it costs and how sure that is.

    ``layer`` is a function from a width to a module (or to several modules, each with a connection of its own), its
    name ``module:factory`` or ``FILE.py:factory``, or a family or its name. Every connection and start that it
    can carry is compared, or those of the blocks that match ``block``; always pre-norm. ``data`` is the name of a data
    set, whose options are ``data_options``, or of a text file; or data of the user's own, or their name
    ``module:NAME``: see ``highway_bench.data.read_own``, for ``target`` too. ``loss`` is a function of outputs and
    targets, or ``module:function``. ``optimiser`` is ``sgd`` or ``adamw``, the default for sequences alone. ``steps``
    are those of the finals; by default, as many as fit. ``repetition`` changes the seeds.

    The measurements take about ``minutes`` and are stored in a folder in ``out``, where the page is too. What was
    decided from measured times is stored as well, so the same call gives the same answer without measuring again, and
    goes on after an interruption. Progress is shown by default in a notebook.

    Raises ``BadInput``, in one line and before anything is measured, for a layer, data or sizes that cannot be used.

    >>> hb.advise("transformer", depth=12, minutes=10).headline
    """
    began = time.monotonic()
    modules = load_plugins(plugins)
    request = requested(
        layer,
        depth=depth,
        minutes=minutes,
        data=data,
        target=target,
        data_options=data_options,
        loss=loss,
        optimiser=optimiser,
        steps=steps,
        width=width,
        batch_size=batch_size,
        block=Selection.of(block=block).block,
        family_options=family_options,
        device=device,
        repetition=repetition,
    )
    request.preflight(modules)
    with prints_to_stderr():
        fitted = fit(request, workers or cores())
    folder, console = Path(out) / request.name, stderr_console()
    shows = in_notebook() if progress is None else progress
    shown = showing_progress(None if in_notebook() else console) if shows else nullcontext()
    with Store(folder / "store.sqlite") as store, shown as on_event:
        printed = partial(console.print, highlight=False, markup=False)
        say = on_event.say if isinstance(on_event, NotebookOutput) else printed
        measured = MeasuredCells(
            store,
            plugins=modules,
            engine=engine,
            workers=fitted.workers,
            on_event=on_event,
            on_stage=partial(say_stage, say, began, minutes) if shows else lambda what: None,
            command=command,
        )
        work = AdviceWork(request, fitted, measured, Decisions(folder / "decisions.json"), began)
        advice = work.advice(folder)
        return write_page(advice, folder, store)


def say_stage(say: Callable[[str], None], began: float, minutes: float, what: str) -> None:
    """Say what is measured next, and how much of the time has passed."""
    passed = (time.monotonic() - began) / 60
    say(f"{what}, after {passed:.1f} of {minutes:g} min")
