"""Trainability: does this depth train, how fast, and to what loss?

A run succeeds by the rule of ``highway_bench.success``. The learning rate is tuned for each depth: every block gets the
same trials over the same rates with the same seeds. The rate of lowest final loss is run again on fresh seeds, and only
those runs count. A recipe with a ``search`` draws other hyper-parameters at random too; see ``tasks.training_cells``.

With ``"together": N`` in the recipe, at most N runs of one shape train as one population where that is faster; see
``tasks.training_cells``. Each run has rows of its own. The metric ``together`` is the number of members, and a run's
seconds are its equal share of the population's time.

Losses belong to no machine, so keys leave it out and a search goes on on another one. Seconds are those of the
machine in their row.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import torch
from optuna.trial import TrialState

from highway_bench.cell import Cell
from highway_bench.data import Data, DataSet, make_dataset
from highway_bench.errors import USER_ERRORS, BadInput
from highway_bench.families.parts import count_parameters
from highway_bench.measure.device import release
from highway_bench.registry import imported_function
from highway_bench.results.schema import Status
from highway_bench.success.judging import THRESHOLD, Judgement, judge, success_loss
from highway_bench.tasks.architecture_network import ON_DATA, cell_network, meta_network
from highway_bench.tasks.base import CellCost, Skip, Task, register_task, value_of
from highway_bench.tasks.from_cell import (
    BUDGET_MISMATCH,
    budget_mismatch,
    cell_family,
    cell_spec,
    dataset_options,
    network_bytes,
    recipe_from,
)
from highway_bench.tasks.measurement import Measurement, Metric, Outcome
from highway_bench.tasks.training_cells import (
    LADDER,
    RATES,
    check_population,
    check_rung,
    networks_in_memory,
    population_limit,
    populations_of,
    reason_to_train_alone,
    rung_below,
    shared_shape,
    study_of,
    trial_cells,
    trials_of,
    with_trial,
)
from highway_bench.training.checkpoint import Checkpoint, CheckpointFolder
from highway_bench.training.evaluation import LossFunction, evaluate, mistakes
from highway_bench.training.loop import Training
from highway_bench.training.population import Population
from highway_bench.training.recipe import TRAINING, Recipe
from highway_bench.training.stacked import NotStackable
from highway_bench.tuning import winner
from highway_bench.words import POSITIVE, REFERENCE, Word, either, mapping, one_of, truth, whole

CURVE_POINTS = 50
EVALUATE_AT_MOST = 2_000  # training items that the final accuracy is computed on


@dataclass
class TrainingWork:
    """A training run that is ready to start."""

    training: Training
    data: Data
    dataset: DataSet
    params: int
    why_alone: str | None = None  # the reason, where it does not train in a population although its recipe asks for one
    checkpoint: Checkpoint | None = None

    def run(self) -> None:
        """Train to the end, unless that is done already; write the checkpoint if the run has one."""
        if self.checkpoint is None:
            self.training.run()
        else:
            self.checkpoint.train([self.training], self.training.run)

    def release(self) -> None:
        """Free the memory of the gradients."""
        self.training.optimiser.zero_grad(set_to_none=True)


@register_task
class Trainability(Task):
    """Whether a depth trains on real data, how fast and to what loss, at a learning rate tuned for it."""

    name = "trainability"
    version = "2"  # 2: IEEE float32 on a GPU; an embedding without padding trains every row
    coordinates = ("start", "seed", "dataset")
    recipe_words: Mapping[str, Word] = {
        **TRAINING,
        **ON_DATA,
        "rate": either(POSITIVE, "tuned").meaning("The learning rate after the warm-up; tuned: the best of rates."),
        "rates": RATES.meaning("The learning rates that a tuned run tries."),
        "own_rate": truth().meaning("Whether the rate was chosen for this block and depth: it counts as tuned."),
        "threshold": POSITIVE.meaning(
            f"The loss that counts as success, in constant predictor's losses; {THRESHOLD} is a text's trigram."
        ),
        "verdict": truth().meaning("Whether the run counts for a verdict on its depth."),
        "evaluate": one_of("end", "epoch", "never").meaning(
            "When the network is tested: at its end, after every epoch, or never."
        ),
        "mistakes": whole(0).meaning("How many wrongly classified test items are stored, at most."),
        "together": whole(1).meaning("How many runs of one shape may train as one population."),
        "loss": either(REFERENCE, None).meaning(
            "A loss of your own, from outputs and targets to one number; none for that of the data set."
        ),
        "search": mapping("a space, a number of trials and a seed").meaning("A random search of hyper-parameters."),
        "ladder": LADDER,
    }
    metrics: tuple[Metric, ...] = (
        Metric("final_loss", "nat", "lower"),
        Metric("success", "1", "higher"),
        Metric("steps_to_threshold", "step", "lower"),
        Metric("seconds_to_threshold", "s", "lower", label="time to threshold"),
        Metric("step_seconds", "s", "lower", label="training step"),
        Metric("train_accuracy", "1", "higher", percent=True),
        Metric("test_loss", "nat", "lower"),
        Metric("test_bits", "bit", "lower", label="test bits per byte"),
        Metric("test_accuracy", "1", "higher", percent=True),
        Metric("success_loss", "nat", label="success at", hint="the largest final loss that is a success"),
        Metric("rate", "1", label="learning rate"),
        Metric("loss", "nat", "lower", label="training loss"),
        Metric("epoch_train_loss", "nat", "lower", label="training loss of an epoch"),
        Metric("epoch_test_loss", "nat", "lower", label="test loss after an epoch"),
        Metric("epoch_test_accuracy", "1", "higher", label="test accuracy after an epoch", percent=True),
        Metric("mistaken_for", "1"),
        BUDGET_MISMATCH,
        Metric("together", "1", label="trained together", hint="networks that were trained as one"),
    )

    def group(self, cell: Cell) -> Hashable:
        """Cells of one shape that may train as one population, at most ``together`` of them."""
        if networks_in_memory(cell) == 1:
            return cell.identity
        most = population_limit(cell)
        return (
            shared_shape(cell).identity,
            cell.trial is None,
            (cell.seed if cell.trial is None else cell.trial) // most,
        )

    def needs(self, cell: Cell) -> tuple[Cell, ...]:
        """The trials of the cell's search, and the rung below it on a ladder."""
        return (*rung_below(cell), *trial_cells(cell))

    def resolve(self, cell: Cell, results: Mapping[Cell, Mapping[str, float | None]]) -> Cell:
        """The cell with the hyper-parameters of the trial of lowest final loss.

        Where every trial diverged, it is the trial of the smallest rate.

        Raises ``BadInput`` where a trial did not finish: the block would be tuned on fewer trials than others. On a
        ladder, raises ``Skip`` where the rung below trained with no seed, and ``BadInput`` where that is not known.
        """
        check_rung(cell, results)
        if not trials_of(cell):
            return cell
        check_scale(cell)
        study = study_of(cell, results)
        for trial in study.get_trials(states=[TrialState.RUNNING]):
            meta_network(cell)  # raises Skip, not BadInput, where no network can be built
            raise BadInput(f"the search's trial at rate {trial.params['rate']} did not finish")
        return with_trial(cell, winner(study))

    def check(self, cell: Cell) -> None:
        super().check(cell)
        check_population(cell)
        if not trials_of(cell):  # a tuned cell runs with a trial's hyper-parameters
            recipe_from(cell)

    def timeout(self, cell: Cell) -> float:
        return 60.0 + 20.0 * self.cost(cell).seconds

    def cost(self, cell: Cell) -> CellCost:
        """From the family's ``train_cost`` of a step of one layer."""
        family = cell_family(cell)
        layer = family.train_cost.layer_seconds
        if (rate := family.train_cost.flop_rate) is not None:
            flops = 3 * cell_spec(cell).layer_flops(family, cell.width, positions=1)
            layer = max(layer, flops * cell.batch_size / rate)
        seconds = 1.0 + layer * cell.depth * int(cell.recipe.get("steps", Recipe.steps))
        return CellCost(seconds, network_bytes(cell) * networks_in_memory(cell))

    def prepare(self, cell: Cell) -> TrainingWork:
        """The cell's training, ready to start. Raises ``BadInput`` for a cell without a data set."""
        if cell.dataset is None:
            raise BadInput("trainability needs a data set")
        check_scale(cell)
        dataset = make_dataset(cell.dataset, **dataset_options(cell))
        network = cell_network(cell)
        data = dataset.load(seed=cell.seed)
        recipe = recipe_from(cell)
        test = data.test if evaluates_epochs(cell) else None
        training = Training(
            network,
            data.train,
            dataset.target_kind,
            recipe,
            cell.batch_size,
            cell.seed,
            test,
            own_loss=own_loss(cell),
        )
        return TrainingWork(training, data, dataset, count_parameters(network), reason_to_train_alone(cell))

    def measure(self, cells: Sequence[Cell], checkpoints: CheckpointFolder | None = None) -> Iterator[Outcome]:
        """Train the group's populations one after the other; each resumes from its checkpoint, and removes it when
        done."""
        waiting = deque(populations_of(cells, checkpoints))
        alone: dict[Cell, str] = {}  # why, of cells whose population ended during training
        while waiting:
            population = waiting.popleft()
            works: dict[Cell, TrainingWork] = {}
            for cell in population:
                try:
                    works[cell] = self.prepare(cell)
                except USER_ERRORS as error:  # the worker turns it into a status and a row
                    yield Outcome(cell, error=error)
                else:
                    works[cell].why_alone = alone.get(cell, works[cell].why_alone)
            try:
                train(works, checkpoints)
            except (torch.OutOfMemoryError, NotStackable) as error:
                if len(works) < 2:
                    raise
                if checkpoints is not None:
                    checkpoints.checkpoint(works).remove()
                parts = halves(list(works))
                if isinstance(error, NotStackable):
                    parts = [[cell] for cell in works]
                    alone |= dict.fromkeys(works, str(error))
                waiting.extendleft(reversed(parts))
                works.clear()
                release(population[0].device)
                continue
            for cell, work in works.items():
                try:
                    yield Outcome(cell, tuple(self.measurements(work, cell)), work.params)
                except USER_ERRORS as error:
                    yield Outcome(cell, error=error)
                finally:
                    work.release()
            if checkpoints is not None:
                for members in (works, *([cell] for cell in works)):
                    checkpoints.checkpoint(members).remove()

    def measurements(self, work: TrainingWork, cell: Cell) -> Iterator[Measurement]:
        """Train ``work`` to its end and give its measurements, each with the run's status."""
        work.run()
        dataset = work.dataset
        target = success_loss(dataset.chance_loss, dataset.reference_loss, value_of(cell, "threshold", THRESHOLD))
        run = judge(work.training.history(), target, work.training.recipe.steps)
        for one in (Measurement(metric="success_loss", value=target), *self.results(work, cell, run)):
            yield replace(one, status=run.status, message=one.message or run.message)

    def results(self, work: TrainingWork, cell: Cell, run: Judgement) -> Iterator[Measurement]:
        """The measurements of a run that has ended."""
        times, reached = work.training.times, run.reached
        yield Measurement(metric="final_loss", value=run.final, message=unrepeatable_message(work))
        yield Measurement(metric="success", value=float(run.status == Status.OK))
        yield Measurement(metric="steps_to_threshold", value=reached)
        yield Measurement(metric="seconds_to_threshold", value=times[reached - 1] if reached else None)
        step_seconds = (after - before for before, after in zip([0.0, *times], times, strict=False))
        yield Measurement(metric="step_seconds", value=median(step_seconds))
        yield Measurement(metric="rate", value=work.training.recipe.rate)
        yield Measurement(metric="together", value=float(work.training.together), message=alone_message(work))
        yield budget_mismatch(cell)
        if run.final is not None and value_of(cell, "evaluate", "end") != "never":
            yield from evaluation_of(work)
        for step, loss in curve(work.training.history()):
            yield Measurement(metric="loss", value=loss, axis="step", index=step)
        if evaluates_epochs(cell):
            for metric, values in epoch_values(work.training).items():
                for epoch, value in enumerate(values, start=1):
                    yield Measurement(metric=metric, value=value, axis="epoch", index=epoch)
        if run.final is not None and (most := value_of(cell, "mistakes", 0)):
            for row, predicted in mistakes(work.training.network, work.data.test, most):
                yield Measurement(metric="mistaken_for", value=predicted, axis="test item", index=row)


def evaluation_of(work: TrainingWork) -> Iterator[Measurement]:
    """Loss and accuracy of the trained network, on training and test items."""
    kind, network, own = work.dataset.target_kind, work.training.network, work.training.own_loss
    train = evaluate(network, work.data.train, kind, own=own, at_most=EVALUATE_AT_MOST)
    test = evaluate(network, work.data.test, kind, own=own)
    yield Measurement(metric="train_accuracy", value=train.accuracy)
    test_loss = test.loss if math.isfinite(test.loss) else None
    yield Measurement(metric="test_loss", value=test_loss)
    if work.dataset.byte_targets:
        yield Measurement(metric="test_bits", value=None if test_loss is None else test_loss / math.log(2))
    yield Measurement(metric="test_accuracy", value=test.accuracy)


def halves(cells: Sequence[Cell]) -> list[list[Cell]]:
    """``cells`` in two parts of nearly equal size."""
    middle = (len(cells) + 1) // 2
    return [list(cells[:middle]), list(cells[middle:])]


def check_scale(cell: Cell) -> None:
    """Raise ``Skip`` for float16: losses are not scaled here, so small gradients would become 0."""
    if cell.dtype == "float16":
        raise Skip("training in float16 needs a scaled loss, which this benchmark does not have: choose bfloat16")


def train(works: Mapping[Cell, TrainingWork], checkpoints: CheckpointFolder | None) -> None:
    """Restore ``works`` from their checkpoint, and train several as one population.

    A single work, or one whose modules cannot be stacked, trains later in ``Trainability.measurements``.

    Raises ``torch.OutOfMemoryError`` for a population that lacks memory, and ``NotStackable`` for one that turns out
    during training not to be trainable as one. The works are then of no use.
    """
    members = [work.training for work in works.values()]
    checkpoint = None if checkpoints is None or not works else checkpoints.checkpoint(works)
    if checkpoint is not None:
        checkpoint.restore(members)
    population = None
    try:
        population = Population(members) if len(members) > 1 else None
    except NotStackable as error:  # a property of the modules, which no registry declares
        for work in works.values():
            work.why_alone = str(error)
    if population is not None and checkpoint is not None:
        checkpoint.train(members, population.run)
    elif population is not None:
        population.run()
    for cell, work in works.items():
        work.checkpoint = checkpoints.checkpoint([cell]) if checkpoints is not None and population is None else None


def unrepeatable_message(work: TrainingWork) -> str | None:
    """Which operators of the run give other numbers in another run, in one line; ``None`` for none."""
    names = ", ".join(sorted(work.training.unrepeatable))
    return f"not repeatable bit by bit on this device: {names}" if names else None


def alone_message(work: TrainingWork) -> str | None:
    """Why the run was not part of a population, in one line; ``None`` where there is no reason."""
    return None if work.why_alone is None else f"trained by itself: {work.why_alone}".partition("\n")[0]


def evaluates_epochs(cell: Cell) -> bool:
    """Whether ``cell`` is evaluated after every epoch; raises ``BadInput`` for a value that the word cannot have."""
    return bool(value_of(cell, "evaluate", "end") == "epoch")


def own_loss(cell: Cell) -> LossFunction | None:
    """The loss that the cell's recipe names; ``None`` for that of the data set."""
    reference = value_of(cell, "loss", None)
    return None if reference is None else imported_function(reference, "loss")


def epoch_values(training: Training) -> dict[str, list[float | None]]:
    """Curves by epoch: mean training loss over the epoch, test loss and test accuracy at its end."""
    return {
        "epoch_train_loss": list(training.epoch_losses()),
        "epoch_test_loss": [epoch.loss if math.isfinite(epoch.loss) else None for epoch in training.epochs],
        "epoch_test_accuracy": [epoch.accuracy for epoch in training.epochs],
    }


def curve(losses: Sequence[float], points: int = CURVE_POINTS) -> list[tuple[int, float]]:
    """``losses`` by step, as at most ``points`` pairs (last step, mean loss) of equal intervals of steps.

    The curve stops before the first loss that is not finite.
    """
    finite = list(itertools.takewhile(math.isfinite, losses))
    width = max(1, math.ceil(len(finite) / points))
    parts = [finite[start : start + width] for start in range(0, len(finite), width)]
    return [(min((index + 1) * width, len(finite)), sum(part) / len(part)) for index, part in enumerate(parts)]
