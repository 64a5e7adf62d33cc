"""The success rule in words, for the report and the documentation."""

from __future__ import annotations

from typing import Final

from highway_bench.measure.statistics import CONFIDENCE
from highway_bench.success.judging import TAIL, THRESHOLD
from highway_bench.success.ladder import FULL_SEEDS, LEAST_SEEDS, TRAINABLE

EXPLAINED: Final = {
    "trains": f"A run succeeds if every loss is finite and the mean of its last {TAIL:.0%} of training losses is at "
    f"most {THRESHOLD:.0%} of the loss of the best constant prediction; on the data set language, at most the held-out "
    "loss of an interpolated Witten–Bell byte trigram that is fitted on the training text. A depth trains if at least "
    f"{TRAINABLE:.0%} of its seeds succeed. With fewer than {FULL_SEEDS} seeds a verdict is provisional, with fewer "
    f"than {LEAST_SEEDS} there is none.",
    "stalled, diverged": "Outcomes, not errors: the run ended above the threshold, or its loss stopped being finite. "
    "A diverged run ranks last and is never dropped.",
    "L_max": "The largest depth of the ladder that trains while every smaller depth trains too. A rule, not an "
    "estimate. “≥” means that the ladder's last depth trained, “<” that its first depth did not.",
    "L50": "The depth at which half of the seeds succeed, from a monotone fit over all seeds and depths, with a "
    f"{100 * CONFIDENCE:.0f} % bootstrap interval over seeds. “>” and “<” mean that it lies outside the ladder.",
    "area": "Area under the curve of the share of successful seeds against the logarithm of depth, as a share of the "
    "largest possible area: 100 % means that every seed trains at every depth. Depths beyond one at which no seed "
    "trained count as failed.",
}
"""Explanation of each term of the rule, by term."""
