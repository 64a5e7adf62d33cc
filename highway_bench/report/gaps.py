"""The limits of the results: what was not measured, so that no reader assumes that it was."""

from __future__ import annotations

from highway_bench.report.format import counted, listed
from highway_bench.report.labels import data_name, title_of
from highway_bench.report.results import Results
from highway_bench.report.sections import every_section
from highway_bench.report.tables.failures import HAS_RESULT
from highway_bench.report.tables.trainability import gives_verdicts
from highway_bench.results.schema import FAILURES, Status
from highway_bench.success.ladder import FULL_SEEDS


def not_measured(results: Results) -> list[str]:
    """Sentences on what the rows do not cover: tasks, verdicts, combinations, seeds, devices, failures."""
    frame = results.rows[["task", "block", "family", "status", "device", "machine", "dtype"]].drop_duplicates()
    absent = {section.name: section.absent for section in every_section() if section.absent}
    shown_in = frame["task"].map(results.about.section)
    lines = [f"The {name} task: {what}." for name, what in absent.items() if not (shown_in == name).any()]
    blocks, families = results.about.block_order(frame["block"]), results.about.family_order(frame["family"])
    for name in absent:
        here = frame[(shown_in == name) & frame["status"].ne(Status.SKIPPED)]
        have = set(zip(here["block"], here["family"], strict=True))
        lacking = [f"{block} in {family}" for family in families for block in blocks if (block, family) not in have]
        if have and lacking:
            more = f" and {len(lacking) - 6} more" if len(lacking) > 6 else ""
            lines.append(
                f"The {name} task has no rows for {len(lacking)} of {len(blocks) * len(families)} combinations of "
                f"block and family: {', '.join(lacking[:6])}{more}."
            )
    lines += _training(results)
    failures = results.failures()
    failures = failures[~failures["message"].str.contains(HAS_RESULT, regex=False)]
    without_result = failures.groupby("status")["cells"].sum()
    for status in [*sorted(FAILURES), Status.SKIPPED]:
        if count := int(without_result.get(status, 0)):
            lines.append(f"{counted(count, 'cell')} with status “{status}”: see “Failed and skipped cells”.")
    if not (frame["device"] == "cuda").any():
        lines.append("GPUs: all measurements are on a CPU.")
    for column, what in (("machine", "machines"), ("dtype", "data types")):
        values = sorted(frame[column].dropna().unique())
        if len(values) == 1:
            lines.append(f"Other {what} than {values[0]}.")
    return list(dict.fromkeys(lines))  # contests that differ in their recipe alone have the same gaps


def _training(results: Results) -> list[str]:
    table = results.trainability()
    if table.empty:
        return []
    lines = []
    short = table[~table["recipe"].map(gives_verdicts)]
    if len(short):
        families = listed(results.about.family_order(short["family_label"]))
        lines.append(f"Which depths train in {families}: there is one short loss curve per block.")
    contests = results.contests()
    every = [contest for contest, _ in contests]
    for contest, part in contests:
        name = title_of(contest, every, data_name)
        if part["n"].max() < FULL_SEEDS:
            seeds = counted(part["n"].max(), "seed")
            rest = (
                f"Verdicts from {seeds} are provisional."
                if part["provisional"].any()
                else f"{seeds.capitalize()} give no verdict."
            )
            lines.append(f"{name}: {FULL_SEEDS} seeds. {rest}")
        lines.append(f"{name}: depths beyond {part['depth'].max()} and longer training.")
    if results.training_runs()["test_loss"].isna().all():
        lines.append("Generalisation: no test loss was measured.")
    return lines
