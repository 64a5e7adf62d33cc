"""The terms of a report, defined on the page for readers who know nothing of the project."""

from __future__ import annotations

from typing import Final

from highway_bench.measure.statistics import SHIFT_BY_WAITING
from highway_bench.report.ratio import PERCENT
from highway_bench.success.judging import TAIL
from highway_bench.success.ladder import EXPLAINED

DEFINITIONS: Final[tuple[tuple[str, str], ...]] = (
    ("connection, block", "How a layer joins its input x to its transform H(x). H is the same under every connection."),
    ("depth", "The number of layers with the block's connection, without the network's stem and head."),
    (
        "equal params, width or flops",
        "The quantity that is equal for all blocks. A gate has weights of its own, so a gated layer with equal "
        "parameters is narrower than a plain one. “Parameters off” is the remaining difference, because widths are "
        "whole numbers.",
    ),
    *EXPLAINED.items(),
    (
        "best, not separated, behind",
        "Of the connections that train at a depth, the one of lowest mean is the best. Each other is compared with it "
        "seed by seed, by Student's t at the level of Holm's procedure (5 % for all of them together): it is behind if "
        "the interval excludes 0, and else not separated from the best, which does not say that they are equal.",
    ),
    (
        "chance, threshold",
        "Chance is the training loss of the best constant prediction; the threshold of success is a share of it.",
    ),
    ("k of n [low, high]", "k of n runs succeed; the brackets are the 95 % Wilson interval of the share."),
    (
        "learning rate",
        "“Tuned”: at every depth, each block tried the same rates in equally many trials; in profile standard, with "
        "one seed a rate. The rate of lowest final loss was then run on new seeds, and only these runs count. A best "
        "rate at the grid's edge is the largest or the smallest of those tried: a better one may lie outside.",
    ),
    (
        "final loss [low, high]",
        f"The mean of the last {TAIL:.0%} of a run's training losses, as the geometric mean over seeds with the 95 % t "
        "interval of the logarithm. If a run diverged: the median with that run as infinite, without interval.",
    ),
    (
        "step ÷ plain's [low, high]",
        "Step time relative to plain's. The steps of all blocks, plain's and a yard-stick's are sampled in turn, in "
        "several processes. A process gives the median ratio of its rounds; the value is the geometric mean over "
        "processes, with the 95 % t interval. Over several families: the geometric means of the ratios and of their "
        "bounds.",
    ),
    (
        "÷ yard-stick's [95 %]",
        "The same relative to a stack of torch's own layers of like work (linear, convolution, LSTM or attention), "
        "which no change of this package moves.",
    ),
    (
        "wait for a core, rounds left out",
        "A step in one thread on a CPU is timed without the time in which it was ready to run and waited for a core; "
        "the column gives that share of the wall time. Other programs on the core also empty its caches, which costs "
        f"one step more than another: intervals of ratios include an error of {100 * SHIFT_BY_WAITING:g} % times that "
        "share. With several threads, or on a GPU, rounds in which a thread waited for more than 1 % of the time are "
        "left out, and counted.",
    ),
    (
        "undecided, one process, no ratio stored",
        "A ratio is never quoted without its interval. A ratio is undecided if a bound differs from the value by "
        f"more than {PERCENT}, as a factor. Then only the interval is given: it may exclude 1, but the size of the "
        "ratio is not known. A single process gives no interval, and a version before 0.2 stored no ratio.",
    ),
    ("step time [p10, p90]", "Median, 10th and 90th percentile of all samples after warm-up, outliers included."),
    (
        "of roofline, time ÷ floor [p10, p90]",
        "The floor is the time of the step at the measured rates of this device for matrix products, convolutions and "
        "copies; Provenance lists the rates. “Of roofline” is floor ÷ time, and time ÷ floor its inverse. The "
        "percentiles are those of the step's samples. A dash: the step was faster than the floor, for example because "
        "its data were in a cache, as the remark says.",
    ),
    (
        "in range, vanishes, explodes",
        "The size of signal and gradient in the initialised network. In range says nothing about training: plain "
        "networks in range fail at depths where others train. Forward: the root mean square (RMS) of the activations "
        "x_l after each layer, relative to that of the first layer's input x₀. The signal vanishes at the first layer "
        "where this ratio is below 1/100, and explodes at the first where it is above 100 or not finite. Backward: the "
        "same for the gradient dL/dx_l, from the last layer down. The word is that of most seeds; “4 of 5” is their "
        "number, “(9–10)” the range of layers over seeds.",
    ),
    (
        "gain",
        "The factor by which every initial weight matrix of the layers is multiplied, those of gates included.",
    ),
    (
        "gradient ÷, signal ×",
        "RMS of dL/dx₀ ÷ RMS of dL/dx_L, and RMS of x_L ÷ RMS of x₀: 1 if the layers preserve the size.",
    ),
    (
        "mean T, T + C, saturated gates",
        "At the start: the mean of the transform gate T; the mean of T + C, where the carry gate C is independent of "
        "T; and the share of gates within 0.05 of 0 or 1, whose gradient is small.",
    ),
    (
        "ξ",
        "The number of layers over which the cosine between two inputs' activations converges, from a least-squares "
        "fit of c* + a·exp(−l/ξ). No value if the cosine changes by less than 0.05 or does not converge exponentially. "
        "Tanh networks were found to train to depths of about 6 ξ (arXiv:1611.01232). With ReLU, ξ depends on the "
        "depth over which it is fitted.",
    ),
    (
        "log₁₀ s, ‖J‖²/d",
        "For the Jacobian J = dx_L/dx₀, where x has d numbers: log₁₀ of the ratio of its largest to its smallest "
        "singular value, or its rank if some are zero in float64; and the mean of the squared singular values, for d "
        "above 128 estimated from products with random vectors.",
    ),
    (
        "shattering",
        "The mean cosine between the gradients dL/dx₀ at neighbouring points, of 32 on a line between two inputs: near "
        "1 for a smooth gradient, near 0 for one that resembles noise (arXiv:1702.08591).",
    ),
    (
        "stands still",
        "A layer stands still in the first steps of training if its ‖ΔW‖/‖W‖ is less than a hundredth of the largest "
        "among the layers.",
    ),
    (
        "mean T, shut, open, closed",
        "The transform gates T of a trained network over the training set. Mean T: over units and items. Gates shut: "
        "units whose mean is below 0.05. Open: units with T > 0.5 for one item, on average, or for at least one item "
        "in a hundred. Shortcuts closed: units and items with T > 0.95, where a coupled carry 1 − T is below 0.05.",
    ),
    (
        "sparsity",
        "Hoyer's measure of inequality among gates: 0 if all are equal, 1 if all but one are zero. For the gates of "
        "one item, and for their means over items.",
    ),
    ("class spread", "The standard deviation over classes of a gate's class mean: whether gates route by class."),
    ("‖Δx‖ / ‖x‖", "The norm of a layer's change of the stream, relative to the norm of the layer's input."),
    (
        "without a layer, costliest layer",
        "A lesion replaces one layer of a trained network by the identity. The costliest layer is the one whose lesion "
        "raises the loss most (arXiv:1507.06228, §4). Layers without a carried input have no lesion.",
    ),
    ("FLOP, multiply-adds", "A multiply-add is two FLOP. Tables of published networks call multiply-adds FLOPs."),
    ("bytes per layer", "The activations that autograd saves for the backward pass, per layer."),
    (
        "no verdict",
        "One short run, which shows only whether the loss falls. It neither judges depths nor ranks blocks.",
    ),
    (
        "not testable with this budget",
        "No block succeeded with any seed, so this depth shows no difference between blocks.",
    ),
    ("three significant digits", "Numbers are rounded; the store has every digit."),
)
