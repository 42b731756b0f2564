"""Features that processes of a Ray cluster compute, each for a part of the list."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import ray
from ray.exceptions import RayActorError

from features.arrays import Array
from features.feature import Resources, Sentence, Steps
from features.feature_set import Column, FeatureSet, Scored, is_sequential, journal_of, restore_order, split_batches
from features.groups import Group, groups
from features.progress import log
from features.request import FeatureRequest
from moses_io.files.errors import InputError, counted
from rerank.cluster.connection import MAX_RESTARTS, Connection, WorkerSettings, value_of

BEGIN = "begin"
"""Name of the method that is called first on every actor. It loads the models that the other methods need."""

MAX_PENDING = 2
"""Unfinished calls per process, above which no further batch is submitted."""


@dataclass(eq=False)
class Call:
    """A call of a method of an actor. It has a value once it is `done`.

    Attributes:
        method: name of the method.
        arguments: its arguments.
        deaths: number of actors that died during the call.
        done: whether the call has returned.
        value: its return value.
    """

    method: str
    arguments: tuple[Any, ...] = ()
    deaths: int = 0
    done: bool = False
    value: Any = None


class Actors:
    """Up to `count` actors, which are started when there is work for them.

    If an actor dies, another one repeats its call, and a new actor replaces it.
    """

    def __init__(self, cluster: Connection, make: Callable[[], Any], count: int) -> None:
        self._cluster, self._make, self.count = cluster, make, count
        self._waiting: deque[Call] = deque()
        self._idle: list[Any] = []
        self._working: dict[Any, tuple[Any, Call]] = {}
        self._failed_starts = 0  # actors that died at their start, one after the other

    @property
    def pending(self) -> int:
        """Number of calls that are not done yet."""
        return len(self._waiting) + sum(call.method != BEGIN for _, call in self._working.values())

    def submit(self, method: str, *arguments: Any) -> Call:
        """Queue a call. An actor makes it as soon as one is idle."""
        call = Call(method, arguments)
        self._waiting.append(call)
        self._assign()
        return call

    def result(self, call: Call) -> Any:
        """Wait for a call and return its value.

        Raises:
            InputError: raised by a call, or more than `MAX_RESTARTS` workers died during one call or, one after the
                other, at their start.
        """
        while not call.done:
            for result in self._cluster.wait(list(self._working)):
                self._collect(result)
            self._assign()
        return call.value

    def _assign(self) -> None:
        """Give waiting calls to idle actors, and start actors for the others."""
        while self._waiting and self._idle:
            actor, call = self._idle.pop(), self._waiting.popleft()
            self._working[getattr(actor, call.method).remote(*call.arguments)] = (actor, call)
        starting = sum(call.method == BEGIN for _, call in self._working.values())
        # Each actor that is already starting will take one of the waiting calls.
        while len(self._waiting) > starting and len(self._working) < self.count:
            actor = self._make()
            self._working[actor.begin.remote()] = (actor, Call(BEGIN))
            starting += 1

    def _collect(self, result: Any) -> None:
        actor, call = self._working.pop(result)
        try:
            call.value = value_of(result)
        except RayActorError as error:
            self._requeue(call, error)
            return
        call.done, call.arguments = True, ()
        self._failed_starts = 0
        self._idle.append(actor)

    def _requeue(self, call: Call, error: RayActorError) -> None:
        """Queue a call again after its actor died. Raise `InputError` after too many deaths."""
        if call.method == BEGIN:
            self._failed_starts += 1
        else:
            call.deaths += 1
            self._waiting.appendleft(call)
        log.info("ray: a worker died. Another does its work")
        if max(call.deaths, self._failed_starts) > MAX_RESTARTS:
            raise InputError(f"--ray: {MAX_RESTARTS + 1} workers died in a row ({type(error).__name__})")


_Batch = list[tuple[Group, dict[str, Array] | Call]]
"""Groups of a batch with the values of models, known from the journal, or with the call that computes them."""


_Description = tuple[dict[str, str], frozenset[str], frozenset[str], int, int]


class RemoteFeatures(AbstractContextManager["RemoteFeatures"]):
    """A `Scorer` whose models run in actors. Each actor loads all models.

    The groups are the ones that a single process scores. Sequential features are computed in this process.
    Journals are compatible with a run without a cluster: either run continues the journal of the other.

    Attributes:
        signatures: signature of each feature, by its label.
        of_models: labels of the features of models.
        whole_lists: labels of the features of models that need all candidates of a sentence.

    Raises:
        InputError: there is no such cluster, or a feature cannot be made from its argument.
    """

    def __init__(self, requests: Sequence[FeatureRequest], resources: Resources, journal: str, address: str) -> None:
        sequential = [request for request in requests if is_sequential(request)]
        self._local = FeatureSet(sequential, resources)
        self._cluster = Connection(address)
        try:
            self._actors = self._make_actors([each for each in requests if each not in sequential], resources)
            described: _Description = self._actors.result(self._actors.submit("describe"))
            remote, self.of_models, self.whole_lists, self._group, self._part = described
            signatures = self._local.signatures | remote
            self.signatures = {request.label: signatures[request.label] for request in requests}
            of_models = [label for label in remote if label in self.of_models]
            self._journal = journal_of(journal, self.signatures, of_models, resources)
        except BaseException:
            self._cluster.close()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._cluster.close()

    def score_all(self, batches: Iterable[list[Sentence]]) -> Iterator[tuple[list[Sentence], Scored]]:
        """Yield each batch with the values of all features, in order, while later batches are already being scored."""
        ahead: deque[tuple[list[Sentence], _Batch, Call]] = deque()
        for sentences in split_batches(batches, self._part):
            ahead.append((sentences, *self._begin(sentences)))
            while self._actors.pending > MAX_PENDING * self._actors.count:
                yield self._finish(*ahead.popleft())
        while ahead:
            yield self._finish(*ahead.popleft())

    def end(self) -> None:
        """End the sequential features. Called after the last sentence."""
        self._local.end()

    def score_separately(self, label: str, sentence: Sentence) -> Array:
        """(candidates, values) of a feature of models that read one candidate after the other."""
        values: Array = self._actors.result(self._actors.submit("call", "score_separately", label, sentence))
        return values

    def _make_actors(self, requests: Sequence[FeatureRequest], resources: Resources) -> Actors:
        worker_settings, gpus = self._cluster.worker_settings, self._cluster.gpus if resources.device != "cpu" else 0
        kind = ray.remote(_Features).options(num_cpus=worker_settings.threads, num_gpus=1 if gpus else 0)
        count = min(gpus, self._cluster.workers) if gpus else self._cluster.workers
        log.info(f"ray: up to {counted(count, 'worker')} with {counted(worker_settings.threads, 'thread')} each")
        return Actors(self._cluster, lambda: kind.remote(worker_settings, requests, resources), count)

    def _begin(self, sentences: list[Sentence]) -> tuple[_Batch, Call]:
        """Submit a batch to all features. Models do not get groups of sentences whose scores are in the journal."""
        read: _Batch = []
        for group in groups(sentences, self._group, bool(self.whole_lists)) if self.of_models else ():
            values = self._journal.values(group) if self._journal else None
            if values is None:
                read.append((group, self._actors.submit("call", "values_of_models", group.sentences)))
            else:
                read.append((group, values))
        return read, self._actors.submit("call", "values_without_models", sentences)

    def _finish(self, sentences: list[Sentence], read: _Batch, other_values: Call) -> tuple[list[Sentence], Scored]:
        """Wait for a batch and join its values."""
        steps, parts = Steps(), []
        for group, part in read:
            if isinstance(part, Call):
                values, taken = self._actors.result(part)
                steps = steps.plus(taken)
                if self._journal:
                    self._journal.store(group, values)
            else:
                values = part
            parts.append((group.indices, values))
        by_label = (
            restore_order(parts) | self._actors.result(other_values) | self._local.values_without_models(sentences)
        )
        return sentences, Scored([Column(label, by_label[label]) for label in self.signatures], steps)


class _Features:
    """Actor with the features of some requests."""

    def __init__(
        self, worker_settings: WorkerSettings, requests: Sequence[FeatureRequest], resources: Resources
    ) -> None:
        self._worker_settings, self._requests, self._resources = worker_settings, requests, resources

    def begin(self) -> None:
        """Load the models.

        This is a method because an error in the constructor would look like the death of the actor.
        """
        with self._worker_settings.applied():
            self._features = FeatureSet(self._requests, self._resources)

    def describe(self) -> _Description:
        """Return `signatures`, `of_models`, `whole_lists`, `group` and `part` of the `FeatureSet`."""
        features = self._features
        return features.signatures, features.of_models, features.whole_lists, features.group, features.part

    def call(self, method: str, *arguments: Any) -> Any:
        """Return the value of a method of the `FeatureSet`."""
        with self._worker_settings.applied():
            return getattr(self._features, method)(*arguments)
