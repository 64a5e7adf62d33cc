"""Trainability: does this depth train, how fast, and to what loss?

A run succeeds by the rule of ``highway_bench.success``. The learning rate is tuned for each depth: every block gets the
same trials over the same rates with the same seeds, and the rate of lowest final loss is run again on fresh seeds; only
those runs count. A recipe with a ``search`` draws more than the rate at random; see ``_search``.

With ``"together": N`` in the recipe, at most N runs of one shape train as one population where that is faster. Each
still has rows of its own, ``together`` says how many there were, and its seconds are its equal share of the time.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from highway_bench.cell import Cell
from highway_bench.data import Data, DataSet, make_dataset
from highway_bench.errors import USER_ERRORS, BadInput
from highway_bench.results.schema import Status
from highway_bench.success import THRESHOLD, Judgement, judge
from highway_bench.tasks._curve import curve
from highway_bench.tasks._ladder import LADDER, check_rung, rung_below
from highway_bench.tasks.base import Measurement, Metric, Outcome, Task, register_task
from highway_bench.tasks.from_cell import (
    budget_mismatch,
    cell_family,
    cell_network,
    cell_spec,
    count_parameters,
    dataset_options,
)
from highway_bench.tasks.populations import at_once, most_together, shape, stacks
from highway_bench.tasks.recipe_words import ON_DATA, RATES, recipe_from, value_of
from highway_bench.tasks.search_trials import SEARCH_SEED, trial_cell, trials_of, with_trial
from highway_bench.training.checkpoint import Checkpoint, CheckpointFolder
from highway_bench.training.evaluation import evaluate, mistakes
from highway_bench.training.loop import Training
from highway_bench.training.population import Population
from highway_bench.training.recipe import POSITIVE, TRAINING, Recipe, Word, either, one_of, whole
from highway_bench.training.stacked import NotStackable

EVALUATE_AT_MOST = 2_000  # training items on which the final accuracy is taken
PRODUCT_RATE = 5e10  # FLOP/s of large products on one CPU core


@dataclass
class TrainingWork:
    """A training run ready to start. ``step`` is one training step."""

    training: Training
    data: Data
    dataset: DataSet
    params: int
    flops_per_item: float | None = None
    why_alone: str | None = None  # where it was to train with others and could not
    checkpoint: Checkpoint | None = None

    @property
    def items(self) -> int:
        return self.training.batch_size

    def step(self) -> None:
        self.training.step()

    def run(self) -> None:
        """Train to the end, as far as that is not done, with a checkpoint if it has one."""
        if self.checkpoint is None:
            self.training.run()
        else:
            self.checkpoint.train([self.training], self.training.run)

    def restore(self) -> None:
        """Nothing: a run goes on where it is."""

    def close(self) -> None:
        self.training.optimiser.zero_grad(set_to_none=True)


@register_task
class Trainability(Task[TrainingWork]):
    """Whether a depth trains on real data, how fast and to what loss, at a learning rate tuned for it."""

    name = "trainability"
    version = "2"  # 2: IEEE float32 on a GPU; an embedding without padding trains every row
    meter = True  # the seconds are this machine's, and rounding differs between machines
    coordinates = ("seed", "dataset")
    recipe_words: Mapping[str, Word] = {
        **TRAINING,
        **ON_DATA,
        "rate": either(POSITIVE, "tuned"),
        "rates": RATES,
        "threshold": POSITIVE,
        "verdict": Word("true or false", lambda value: isinstance(value, bool)),
        "evaluate": one_of("end", "epoch"),
        "mistakes": whole(0),
        "together": whole(1),
        "search": Word("a space, a number of trials and a seed", lambda value: isinstance(value, Mapping)),
        "ladder": LADDER,
    }
    metrics: tuple[Metric, ...] = (
        Metric("final_loss", "nat", "lower"),
        Metric("success", "1", "higher"),
        Metric("steps_to_threshold", "step", "lower"),
        Metric("seconds_to_threshold", "s", "lower"),
        Metric("step_seconds", "s", "lower"),
        Metric("train_accuracy", "1", "higher"),
        Metric("test_loss", "nat", "lower"),
        Metric("test_accuracy", "1", "higher"),
        Metric("rate", "1"),
        Metric("loss", "nat", "lower"),
        Metric("epoch_train_loss", "nat", "lower"),
        Metric("epoch_test_loss", "nat", "lower"),
        Metric("epoch_test_accuracy", "1", "higher"),
        Metric("mistaken_for", "1"),
        Metric("budget_mismatch", "1"),
        Metric("together", "1"),  # networks that were trained as one; 1 for a network by itself
    )

    def group(self, cell: Cell) -> Hashable:
        """Cells of one shape that may train as one, at most as many as their recipe says."""
        if at_once(cell) == 1:
            return cell.key
        most = most_together(cell)
        return shape(cell).key, cell.trial is None, (cell.seed if cell.trial is None else cell.trial) // most

    def at_once(self, cell: Cell) -> int:
        return at_once(cell)

    def needs(self, cell: Cell) -> tuple[Cell, ...]:
        """The trials of a search, and the rung below on a ladder."""
        return (*rung_below(cell), *self.trials(cell))

    def trials(self, cell: Cell) -> tuple[Cell, ...]:
        """The search's trials: those drawn, or one a rate, with one seed, where the rate is to be tuned."""
        if "search" in cell.recipe:
            return tuple(trial_cell(cell, trial) for trial in trials_of(cell))
        if cell.recipe.get("rate") != "tuned":
            return ()
        rates = cell.recipe.get("rates")
        if not rates:
            raise BadInput("a recipe with rate 'tuned' needs a list of rates to try")
        fixed = {name: value for name, value in cell.recipe.items() if name != "rates"}
        return tuple(
            cell.but(recipe={**fixed, "rate": rate}, trial=trial, seed=SEARCH_SEED) for trial, rate in enumerate(rates)
        )

    def resolve(self, cell: Cell, found: Mapping[Cell, Mapping[str, float | None]]) -> Cell:
        """The cell with the hyper-parameters of the lowest final loss; of the smallest rate where every trial diverged.

        Raises ``BadInput`` where a trial did not finish: its block would be tuned on fewer trials than others. Raises
        ``Skip`` on a ladder whose rung below trained at no seed, ``BadInput`` where that is not known.
        """
        check_rung(cell, found)
        trials = self.trials(cell)
        if not trials:
            return cell
        scored = []
        for place, trial in enumerate(trials):
            ended = found.get(trial, {})
            if ended.get("success") is None:  # a run that diverged has no final loss, but it has failed to succeed
                cell_network(cell.but(depth=1, device="cpu"))  # a pair that makes no network is skipped here as well
                raise BadInput(f"the search's trial at rate {trial.recipe['rate']} did not finish")
            scored.append((ended.get("final_loss"), trial.recipe["rate"], place))
        finite = [(loss, rate, place) for loss, rate, place in scored if loss is not None]
        _, rate, place = min(finite) if finite else min((math.inf, rate, place) for _, rate, place in scored)
        if "search" in cell.recipe:
            return with_trial(cell, trials_of(cell)[place])
        return cell.but(recipe={**cell.recipe, "rate": rate})

    def timeout(self, cell: Cell) -> float:
        return 60.0 + 20.0 * self.estimate(cell)

    def estimate(self, cell: Cell) -> float:
        """From a step's cost a layer as seen on one CPU core (milliseconds), which is a guess elsewhere, and its
        products where they are large."""
        unknown = 0.5 if cell.family_options.get("kind") == "vector" else 5.0  # a layer of the user's tells its kind
        milliseconds = {"dense": 0.2, "dense-pair": 0.3, "mlp": 0.5}.get(cell.family, unknown)
        layer = milliseconds / 1e3
        if cell.family == "dense":
            flops = 3 * cell_spec(cell).layer_flops(cell_family(cell), cell.width, positions=1)
            layer = max(layer, flops * cell.batch_size / PRODUCT_RATE)
        return 1.0 + layer * cell.depth * int(cell.recipe.get("steps", Recipe.steps))

    def prepare(self, cell: Cell) -> TrainingWork:
        if cell.dataset is None:
            raise BadInput("trainability needs a data set")
        dataset = make_dataset(cell.dataset, **dataset_options(cell))
        network = cell_network(cell)
        data = dataset.load(seed=cell.seed)
        recipe = recipe_from(cell)
        watched = data.test if watches_epochs(cell) else None
        training = Training(network, data.train, dataset.target_kind, recipe, cell.batch_size, cell.seed, watched)
        return TrainingWork(training, data, dataset, count_parameters(network))

    def measure_group(self, cells: Sequence[Cell]) -> Iterator[Outcome]:
        return self.resume_group(cells, None)

    def resume_group(self, cells: Sequence[Cell], kept: CheckpointFolder | None) -> Iterator[Outcome]:
        """The group in stacks that train as one; each goes on from its checkpoint and removes it at its end."""
        for stack in stacks(cells, kept):
            works: dict[Cell, TrainingWork] = {}
            for cell in stack:
                try:
                    works[cell] = self.prepare(cell)
                except USER_ERRORS as error:  # the worker gives it a status and a row
                    yield Outcome(cell, error=error)
            train(works, kept)
            for cell, work in works.items():
                try:
                    yield Outcome(cell, tuple(self.measure(work, cell)), work.params, work.flops_per_item)
                except USER_ERRORS as error:
                    yield Outcome(cell, error=error)
                finally:
                    work.close()
            if kept is not None:
                for cells_of_one in (works, *([cell] for cell in works)):
                    kept.checkpoint(cells_of_one).remove()

    def measure(self, work: TrainingWork, cell: Cell) -> Iterable[Measurement]:
        work.run()
        target = value_of(cell, "threshold", THRESHOLD) * work.dataset.chance_loss
        run = judge(work.training.history(), target, work.training.recipe.steps)
        for one in self.found(work, cell, run):
            yield replace(one, status=run.status, message=one.message or run.message)

    def found(self, work: TrainingWork, cell: Cell, run: Judgement) -> Iterator[Measurement]:
        """The measurements of a run that has ended; each of them gets the run's status."""
        times, reached = work.training.times, run.reached
        yield Measurement(metric="final_loss", value=run.final)
        yield Measurement(metric="success", value=float(run.status == Status.OK))
        yield Measurement(metric="steps_to_threshold", value=reached)
        yield Measurement(metric="seconds_to_threshold", value=times[reached - 1] if reached else None)
        each = (after - before for before, after in zip([0.0, *times], times, strict=False))
        yield Measurement(metric="step_seconds", value=median(each))
        yield Measurement(metric="rate", value=work.training.recipe.rate)
        yield Measurement(metric="together", value=float(work.training.together), message=work.why_alone)
        yield budget_mismatch(cell)
        if run.final is not None:
            yield from answers_of(work)
        for step, loss in curve(work.training.history()):
            yield Measurement(metric="loss", value=loss, axis="step", index=step)
        if watches_epochs(cell):
            for metric, values in epoch_values(work.training).items():
                for epoch, value in enumerate(values, start=1):
                    yield Measurement(metric=metric, value=value, axis="epoch", index=epoch)
        if run.final is not None and (most := value_of(cell, "mistakes", 0)):
            for row, given in mistakes(work.training.network, work.data.test, most):
                yield Measurement(metric="mistaken_for", value=given, axis="test item", index=row)


def answers_of(work: TrainingWork) -> Iterator[Measurement]:
    """What the trained network's answers are worth."""
    kind, network = work.dataset.target_kind, work.training.network
    train = evaluate(network, work.data.train, kind, at_most=EVALUATE_AT_MOST)
    test = evaluate(network, work.data.test, kind)
    yield Measurement(metric="train_accuracy", value=train.accuracy)
    yield Measurement(metric="test_loss", value=test.loss if math.isfinite(test.loss) else None)
    yield Measurement(metric="test_accuracy", value=test.accuracy)


def train(works: Mapping[Cell, TrainingWork], kept: CheckpointFolder | None) -> None:
    """Put ``works`` where they left off, and train several as one; one by itself trains when it is measured."""
    members = [work.training for work in works.values()]
    checkpoint = None if kept is None or not works else kept.checkpoint(works)
    if checkpoint is not None:
        checkpoint.restore(members)
    population, why_alone = None, None
    try:
        population = Population(members) if len(members) > 1 else None
    except NotStackable as error:  # what its modules do, no registry can tell
        why_alone = f"trained by itself: {error}".partition("\n")[0]
    if population is not None and checkpoint is not None:
        checkpoint.train(members, population.run)
    elif population is not None:
        population.run()
    for cell, work in works.items():
        work.why_alone = why_alone
        work.checkpoint = kept.checkpoint([cell]) if kept is not None and population is None else None


def watches_epochs(cell: Cell) -> bool:
    """Whether ``cell`` is to be evaluated after every epoch; raises ``BadInput`` for a word that says neither."""
    return bool(value_of(cell, "evaluate", "end") == "epoch")


def epoch_values(training: Training) -> dict[str, list[float | None]]:
    """The curves by epoch: mean training loss while it ran, test loss and accuracy at its end."""
    return {
        "epoch_train_loss": list(training.epoch_losses()),
        "epoch_test_loss": [answers.loss if math.isfinite(answers.loss) else None for answers in training.epochs],
        "epoch_test_accuracy": [answers.accuracy for answers in training.epochs],
    }
