"""Measured: the rows of a run, the frames that answer a question each, and how a result shows itself by its tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Final

import pandas as pd
from torch import nn

from highway_bench.cell import Cell
from highway_bench.errors import BadInput, NothingMeasured, UnknownName
from highway_bench.families import make_family
from highway_bench.frames.results import Results
from highway_bench.frames.rows import Runs, plain, rows_of
from highway_bench.measure.paired import leaders
from highway_bench.measure.statistics import log10_interval
from highway_bench.network import build
from highway_bench.plan.selection import AnyBlock, AnyFamily, OneOrMore, Selection
from highway_bench.report.format import counted
from highway_bench.tasks.from_cell import cell_dataset

LINES: Final = 30
"""Lines in print; a table in a notebook has so many rows."""
NAMES: Final = {"mode": "execution", "index": "position", "axis": "axis_name"}
"""Columns of a store whose names pandas has too, and what users see."""
JSON: Final = {"block_options": "block_", "family_options": "family_", "recipe": "recipe_"}
"""Columns of options, and how the column of each option begins."""
SETTING: Final = ("task", "family", "dataset", "block", "start", "depth", "width", "seed")
WHERE: Final = ("execution", "threads", "device", "dtype", "machine")
MILLI: Final = 1e3
FEW: Final = 3
"""Reasons of failures that are shown."""


class ShowsTables:
    """A result with ``headlines`` and ``tables``."""

    def headlines(self) -> list[str]:
        """The lines above the tables."""
        raise NotImplementedError

    def tables(self) -> dict[str, pd.DataFrame]:
        """Small tables by title."""
        raise NotImplementedError

    def __repr__(self) -> str:
        lines, tables = self.headlines(), self.tables()
        most = max(1, (LINES - len(lines)) // max(1, len(tables)) - 3)
        for title, table in tables.items():
            more = f", {most} of {len(table)} rows" if len(table) > most else ""
            text = table.head(most).to_string(index=False, float_format="{:.3g}".format, na_rep="")
            lines += ["", f"{title}{more}", *text.splitlines()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = [f"<p>{escape(line)}</p>" for line in self.headlines()]
        for title, table in self.tables().items():
            html = table.to_html(index=False, float_format="{:.3g}".format, na_rep="", max_rows=LINES, border=0)
            parts.append(f"<h4>{escape(title)}</h4>{html}")
        return "".join(parts)


if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredRows(ShowsTables):
    """The rows of a run. ``stored`` has them with a store's columns, ``note`` says where it was stopped.

    Each method is a frame with a row for each thing it names; numbers are not rounded, bounds are 95 % intervals where
    none other is named.
    """

    stored: pd.DataFrame
    runs: Runs
    note: str = ""

    @cached_property
    def results(self) -> Results:
        """All tables of the page: ``ratios()``, ``frontier()``, …"""
        return Results(self.stored, self.runs)

    @cached_property
    def rows(self) -> pd.DataFrame:
        """One metric of one cell a row. Each option and each word of a recipe is a column."""
        return user_rows(self.stored)

    def curves(self) -> pd.DataFrame:
        """The training losses: one row per run and step, every seed and every point that is stored. A block has its
        options in its name, and its start where the results have several."""
        rows = self.rows
        rows = rows[rows["task"].eq("trainability") & rows["metric"].eq("loss") & rows["axis_name"].eq("step")]
        labels = self.results.rows.drop_duplicates("digest").set_index("digest")["label"]
        table = rows.rename(columns={"position": "step", "value": "loss"}).astype({"step": int})
        table["block"] = table["digest"].map(labels).fillna(table["block"].astype(object))
        options = [
            str(name) for name in table if str(name).startswith(tuple(JSON.values())) and table[name].notna().any()
        ]
        return table[[*SETTING, "step", "loss", *options, "status"]].reset_index(drop=True)

    def success(self) -> pd.DataFrame:
        """One row per connection and depth: ``k`` successes of ``n`` runs, their ``share`` with Wilson's interval, and
        the verdict."""
        table = self._table("trainability").rename(columns={"rate_low": "low", "rate_high": "high", "rate": "lr"})
        table["share"] = table["k"] / table["n"]
        names = ("family", "dataset", "block", "depth", "width", "k", "n", "share", "low", "high", "verdict", "lr")
        return _columns(table, (*names, "final_loss", "loss_low", "loss_high"))

    def gates(self) -> pd.DataFrame:
        """One row per trained network and ``layer``: its gates, its change of the stream, and the effect of its
        lesion."""
        table = self._table("trained_layers")
        names = ("family", "dataset", "block", "depth", "width", "seed", "layer")
        values = (str(name) for name in table if str(name).startswith(("gate", "stream", "lesion")))
        return _columns(table, (*names, *values))

    def step_times(self) -> pd.DataFrame:
        """One row per timed cell: the median step in milliseconds with its 10th and 90th percentile, and its ratio to
        plain's with its interval."""
        table = self._table("step_times")
        for name, seconds in {"ms": "step_time", "ms_p10": "step_low", "ms_p90": "step_high"}.items():
            table[name] = MILLI * table[seconds] if seconds in table else None
        names = ("family", "block", "depth", "width", "batch_size", "phase", "ms", "ms_p10", "ms_p90")
        return _columns(table, (*names, "ratio", "ratio_low", "ratio_high", *WHERE, "n", "status"))

    def memory(self) -> pd.DataFrame:
        """One row per network: its bytes."""
        table = self._table("memory")
        names = ("family", "block", "depth", "width", "batch_size", "phase", "parameter_bytes", "saved_activations")
        return _columns(table, (*names, "saved_per_layer", "layer_ratio", "peak", "status"))

    def best(self, *, depth: int | None = None, family: AnyFamily | None = None, dataset: str | None = None) -> Best:
        """The connection of the lowest mean final loss at ``depth``, with all that its runs had.

        Connections with a run that diverged or failed come last. Raises ``BadInput`` where the results are of several
        depths, families or data sets, and none is named.
        """
        runs = self.results.of_task("trainability")
        runs = runs[runs["trial"].isna()]
        rows = runs[runs["metric"].eq("final_loss")]
        if rows.empty:
            raise NothingMeasured("no network was trained: the best one is that of the lowest final loss")
        layer = next(iter(_names(family)), None)
        for name, value in {"depth": depth, "family": layer, "dataset": dataset}.items():
            found = sorted(rows[name].unique())
            if value is None and len(found) > 1:
                raise BadInput(f"the results have several of {name}: name one of {', '.join(map(str, found))}")
            rows = rows if value is None else rows[rows[name].eq(value)]
            if rows.empty:
                raise BadInput(f"no network was trained with {name} {value!r}; there is {', '.join(map(str, found))}")
        parts = dict(list(rows.groupby(["label", "family_options", "width"], sort=False)))
        whole = {key: part for key, part in parts.items() if part["value"].notna().all()}
        if not whole:
            raise NothingMeasured("no connection trained at every seed without a loss that is not finite")
        losses = {key: dict(zip(part["seed"], part["value"], strict=True)) for key, part in whole.items()}
        key, *equal = leaders(losses)
        interval = log10_interval(losses[key].values())
        row = {str(name): plain(value) for name, value in whole[key].iloc[0].items()}
        lr = runs.loc[runs["digest"].eq(row["digest"]) & runs["metric"].eq("rate"), "value"].iloc[0]
        cell = Cell.of_columns(row)
        names = tuple(str(one[0]) for one in equal)
        return Best(str(key[0]), cell, float(lr), interval.value, interval.low, interval.high, interval.n, names)

    def plot(
        self,
        name: str | None = None,
        ax: Axes | None = None,
        *,
        panel: str | None = None,
        family: OneOrMore[AnyFamily] | None = None,
        depth: OneOrMore[int] | None = None,
        block: OneOrMore[AnyBlock] | None = None,
    ) -> Axes | list[str]:
        """Draw one panel of a figure of the page into ``ax``, by default new axes of pyplot's, and return the axes.

        ``family``, ``depth`` and ``block`` narrow the results, by name or class, and ``panel`` chooses by title.
        Without a ``name``: the names of the figures that these results have. Raises ``UnknownName``,
        ``NothingMeasured`` where the results lack what the figure needs, and ``BadInput`` where a choice among panels
        is needed.
        """
        from highway_bench.report.figures import every_figure, figures
        from highway_bench.report.figures.base import handles_of

        rows, chosen = self.results.rows, Selection.of(depth=depth, block=block)
        for column, label, wanted in (
            ("family", "family_label", _names(family)),
            ("depth", "depth", chosen.depth),
            ("block", "label", chosen.block),
        ):
            rows = rows[rows[column].isin(wanted) | rows[label].isin(wanted)] if wanted else rows
        if rows.empty:
            raise NothingMeasured("nothing of these families, depths and blocks was measured")
        results = Results(rows, self.runs)
        if name is None:
            return [kind.name for kind in every_figure() if kind.panels(results)]
        kind = figures.get(name)
        panels = kind.panels(results)
        if not panels:
            raise NothingMeasured(f"{name} needs {kind.needs}")
        titles = [f"{one.sheet}: {one.title}" if one.sheet else one.title for one in panels]
        found = [one for one, title in zip(panels, titles, strict=True) if panel in (None, title, one.title)]
        if not found:
            raise UnknownName("panel", str(panel), titles)
        if len(found) > 1:
            raise BadInput(f"{name} has several panels: panel= names one of {', '.join(titles)}")
        drawn = found[0]
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots()
        drawn.draw(ax)
        ax.set_title(drawn.title or kind.title)
        if drawn.styles and kind.lines is not None:
            ax.legend(handles=handles_of(drawn.styles, lines=kind.lines))
        return ax

    def tables(self) -> dict[str, pd.DataFrame]:
        """The small tables that are shown, by title: those with rows. Of the machine and how it ran, columns have what
        differs, and ``attrs`` the rest."""
        every = {
            "success by depth": self.success,
            "step times": self.step_times,
            "memory": self.memory,
            "gates": self.gates,
        }
        if self.stored.empty:
            return {}
        found = {title: make().dropna(axis=1, how="all") for title, make in every.items()}
        tables = {title: table for title, table in found.items() if not table.empty}
        for table in tables.values():
            shared = [name for name in WHERE if name in table and len(table[name].unique()) == 1]
            table.attrs |= {name: table.pop(name).iloc[0] for name in shared}
        return tables or {"rows": self.rows[["task", "family", "block", "depth", "metric", "value", "unit", "status"]]}

    def headlines(self) -> list[str]:
        cells, rows = self.stored["digest"].nunique(), len(self.stored)
        counts = f"{counted(cells, 'cell')}, {rows:,} rows{f'; {self.note}' if self.note else ''}"
        if self.stored.empty:
            return [counts]
        why = self.results.failures().groupby(["status", "message"], sort=False)["cells"].sum().reset_index()
        lines = [f"{counted(one['cells'], 'cell')} {one['status']}: {one['message']}" for one in rows_of(why.head(FEW))]
        return [counts, *lines, *([f"and {counted(len(why) - FEW, 'other reason')}"] if len(why) > FEW else [])]

    def _table(self, name: str) -> pd.DataFrame:
        """A table of ``results`` with the columns that users see."""
        table: pd.DataFrame = getattr(self.results, name)()
        labels = {"family_label": "family"} | ({} if "block" in table else {"label": "block"})
        return table.drop(columns="family", errors="ignore").rename(columns={**NAMES, **labels})


@dataclass(frozen=True, repr=False)
class Best:
    """The connection of the lowest final loss: its ``label``, the ``cell`` of one of its runs, its learning rate.

    ``loss`` is the geometric mean over ``seeds`` with its interval. ``equal`` are those that are not worse.
    """

    label: str
    cell: Cell
    lr: float
    loss: float
    low: float
    high: float
    seeds: int
    equal: tuple[str, ...]

    @property
    def recipe(self) -> Mapping[str, Any]:
        """How it was trained; ``recipe["rate"]`` is ``lr``."""
        return {**self.cell.recipe, "rate": self.lr}

    def __repr__(self) -> str:
        bounds = f"{self.low:.3g} to {self.high:.3g}, " if self.seeds > 1 else ""
        interval = f"{self.loss:.3g} ({bounds}{counted(self.seeds, 'seed')})"
        others = f"; not worse: {', '.join(self.equal)}" if self.equal else ""
        return f"{self.label}, depth {self.cell.depth}, width {self.cell.width}, lr {self.lr:g}: {interval}{others}"

    def build(
        self, *, width: int | None = None, depth: int | None = None, whole: bool = False, seed: int = 0
    ) -> nn.Module:
        """The layers as a plain module, by default of the width and depth as measured; the ``whole`` network with stem
        and head for its data set where that is wanted."""
        cell = self.cell
        return build(
            cell.block,
            make_family(cell.family, **cell.family_options),
            width=width or cell.width,
            depth=depth or cell.depth,
            start=cell.start,
            block_options=cell.block_options,
            dataset=cell_dataset(cell) if whole else None,
            seed=seed,
        )


def user_rows(stored: pd.DataFrame) -> pd.DataFrame:
    """A store's rows with no column that pandas names too, and with a column for each option and word of a recipe."""
    rows = stored.rename(columns=NAMES)
    for name, prefix in JSON.items():
        values = {text: json.loads(text) for text in rows[name].dropna().unique()}
        options = dict.fromkeys(option for value in values.values() for option in value)
        texts = rows[name].astype(object)
        for option in options:
            rows[f"{prefix}{option}"] = texts.map({text: value.get(option) for text, value in values.items()})
    return rows.drop(columns=list(JSON))


def _names(family: OneOrMore[AnyFamily] | None) -> list[str]:
    return [one if isinstance(one, str) else one.name for one in Selection.of(family=family).family]


def _columns(table: pd.DataFrame, names: tuple[str, ...]) -> pd.DataFrame:
    return table.reindex(columns=[name for name in names if name in table]).reset_index(drop=True)
