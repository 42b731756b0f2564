"""The plan of a run: which models train, and how long, so that the run ends within the given minutes."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from features.feature import Resources
from features.models.cost import TimeFactors
from features.progress import log
from moses_io.files.errors import InputError, counted
from moses_io.files.json_files import read_record, write_json
from rerank.experiment.chain import stages_of
from rerank.experiment.corpus import Corpus, inspect_corpus
from rerank.experiment.costs import Costs
from rerank.experiment.experiment import Experiment, Unplanned
from rerank.experiment.file import with_recipe
from rerank.experiment.machine import Machine, measure_factors
from rerank.experiment.recipe import (
    LABELS,
    LANGUAGE_MODEL,
    MODELS,
    REDUCED_SIZE,
    SCOPES,
    USUAL_SIZE,
    LengthRange,
    Recipe,
    Scope,
    corpus_of,
    find_length_range,
    find_recipe,
    models_of,
    reads_few_words,
    sizes_for,
)
from rerank.experiment.stages import expected_seconds
from rerank.systems.comparison import Comparison

PLAN = "plan.json"
"""File in the folder of results with the plan of its runs."""

RESERVE = 0.05
"""Fraction of the minutes that is not planned, for what takes longer than expected."""

RUN_START = 15.0
"""Seconds from the start of a run to its first stage, without the time to check lists."""

MIN_PAIR_LENGTH = 2 / 3
"""Minimum length of two trainings, as a fraction of the length of a single one, for which two models are planned."""

SLOW = TimeFactors(2, 2, 2)
"""A slow machine. If a run is short even there, the time factors are not measured."""

Steps = dict[str, int]
"""Length of the training of each model, in steps of `LengthRange`, by the name of the model."""


@dataclass(frozen=True)
class Plan:
    """The plan of a run.

    Attributes:
        minutes: requested minutes of the run.
        max_apply_seconds: maximum of `apply_seconds`, or None.
        corpus: the training corpus.
        steps: length of the training of each model, in steps of `find_length_range`.
        scope: optional parts of the run.
        factors: time factors of the machine, or None if they were not measured.
        seconds: expected time of the run.
        apply_seconds: expected seconds in which the reranker processes 1,000 sentences.
        size: `hidden_size` of networks, except on small corpora.
    """

    minutes: float
    max_apply_seconds: float | None
    corpus: Corpus
    steps: Steps
    scope: Scope
    factors: TimeFactors | None
    seconds: float
    apply_seconds: float
    size: int

    def __post_init__(self) -> None:
        for name, count in self.steps.items():
            if name not in LABELS or count < 1:
                raise ValueError(f"no model {name!r} with {count} steps")
        if self.size not in (REDUCED_SIZE, *sizes_for(self.corpus)):
            raise ValueError(f"no networks of size {self.size}")

    @property
    def has_most_steps(self) -> bool:
        """Whether all models have the most steps in the largest scope.

        Translations do not count: some features exclude them, and so does a maximum of `apply_seconds`.
        """
        most = {name: length_range.maximum for name, length_range in _length_ranges(self.corpus).items()}
        return self.steps == most and replace(self.scope, translations=True) == SCOPES[0]

    @property
    def is_full(self) -> bool:
        """Whether more time would change nothing."""
        return self.has_most_steps and self.size == sizes_for(self.corpus)[-1]

    @property
    def recipe(self) -> Recipe:
        """Models, settings and features."""
        return _recipe(self.corpus, self.steps, self.scope, self.size)


def with_all_models(experiment: Experiment) -> Experiment:
    """Return an experiment whose models are still to be chosen with all of them, for checks before the choice.

    Other experiments are returned unchanged. Raise `InputError` as `inspect_corpus` does, or if a table does not fit.
    """
    if not experiment.unplanned:
        return experiment
    corpus = _inspect(experiment)
    steps = dict.fromkeys(models_of(corpus), 1)
    planned = with_recipe(experiment.unplanned, _recipe(corpus, steps, _scopes(experiment)[0]))
    return replace(planned, monolingual=experiment.monolingual)  # also if no model uses it


def find_plan(experiment: Experiment, machine: Machine) -> Plan:
    """Return the plan in the folder of results if it is for the same corpus and times, otherwise a new one.

    Args:
        experiment: an experiment whose models are still to be chosen.
        machine: the machine.

    Raises:
        InputError: the corpus or the earlier plan cannot be read.
    """
    corpus, path = _inspect(experiment), experiment.output / PLAN
    if path.exists():
        plan, unplanned = _read_plan(path), _unplanned(experiment)
        requested = (unplanned.minutes, unplanned.apply_seconds, corpus)
        if (plan.minutes, plan.max_apply_seconds, plan.corpus) == requested:
            log.info(f"{path}: the plan of an earlier run is used. Remove this file for a new plan")
            return plan
    if make_plan(experiment, corpus, machine, SLOW).is_full:
        return make_plan(experiment, corpus, machine)
    plan = make_plan(experiment, corpus, machine, measure_factors(experiment, corpus, machine))
    if plan.size == REDUCED_SIZE:  # the factors of other sizes do not fit
        factors = measure_factors(experiment, corpus, machine, size=REDUCED_SIZE)
        plan = _make_plan(experiment, corpus, machine, factors, REDUCED_SIZE)
    return plan


def usable_plan(experiment: Experiment, plan: Plan) -> Plan:
    """Return the plan, without translations of models if a feature is for the decoder's own candidates only."""
    return plan if any(scope.translations for scope in _scopes(experiment)) else _without_translations(plan)


def assumed_plan(experiment: Experiment) -> Plan:
    """Return a new plan without measuring the time factors of this machine."""
    return make_plan(experiment, _inspect(experiment), Machine())


def make_plan(experiment: Experiment, corpus: Corpus, machine: Machine, factors: TimeFactors | None = None) -> Plan:
    """Return a new plan. Without `factors`, those of a usual machine are assumed.

    Networks are larger than usual if that leaves time for the most steps of all models. They are smaller if trainings
    would read too few words, for lack of time.
    """
    usual, *sizes = sizes_for(corpus)
    plan = _make_plan(experiment, corpus, machine, factors, usual)
    if not plan.has_most_steps:
        few = reads_few_words(corpus, _epochs(corpus, plan.steps))
        return _make_plan(experiment, corpus, machine, factors, REDUCED_SIZE) if few else plan
    for size in sizes:
        larger = _make_plan(experiment, corpus, machine, factors, size)
        if larger.has_most_steps:
            plan = larger
    return plan


def _make_plan(
    experiment: Experiment, corpus: Corpus, machine: Machine, factors: TimeFactors | None, size: int
) -> Plan:
    """Return a plan with networks of a size."""
    unplanned, sizes = _unplanned(experiment), corpus.sizes

    def expected(steps: Steps, scope: Scope) -> tuple[float, float]:
        planned = with_recipe(unplanned, _recipe(corpus, steps, scope, size))
        costs = Costs(planned, machine.device, sizes, factors)
        stages = stages_of(planned, Resources(machine.device), False, sizes, factors, planned.own_candidates)
        checks = sum(costs.reading(name).seconds for name in planned.sets)
        return RUN_START + checks + expected_seconds(stages, machine.jobs_of(len(steps))), costs.apply_seconds()

    max_seconds, max_apply_seconds = 60 * unplanned.minutes * (1 - RESERVE), unplanned.apply_seconds

    def fits(steps: Steps, scope: Scope) -> bool:
        seconds, apply_seconds = expected(steps, scope)
        return seconds <= max_seconds and (max_apply_seconds is None or apply_seconds <= max_apply_seconds)

    steps, scope = search(corpus, fits, _scopes(experiment))
    return Plan(unplanned.minutes, max_apply_seconds, corpus, steps, scope, factors, *expected(steps, scope), size)


def search(
    corpus: Corpus, fits: Callable[[Steps, Scope], bool], scopes: tuple[Scope, ...] = SCOPES
) -> tuple[Steps, Scope]:
    """Return lengths of trainings, and a scope, that fit into the time.

    Scope: the first of `scopes` that leaves enough time for training, otherwise the last one. Enough time is

    * with an ablation, the minimum length of all models, because an ablation does not improve translations.
    * without, half of the minimum length of the first two models. Shorter trainings cost less quality than a shortlist,
      or than lists without translations.

    Lengths: each model that fits gets its minimum length, in the order in which models are added. A language model is
    added only if all others fit. The remaining time is divided evenly. If fewer than two models fit, two shorter
    trainings are tried, of at least half of the minimum, or nearly as long as a single training, because two models
    train side by side. If they do not fit either, there is a single model, or none. At the end, an ablation is added if
    it fits.
    """
    ranges = _length_ranges(corpus)

    def leaves_time(scope: Scope) -> bool:
        least = {
            name: length_range.minimum for name, length_range in ranges.items() if scope.ablation or name in MODELS[:2]
        }
        enough = least if scope.ablation else {name: (count + 1) // 2 for name, count in least.items()}
        return fits(enough, scope)

    scope = next(filter(leaves_time, scopes), scopes[-1])
    steps = _steps_of(ranges, lambda steps: fits(steps, scope))
    everything = replace(scope, ablation=True)
    return steps, everything if steps and fits(steps, everything) else scope


def _steps_of(ranges: dict[str, LengthRange], fits: Callable[[Steps], bool]) -> Steps:
    """Return lengths of trainings that fit into the time.

    `ranges` are the possible lengths of each model, in the order in which models are added.
    """
    first, second, *_ = ranges
    chosen = Steps()
    for name, length_range in ranges.items():
        longer = chosen | {name: length_range.minimum}
        if (name != LANGUAGE_MODEL or len(chosen) == len(ranges) - 1) and fits(longer):
            chosen = longer
    if len(chosen) < 2:
        least = ranges[first].minimum
        two = _largest(least, lambda count: fits({first: count, second: count}))
        one = _largest(least, lambda count: fits({first: count}))
        if two and (2 * two >= least or two >= one * MIN_PAIR_LENGTH):
            return {first: two, second: two}
        if not chosen:
            return {first: one} if one else {}

    def longer_by(more: int, steps: Steps) -> Steps:
        return {name: min(ranges[name].maximum, count + more) for name, count in steps.items()}

    count = _largest(
        max(ranges[name].maximum - least for name, least in chosen.items()), lambda more: fits(longer_by(more, chosen))
    )
    steps = longer_by(count, chosen)
    for name in chosen:
        longer = steps | longer_by(1, {name: steps[name]})
        if fits(longer):
            steps = longer
    return steps


def _largest(maximum: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number from 1 to `maximum` that fits, or 0 if none does. Below one that fits, all must fit."""
    low, high = 0, maximum
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def apply_plan(unplanned: Unplanned, plan: Plan, comparison: Comparison | None = None) -> Experiment:
    """Return the experiment with the models of a plan.

    If a comparison found that translations of models are much worse than those of Moses, they are not added to the
    lists. The models themselves are the same.
    """
    comments = plan_lines(plan)
    if comparison and plan.scope.translations:
        comments.append(str(comparison))
        if not comparison.added:
            plan = _without_translations(plan)
    return with_recipe(unplanned, plan.recipe, comments)


def _without_translations(plan: Plan) -> Plan:
    return replace(plan, scope=replace(plan.scope, translations=False))


def plan_lines(plan: Plan) -> list[str]:
    """Return lines that describe a plan."""
    models, epochs = plan.recipe.models, _epochs(plan.corpus, plan.steps)
    if not models:
        limit = "" if plan.max_apply_seconds is None else f" with apply_seconds = {plan.max_apply_seconds:g}"
        return [f"no model for this corpus fits into {plan.minutes:g} min{limit}, so none is trained"]
    return [
        f"planned for {plan.minutes:g} min: {counted(len(models), 'model')}, about {plan.seconds / 60:.0f} min in all, "
        f"and about {plan.apply_seconds:.0f} s for 1,000 sentences when the reranker is applied",
        *(
            f"{name}: {settings['preset']}, {epochs[name]:.3g} epochs"
            + (f", hidden_size {settings['hidden_size']}" if plan.size != USUAL_SIZE else "")
            for name, settings in models.items()
        ),
        *_monolingual_lines(plan),
    ]


def _monolingual_lines(plan: Plan) -> list[str]:
    """Return a line about monolingual text that is not used, if there is any."""
    corpus = plan.corpus
    if LANGUAGE_MODEL in plan.steps or not corpus.monolingual.sentences:
        return []
    return [f"the monolingual text is not used: {corpus.fault_of_monolingual or 'the run has too little time'}"]


def write_plan(plan: Plan, folder: Path) -> None:
    """Write a plan into the folder of results."""
    write_json(str(folder / PLAN), asdict(plan), indent=1)


def _read_plan(path: Path) -> Plan:
    try:
        return read_record(path, Plan)
    except InputError as error:
        raise InputError(f"{error}. Remove it for a new plan") from None


def _recipe(corpus: Corpus, steps: Steps, scope: Scope, size: int = USUAL_SIZE) -> Recipe:
    return find_recipe(corpus, _epochs(corpus, steps), scope, size)


def _epochs(corpus: Corpus, steps: Steps) -> dict[str, float]:
    """Return the epochs of the training of each model."""
    ranges = _length_ranges(corpus)
    return {name: count * ranges[name].step for name, count in steps.items()}


def _length_ranges(corpus: Corpus) -> dict[str, LengthRange]:
    """Return the possible lengths of the training of each model, in the order in which models are added."""
    return {name: find_length_range(corpus_of(corpus, name)) for name in models_of(corpus)}


def _inspect(experiment: Experiment) -> Corpus:
    """Return the sizes of the training corpus of an experiment."""
    return inspect_corpus(experiment.train, experiment.dev.texts, experiment.monolingual)


def _unplanned(experiment: Experiment) -> Unplanned:
    assert experiment.unplanned, "the experiment names its models"
    return experiment.unplanned


def _scopes(experiment: Experiment) -> tuple[Scope, ...]:
    """Return the possible scopes. Some features are for the decoder's own candidates only."""
    decoder_only = any(request.row.of_decoder for request in experiment.features.values())
    return tuple(scope for scope in SCOPES if not (decoder_only and scope.translations))
