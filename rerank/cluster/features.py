"""Features whose values processes of a Ray cluster reckon, a piece of the list each."""

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
from features.feature_set import Column, FeatureSet, Scored, follows_list, in_order, journal_of
from features.groups import Group, groups
from features.progress import log
from features.request import FeatureRequest
from moses_io.files.errors import InputError, counted
from rerank.cluster.connection import DEATHS, Connection, Workplace, value_of

BEGIN = "begin"
"""Method of every actor, which comes first: it loads what the others need."""

AHEAD = 2
"""Pieces for each process that are on their way, at most, beside those of the batch that is waited for."""


@dataclass(eq=False)
class Call:
    """A method of an actor, with its arguments; what came of it once it is `done`."""

    method: str
    arguments: tuple[Any, ...] = ()
    deaths: int = 0
    done: bool = False
    value: Any = None


class Actors:
    """Up to `count` actors, started when there is something for them to do.

    A call whose actor dies is done by another, and a new one takes the place of that actor.
    """

    def __init__(self, cluster: Connection, make: Callable[[], Any], count: int) -> None:
        self._cluster, self._make, self.count = cluster, make, count
        self._waiting: deque[Call] = deque()
        self._idle: list[Any] = []
        self._working: dict[Any, tuple[Any, Call]] = {}
        self._stillborn = 0  # actors that died, one after the other, before they had begun

    @property
    def pending(self) -> int:
        """How many calls are not done yet."""
        return len(self._waiting) + sum(call.method != BEGIN for _, call in self._working.values())

    def submit(self, method: str, *arguments: Any) -> Call:
        """Have one of the actors do something, as soon as there is one."""
        call = Call(method, arguments)
        self._waiting.append(call)
        self._hand_out()
        return call

    def result(self, call: Call) -> Any:
        """Wait for what comes of a call.

        Raises:
            InputError: that of the call, or every actor that tried has died.
        """
        while not call.done:
            for result in self._cluster.wait(list(self._working)):
                self._take(result)
            self._hand_out()
        return call.value

    def _hand_out(self) -> None:
        """Give calls to idle actors, and start actors for others."""
        while self._waiting and self._idle:
            actor, call = self._idle.pop(), self._waiting.popleft()
            self._working[getattr(actor, call.method).remote(*call.arguments)] = (actor, call)
        starting = sum(call.method == BEGIN for _, call in self._working.values())
        while len(self._waiting) > starting and len(self._working) < self.count:
            actor = self._make()
            self._working[actor.begin.remote()] = (actor, Call(BEGIN))
            starting += 1

    def _take(self, result: Any) -> None:
        actor, call = self._working.pop(result)
        try:
            call.value = value_of(result)
        except RayActorError as error:
            self._put_back(call, error)
            return
        call.done, call.arguments = True, ()
        self._stillborn = 0
        self._idle.append(actor)

    def _put_back(self, call: Call, error: RayActorError) -> None:
        """Have a call done by another actor, unless too many have died of it."""
        if call.method == BEGIN:
            self._stillborn += 1
        else:
            call.deaths += 1
            self._waiting.appendleft(call)
        log.info("ray: a worker died; another does its work")
        if max(call.deaths, self._stillborn) > DEATHS:
            raise InputError(f"--ray: {DEATHS + 1} workers died one after the other ({type(error).__name__})")


_Read = list[tuple[Group, dict[str, Array] | Call]]
"""Groups of a batch with the values of models: those that were known, or the call that gives them."""


class RemoteFeatures(AbstractContextManager["RemoteFeatures"]):
    """A `Scorer` whose models are read by actors, each with all models, in the groups of one process.

    What follows the list is reckoned here. Journals are those of one process: either goes on with that of the other.

    Raises:
        InputError: no such cluster, or a feature that cannot be made of its argument.
    """

    def __init__(self, requests: Sequence[FeatureRequest], resources: Resources, journal: str, address: str) -> None:
        following = [request for request in requests if follows_list(request)]
        self._local = FeatureSet(following, resources)
        self._cluster = Connection(address)
        try:
            self._actors = self._make_actors([each for each in requests if each not in following], resources)
            remote, self.of_models, self._group = self._actors.result(self._actors.submit("describe"))
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
        """Yield each batch with what all features say of it, in order, while others are on their way."""
        ahead: deque[tuple[list[Sentence], _Read, Call]] = deque()
        for sentences in batches:
            ahead.append((sentences, *self._begin(sentences)))
            while self._actors.pending > AHEAD * self._actors.count:
                yield self._finish(*ahead.popleft())
        while ahead:
            yield self._finish(*ahead.popleft())

    def end(self) -> None:
        """Tell the features that follow the list that it ends here."""
        self._local.end()

    def alone(self, label: str, sentence: Sentence) -> Array:
        """(candidates, values) of a feature of models that read one candidate after the other."""
        values: Array = self._actors.result(self._actors.submit("ask", "alone", label, sentence))
        return values

    def _make_actors(self, requests: Sequence[FeatureRequest], resources: Resources) -> Actors:
        workplace, gpus = self._cluster.workplace, self._cluster.gpus if resources.device != "cpu" else 0
        kind = ray.remote(_Features).options(num_cpus=workplace.threads, num_gpus=1 if gpus else 0)
        count = min(gpus, self._cluster.workers) if gpus else self._cluster.workers
        log.info(f"ray: up to {counted(count, 'worker')} with {counted(workplace.threads, 'thread')} each")
        return Actors(self._cluster, lambda: kind.remote(workplace, requests, resources), count)

    def _begin(self, sentences: list[Sentence]) -> tuple[_Read, Call]:
        """Have a batch scored, but for what is known of it, by models and by the other features."""
        read: _Read = []
        for group in groups(sentences, self._group) if self.of_models else ():
            values = self._journal.values(group) if self._journal else None
            if values is None:
                read.append((group, self._actors.submit("ask", "values_of_models", group.sentences)))
            else:
                read.append((group, values))
        return read, self._actors.submit("ask", "values_without_models", sentences)

    def _finish(self, sentences: list[Sentence], read: _Read, looked: Call) -> tuple[list[Sentence], Scored]:
        """Wait for a batch, and put together what is said of it."""
        steps, parts = Steps(), []
        for group, part in read:
            if isinstance(part, Call):
                values, taken = self._actors.result(part)
                steps = steps.plus(taken)
                if self._journal:
                    self._journal.keep(group, values)
            else:
                values = part
            parts.append((group.places, values))
        by_label = in_order(parts) | self._actors.result(looked) | self._local.values_without_models(sentences)
        return sentences, Scored([Column(label, by_label[label]) for label in self.signatures], steps)


class _Features:
    """The features of some requests in a process of a cluster."""

    def __init__(self, workplace: Workplace, requests: Sequence[FeatureRequest], resources: Resources) -> None:
        self._workplace, self._requests, self._resources = workplace, requests, resources

    def begin(self) -> None:
        """Load models; what is at fault there is told as that of a call."""
        with self._workplace.entered():
            self._features = FeatureSet(self._requests, self._resources)

    def describe(self) -> tuple[dict[str, str], frozenset[str], int]:
        """Return their signatures by label, which of them are of models, and how many sentences are a group."""
        return self._features.signatures, self._features.of_models, self._features.group

    def ask(self, method: str, *arguments: Any) -> Any:
        """Return what a method of the `FeatureSet` gives."""
        with self._workplace.entered():
            return getattr(self._features, method)(*arguments)
