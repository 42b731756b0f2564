"""Processes of a Ray cluster that keep what they have loaded, and do what is asked of any of them."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ray.exceptions import RayActorError

from features.progress import note
from moses_io.errors import InputError
from rerank.cluster.connection import DEATHS, Connection, value_of

BEGIN = "begin"
"""Method of every actor, which comes first: it loads what the others need."""


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
        note("ray: a worker died; another does its work")
        if max(call.deaths, self._stillborn) > DEATHS:
            raise InputError(f"--ray: {DEATHS + 1} workers died one after the other ({type(error).__name__})")
