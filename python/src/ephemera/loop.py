"""The loop of a policy of Python. It only plays: the Go code keeps the account of its world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from . import _library
from .batch import patiently
from .envs import SCORES64, SET, CrawlEnv, Form, _Worlds
from .instance import InstanceLike
from .policies import Crawls, View
from .references import load_instance
from .world import array

RAW = {"scaled": False, "observation": "dict", "overspend": "refuse"}


@dataclass(frozen=True)
class Gym:
    """A policy of what an environment of that form shows."""

    act: Callable[[Any], Any]
    form: dict[str, Any]


def choose(env: CrawlEnv, chosen: ArrayLike) -> tuple[Any, ...]:
    """Step the environment by what a policy chose: source numbers, scores or marks."""
    n = len(env.names)
    allowed = f"source numbers (integers), scores (float, shape ({n},)) and marks (bool, shape ({n},))"
    a = array(chosen, "what the policy returned", allowed)
    if a.dtype.kind == "f" and a.shape == (n,):
        return env._go(a, SCORES64)
    if a.dtype != np.bool_ or a.shape != (n,):
        numbers = np.atleast_1d(a)
        if numbers.size and (numbers.ndim != 1 or numbers.dtype.kind not in "iu"):
            what = f"shape {a.shape} and dtype {a.dtype}"
            if a.shape == ():  # such as a dict
                what = "None" if chosen is None else f"a {type(chosen).__name__}"
            raise ValueError(f"the policy returned {what}; allowed are {allowed}")
        a = np.zeros(n, np.int8)
        for i in numbers.tolist():
            if not 0 <= i < n or a[i]:
                again = " twice" if 0 <= i < n else ""
                scores = f". {n} integers are taken for source numbers; scores are floats, such as view.age * 1.0"
                raise ValueError(
                    f"the policy chose source {i}{again}; allowed are 0 to {n - 1}, each once"
                    f"{scores if len(numbers) == n else ''}"
                )
            a[i] = 1
    return env._go(a, SET)


class Stage(CrawlEnv):
    """The world of a run, of which the Go code keeps the account."""

    def __init__(
        self, instance: InstanceLike, steps: int, evaluation: int, track: str | None = None, **keywords: Unpack[Form]
    ) -> None:
        """Set the world up; on a track a policy sees no more than that, and of pages whether they have changed."""
        self._track, self._pages = track, keywords.get("world") == "pages"
        self._build(_Worlds(1, instance, False, run=(steps, evaluation), **keywords))
        self._shown = self._w.with_items

    def ask(self, what: str, *arguments: Any) -> Any:
        """Call a function of the world."""
        with self._w._turn():
            return _library.ask(self._w._alive(), what, *arguments)

    def play(self, policy: Any, seed: int, level: str) -> None:
        """Have a policy crawl to the end of an episode."""
        seen, _ = self.reset(seed=seed)
        self._epoch = 0
        if begin := getattr(policy, "begin", None):
            terms = {k.lower(): v for k, v in self.ask("terms").items()}
            own = seed if self._track is None else seed % 1_000_003  # not that of the world
            begin(
                {**terms, **self._parameters(seed, level), "epochs": self.ask("limit"), "seed": own, "knowledge": level}
            )
        over = False
        if isinstance(policy, Gym):
            if self._pages:
                raise ValueError("environments show how long a copy was fresh, which nobody sees who crawls pages")
            while not over:
                seen, _, _, over, _ = self.step(policy.act(seen))
                self._epoch += 1
            return
        select, update = getattr(policy, "select", policy), getattr(policy, "update", None)
        if not callable(select):
            raise TypeError(f"{type(policy).__name__} has no method select; needed is one, or a function of a view")
        self._w.with_items = self._shown and update is not None  # what crawls bring is for update alone

        def view(epoch: int) -> View:
            state = {"model": "mean", "observed": "state"}.get(level)
            shown = {} if state is None else {state: seen["state"].copy()}
            if self._pages:
                pings = np.array(self.ask("pages")["pings"] or [], np.int64)
                shown["pings"] = np.bincount(pings, minlength=len(seen["age"]))
            return View(epoch, seen["age"].astype(np.int64), **shown)

        now = view(0)
        while not over:
            seen, _, _, over, info = choose(self, select(now))
            before, now = now, view(self._epoch + 1)
            if update is not None and self._track != "age":
                items = None if self._pages else info.get("items")
                source = np.flatnonzero(info["crawled"]) if items is None else np.array([c[0] for c in items], np.int64)
                found = None if items is None else [c[2] for c in items]
                interest = info["interest"][source]
                if self._pages:
                    interest = np.isin(source, self.ask("pages")["changed"] or []).astype(np.float64)
                elif self._track == "bit":
                    interest = (interest > 0).astype(np.float64)
                update(Crawls(source, interest, before.age[source], found), now)
            self._epoch += 1

    def _parameters(self, seed: int, level: str) -> dict[str, Any]:
        """Return the parameters of the sources where a policy is given them; a recording has none."""
        of = self._w.named["instance"]
        if level == "online" or not of["name"]:
            return {}
        name, budget = of["name"].replace("*", str(seed)), of["budget"] or None
        now = load_instance(name, budget, objective=of["objective"])
        if self._second:
            now = now.after(self._w.about["epochs"])
        return {"instance": replace(now, id="given") if self._track else now}  # it would name the seed

    def record(self, make: Callable[[], Any], name: str, seed: int, level: str) -> tuple[dict[str, Any], bool]:
        """Return the record of a policy under a seed, as the loop of Go makes them, and whether it learned.

        An error of the policy has a note that says in which epoch it was raised.
        What was learned is measured in a second part, in the world that this one becomes; so is a policy
        that does not learn, made anew, where that part is of other epochs.
        """
        self._epoch, self._second = 0, False
        try:
            policy = make()
            self.ask("measure", False)
            self.play(policy, seed, level)
            frozen = getattr(policy, "frozen", None)
            if frozen is not None or self.ask("again"):
                after = make() if frozen is None else frozen()
                self.ask("measure", True)
                self._second = True  # the world that this one has become
                self.play(after, seed, level)
        except Exception as e:
            e.add_note(f"policy {name}, seed {seed}, epoch {self._epoch}")
            raise
        with self._w._turn():
            return patiently(self._w.close, self._w._alive(), "record", f"python:{name}"), frozen is not None
