"""The crawling problem as a Gymnasium environment, one world or K of them."""

from __future__ import annotations

import ctypes
import functools
import json
import math
import operator
import os
import sys
import tomllib
import warnings
from collections import deque
from collections.abc import Sequence
from typing import Any, TypeAlias, Unpack

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from . import _library
from .batch import earned, steps_of
from .instance import InstanceLike
from .world import TEST_SEEDS, World, array, known, seed_of, spec, whole

Observation: TypeAlias = "NDArray[np.floating[Any]] | dict[str, NDArray[np.floating[Any]]]"

SCORES32, SCORES64, SET, ONE = range(4)  # forms of actions
_SHOWN = 120  # epochs that a picture shows
_BLOCK = 1 << 18  # bytes of rows that are laid out together
_BLOCKS = 4  # that are kept to be used again


class Form(World, total=False):
    """Keywords of an environment; :class:`CrawlEnv` explains them."""

    max_episode_steps: int | None
    action: str
    overspend: str
    observation: str
    scaled: bool
    items: bool
    render_mode: str | None


class _Block:
    """Rows that worlds write into, in one buffer."""

    def __init__(self, rows: int, worlds: int, about: dict[str, Any]) -> None:
        parts = about.get("parts", [])  # of a row, each of all worlds, as the library lays them out
        if lacks := type(self).__annotations__.keys() - {p["Name"] for p in parts}:
            raise RuntimeError(
                f"{_library.file()} is of another version than this package: "
                f"its worlds do not write {', '.join(sorted(lacks))}; build it anew"
            )
        ends = np.cumsum([np.dtype(p["Type"]).itemsize * worlds * max(1, p["Each"]) for p in parts])
        self.stride = -(-int(ends[-1]) // 8) * 8
        self.buffer = np.zeros(rows * self.stride, np.uint8)
        by_part = np.split(self.buffer.reshape(rows, self.stride), ends, axis=1)
        for p, of in zip(parts, by_part, strict=False):
            each = [p["Each"]] if p["Each"] else []
            setattr(self, p["Name"], of.view(p["Type"]).reshape(rows, worlds, *each))
        # Of these only what the last crawls left is cleared when the row is used again.
        self.interest.flags.writeable = self.crawled.flags.writeable = False
        self.place = self.buffer.ctypes.data
        del by_part, of
        self.alone = self.references()

    reward: NDArray[np.float64]
    unit: NDArray[np.float64]
    bound: NDArray[np.float64]
    seed: NDArray[np.int64]
    interest: NDArray[np.float64]
    observation: NDArray[Any]
    crawled: NDArray[np.bool_]
    over: NDArray[np.bool_]

    def references(self) -> int:
        """Return how often the buffer is referred to: by each array of it that somebody holds, too."""
        return sys.getrefcount(self.buffer)

    def unused(self) -> bool:
        """Whether nobody holds an array of it that was handed out."""
        return self.references() == self.alone


class _Worlds(_library.Handle):
    """K worlds behind a handle, and the rows that they write into.

    Each reset or step writes into a row of which nobody holds an array, so that arrays that
    were handed out stay as they are, and nothing is copied.
    """

    _kind = "environment"

    def __init__(
        self,
        worlds: int,
        instance: InstanceLike,
        autoreset: bool,
        threads: int = 1,
        run: tuple[int, int] | None = None,
        **keywords: Unpack[Form],
    ) -> None:
        """Set worlds up; with a run, its epochs and those of its evaluation, the one world keeps its account."""
        known(keywords, World, Form)
        form: dict[str, Any] = {
            "max_episode_steps": None, "action": "scores", "overspend": "truncate", "observation": "flat",
            "scaled": True, "items": False, "render_mode": None,
        }  # fmt: skip
        form |= {k: v for k, v in keywords.items() if k in form and v is not None}
        allowed = {
            "action": ("scores", "set", "one"), "overspend": ("refuse", "truncate"), "observation": ("flat", "dict"),
            "render_mode": (None, "rgb_array") if worlds == 1 and not autoreset else (None,),
        }  # fmt: skip
        for name, values in allowed.items():
            if form[name] not in values:
                raise ValueError(f"{name} is {form[name]!r}; allowed: {', '.join(map(repr, values))}")
        world: Any = {k: v for k, v in keywords.items() if k not in form}
        self.named, self.level = spec(instance, **world), world.get("knowledge") or "model"
        if form["items"] and self.level != "online":
            raise ValueError(f"items is True and knowledge {self.level!r}; items are seen with knowledge 'online'")
        steps = form["max_episode_steps"]
        if steps not in (None, -1) and not 1 <= whole(steps, "max_episode_steps") < 2**53:
            raise ValueError(f"max_episode_steps is {steps}; allowed is 1 or more, and -1 for no end")
        self.worlds = whole(worlds, "num_envs")
        if not 1 <= self.worlds <= 1 << 24:
            raise ValueError(f"num_envs is {worlds}; allowed are 1 to {1 << 24}")
        if whole(threads, "threads") < 1:
            raise ValueError(f"threads is {threads}; allowed is 1 or more")
        settings = {
            **self.named, "window": whole(world.get("window") or 0, "window"), "worlds": self.worlds,
            "limit": 0 if steps in (None, -1) else operator.index(steps), "scaled": bool(form["scaled"]),
            "truncate": form["overspend"] == "truncate", "autoreset": autoreset, "threads": whole(threads, "threads"),
        }  # fmt: skip
        self.tests = run is not None  # of a policy, by whom the seeds were chosen for it
        if run is not None:
            steps, evaluation = run
            settings |= {"account": True, "limit": steps, "evaluation": evaluation}
            settings["steps"] = steps_of(self.named, steps)
        self._handle = _library.ask(0, "worlds", settings)
        about = self.about = {k.lower(): v for k, v in _library.ask(self._handle, "describe").items()}
        self.step_function = _library.library().eph_step
        self.answer = ctypes.c_void_p()
        self.answer_at = ctypes.addressof(self.answer)
        self.sources = len(about["names"])
        self.width: int = about["width"]
        self.action: str = form["action"]
        if self.action == "one" and not (set(about["costs"]) == {1} and 1 <= about["budget"] < 2):
            raise ValueError(
                f"action 'one' is for crawls that cost 1 and a budget of 1; the costs are {min(about['costs'])} to "
                f"{max(about['costs'])} and the budget is {about['budget']}"
            )
        self.dtype: Any = np.float32 if form["scaled"] else np.float64
        self.dictionary = form["observation"] == "dict"
        self.with_items: bool = form["items"]
        self.render_mode: str | None = form["render_mode"]
        self.rows: int = max(1, min(256, _BLOCK // _Block(0, self.worlds, about).stride))
        self.blocks: list[_Block] = []  # the one in use is the last
        self.row: int = self.rows  # the next of it
        self.started = False
        self.room = np.empty(256)  # for the items of a step; it grows

    def references(self, row: int) -> dict[str, Any]:
        """Return seed, unit and bound of each world, NaN where none is known, and what exact Whittle earns."""
        bounded = self.about["bounded"]
        bound = self.bound[row].copy() if bounded else np.full(self.worlds, np.nan)
        whittle = np.full(self.worlds, exact(json.dumps(self.named), self.level, bounded, _written(self.named)))
        return {"seed": self.seed[row], "unit": self.unit[row].copy(), "bound": bound, "whittle": whittle}

    def refill(self) -> None:
        """Have the worlds write into a block of which nobody holds an array."""
        unused = next((b for b in self.blocks if b.unused()), None)
        if unused is not None:
            self.blocks.remove(unused)
        self.blocks = [*self.blocks[1 - _BLOCKS :], unused or _Block(self.rows, self.worlds, self.about)]
        self.row, b = 0, self.blocks[-1]
        self.place, self.stride = b.place, b.stride
        self.observation, self.reward, self.over = b.observation, b.reward, b.over
        self.interest, self.crawled, self.unit, self.bound, self.seed = b.interest, b.crawled, b.unit, b.bound, b.seed

    def reset(self, mask: NDArray[np.bool_] | None, seeds: list[int] | None) -> int:
        """Reset worlds; the row that holds what is seen then."""
        self._alive()
        if self.row == self.rows:
            self.refill()
        row, self.row = self.row, self.row + 1
        room = self.blocks[-1].buffer[row * self.stride :][: self.stride].view(np.float64)
        _library.ask(self._handle, "reset", None if mask is None else mask.tolist(), seeds, numbers=room)
        self.started = True
        return row

    def step(self, at: int, form: int) -> int:
        """Step all worlds with the actions at an address; the row that holds what it brought."""
        row = self.row
        if row == self.rows or self._handle == 0:
            self._alive()
            if not self.started:
                raise gym.error.ResetNeeded("step before the first reset")
            self.refill()
            row = 0
        self.row = row + 1
        if self.step_function(self._handle, self.place + row * self.stride, at, form, self.answer_at):
            raise _library.error(_library.take(self.answer))
        return row

    def items(self) -> list[list[tuple[int, float, tuple[NDArray[np.float64], NDArray[np.float64]]]]]:
        """Return of each world the crawls of the last step: source, interest, and the items' ages and interests."""
        while (count := _library.ask(self._alive(), "items", numbers=self.room)) > len(self.room):
            self.room = np.empty(2 * count)
        numbers, at, worlds = self.room, 0, []
        for _ in range(self.worlds):
            crawls, at = int(numbers[at]), at + 1
            found = []
            for _ in range(crawls):
                source, interest, n = numbers[at : at + 3].tolist()
                items = numbers[at + 3 : at + 3 + 2 * int(n)].reshape(-1, 2)
                found.append((int(source), interest, (items[:, 0].copy(), items[:, 1].copy())))
                at += 3 + items.size
            worlds.append(found)
        return worlds

    def split(self, flat: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Name the parts of a flat observation; they are views of it."""
        n = self.sources
        parts = {"age": flat[..., -2 * n : -n], "found": flat[..., -n:]}
        return {"state": flat[..., :n], **parts} if self.width == 3 * n else parts

    def observation_space(self) -> spaces.Box | spaces.Dict:
        """Return the space of one world's observation."""
        n, about = self.sources, self.about
        scaled = self.dtype == np.float32
        high = np.full(self.width, np.inf, self.dtype)
        low = np.zeros(self.width, self.dtype)
        if scaled:
            high[-2 * n : -n] = 1
        else:
            low[-2 * n : -n] = 1
            high[-2 * n : -n] = about["epochs"] + 1 if about["epochs"] else np.inf
        if about["ceiling"] is not None:
            # A state under the mean dynamics is at most u*; rounding may add an ulp or two.
            ceiling = np.ones(n) if scaled else np.array(about["ceiling"])
            ceiling = (ceiling * (1 + 1e-6)).astype(self.dtype)
            high[:n] = ceiling
            high[-n:] = ceiling
        if about["costly"]:  # what waits has cost that, and what is found
            low[: self.width - 2 * n] = low[-n:] = -np.inf
        if not self.dictionary:
            return spaces.Box(low, high, dtype=self.dtype)
        lows, highs = self.split(low), self.split(high)
        return spaces.Dict({k: spaces.Box(lows[k], highs[k], dtype=self.dtype) for k in lows})

    def action_space(self) -> spaces.Space[Any]:
        """Return the space of one world's action."""
        if self.action == "scores":
            return spaces.Box(-1, 1, (self.sources,), np.float32)
        if self.action == "set":
            return spaces.MultiBinary(self.sources)
        return spaces.Discrete(self.sources)


def _written(named: dict[str, Any]) -> tuple[int, ...]:
    """Return when the files were written that a world is read from."""
    files = [named["instance"]["name"], named["world"].get("trace", "")]
    return tuple(os.stat(f).st_mtime_ns for f in files if os.path.isfile(f))


@functools.lru_cache(maxsize=256)
def exact(named: str, level: str, bounded: bool, written: tuple[int, ...]) -> float:
    """Return what exact Whittle earns over 10 000 epochs or a whole recording; NaN where instances are drawn.

    It is kept until a file of the world is written anew. Where rewards have the means of the mean dynamics, without
    windows and crawls that fail, and no state is seen, it is run in these.
    """
    run = json.loads(named)
    if "*" in run["instance"]["name"]:
        return float("nan")
    if bounded and run["world"]["kind"] in ("mean", "poisson"):
        of = tomllib.loads(_library.ask(0, "instance", run))
        if "per_host" not in of and not any("fails" in s or s.get("window", math.inf) < math.inf for s in of["source"]):
            run["world"] = {"kind": "mean"}
    level = "model" if level == "online" else level
    return earned("whittle", run, level, 0 if "trace" in run["world"] else 10_000)


def _options(options: dict[str, Any] | None, *allowed: str) -> None:
    for name in options or {}:
        if name not in allowed:
            raise ValueError(
                f"option {name!r} is not taken; allowed: {', '.join(allowed) or 'none'}. Another instance is another "
                "environment, and 'lognormal:50:*' draws one at each reset"
            )


def _seeds(seeds: Sequence[int | None], w: _Worlds, rng: np.random.Generator) -> list[int]:
    """Return a seed for each world; those that are None are drawn."""
    worlds = w.worlds
    if len(seeds) != worlds:
        raise ValueError(f"there are {len(seeds)} seeds for {worlds} worlds")
    of = [int(rng.integers(0, 2**63)) if s is None else seed_of(s) for s in seeds]
    if not w.tests and (tested := [s for s in of if s in TEST_SEEDS]):
        warnings.warn(
            f"seed {tested[0]} is one of ephemera.TEST_SEEDS, under which policies are tested; train under others",
            stacklevel=3,
        )
    return of


def _binary(action: Any, shape: tuple[int, ...]) -> NDArray[np.int8]:
    a = array(action, "the action", f"shape {shape}")
    if a.shape != shape:
        raise ValueError(f"the action has shape {a.shape}; needed is {shape}")
    if a.dtype == np.int8:
        return a
    if a.dtype.kind not in "biuf":  # agents of Stable-Baselines3 return 0 and 1 as float32
        raise TypeError(f"the action has dtype {a.dtype}; needed are 0 and 1")
    if a.dtype != np.bool_ and not ((a == 0) | (a == 1)).all():
        raise ValueError("the action holds other numbers than 0 and 1")
    return a.astype(np.int8)


def _real(action: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    a = array(action, "the action", f"shape {shape}")
    if a.shape != shape:
        raise ValueError(f"the action has shape {a.shape}; needed is {shape}")
    if a.dtype.kind not in "biuf":
        raise TypeError(f"the action has dtype {a.dtype}; needed are real numbers")
    return a


class CrawlEnv(gym.Env[Any, Any]):
    """Which sources should a crawler visit now? One world.

    Observation, flat (n is the number of sources; a Dict has the parts by name):
        ``state`` (n, not with knowledge ``online``): interest that waits at each source, its
        mean with knowledge ``model``, the true one with ``observed``;
        ``age`` (n): epochs since each source's last crawl;
        ``found`` (n): interest that each source's last crawl brought, 0 before the first.

        ``scaled=False``: float64 in interest and epochs. ``scaled=True``: float32; states and
        harvests as shares of the source's ceiling u*, or of the unit where each reset draws an
        instance, with ``online`` harvests as log(1 + x); ages as 1 − exp(−age/round), where a
        round crawls each source once; rewards as shares of the unit, so that the best are near 1, and
        under ``delay``, where rewards are costs, near −1. Where sources have windows the best are above
        1 in world ``poisson``: soon after a crawl no item is old enough to be dropped.

    Action, by the keyword ``action``:
        ``scores``: a real number for each source; the best are crawled within the budget, equal
        ones by number. inf is crawled first, −inf never; NaN raises.
        ``set``: 0 or 1 for each source; a set that is dearer than the budget is cut to it, sources
        that have waited longest first, or, with ``overspend="refuse"``, refused.
        ``one``: the number of a source; for crawls that cost 1 and a budget of 1.

    Reward: interest of all that the crawls found.

    Info of a step: ``interest`` (n, float64), what each source's crawl brought, whose sum is the
    reward, unscaled, but for what is charged at the end under ``delay``; ``crawled`` (n, bool);
    with ``items=True`` ``items``, of each crawl the source, the interest and the items' ages and
    interests, as :meth:`ephemera.Learner.update` takes them.
    Info of a reset: ``seed`` of the world; ``unit``, the interest that a scaled reward of 1 stands
    for: the amount of the bound under the mean dynamics, under ``delay`` of the sources that the
    budget can reach; ``bound``, what no policy that keeps the budget exceeds in the mean in this
    world, NaN where that is not known;
    ``whittle``, what the exact Whittle index policy earns per epoch over 10 000 epochs: of the mean
    dynamics, but with knowledge ``observed``, windows or crawls that fail, in replays and in registered
    worlds of the same world; NaN where each reset draws an instance.

    An episode is truncated after ``max_episode_steps`` epochs, and at the end of a recording; no
    state is terminal.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 (as Gymnasium declares it)

    def __init__(self, instance: InstanceLike = "paper", **keywords: Unpack[Form]) -> None:
        """Set the world up.

        Args:
            instance: an :class:`Instance`, ``paper``, ``lognormal:N[:SEED]``, ``wide:N[:SEED]``,
                ``mixed:N[:SEED]``, or the path of a .toml file. With ``*`` in place of the seed it is
                that of the world: each reset draws another instance.
            keywords: None, or to leave one out, is the default.

        Keywords that name the world:
            ``budget``: budget units that the crawls of one epoch may cost; default the instance's own.
            ``objective``: what crawls are to bring about, in place of the sources' own laws of interest:
            ``interest:4h`` (or another half-life), ``delay``, ``delay:2`` (or another power of the delay),
            ``deadline:24h`` (or another deadline) or ``freshness``; an epoch counts as an hour. Under
            ``delay`` rewards are costs, below 0, and what waits at the end of an episode is charged then. The
            environment has to know that end: give it ``max_episode_steps``, which ``gymnasium.make`` keeps to itself.
            ``world``: ``poisson`` (single items; default), ``mean`` (the papers' mean dynamics, in which
            nothing is drawn), ``replay``, or one that is registered in Go.
            ``knowledge``: ``model`` (default), ``observed`` or ``online``.
            ``marks``: law of the items' initial interest in ``poisson``: ``constant`` (default),
            ``per-item`` or ``per-epoch``.
            ``trace``: path of the recording that ``replay`` plays.
            ``epoch``: length of an epoch of a recording, seconds; default an hour.
            ``decay``: decay rate of interest in a recording, 1/hour; default 0.175.
            ``split``: share of the recording on which its model is fitted; the rest is played; default 0.5.
            ``window``: epochs of a window of the fitted part, which each reset draws to play it, in place
            of the rest; all sources were crawled just before it.

        Keywords of the environment:
            ``max_episode_steps``: epochs of an episode; ``gymnasium.make`` has it 1000.
            ``action``: ``scores`` (default), ``set`` or ``one``.
            ``overspend``: ``truncate`` (default) or ``refuse``.
            ``observation``: ``flat`` (default) or ``dict``.
            ``scaled``: whether observations and rewards are without units, float32; default True.
            ``items``: whether info has the items that crawls brought, with knowledge ``online``.
            ``render_mode``: ``rgb_array``: time to the right, a row for each source, darker with its
            age, crawls orange.
        """
        self._build(_Worlds(1, instance, False, **keywords))
        if self._w.about["costly"] and keywords.get("max_episode_steps") is None:
            warnings.warn(
                "max_episode_steps is None: under delay what waits at the end of an episode is never charged, also "
                "where gymnasium.make ends it; make it as ephemera.CrawlEnv(objective='delay', max_episode_steps=1000)",
                stacklevel=2,
            )

    def _build(self, w: _Worlds) -> None:
        self._w = w
        self.observation_space = w.observation_space()
        self.action_space = w.action_space()
        self.render_mode = w.render_mode
        self._past: deque[Any] = deque(maxlen=_SHOWN)
        self._shape = (w.sources,)
        self._form = {"scores": SCORES64, "set": SET, "one": ONE}[w.action]
        # Where the action of a step is put, one for each form.
        self._scores: NDArray[np.float64] = np.zeros(w.sources)
        self._set: NDArray[np.int8] = np.zeros(w.sources, np.int8)
        self._one = np.zeros(1, np.int64)
        self._at = [a.ctypes.data for a in (self._scores, self._scores, self._set, self._one)]

    @property
    def names(self) -> list[str]:
        """Names of the sources."""
        return list(self._w.about["names"])

    @property
    def costs(self) -> NDArray[np.float64]:
        """C, budget units per crawl of each source."""
        return np.array(self._w.about["costs"])

    @property
    def budget(self) -> float:
        """Budget units that the crawls of one epoch may cost."""
        return float(self._w.about["budget"])

    def _seen(self, row: int) -> Observation:
        flat = self._w.observation[row, 0]
        return self._w.split(flat) if self._w.dictionary else flat

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode. The world of a seed is the one that the Go commands run under it."""
        super().reset(seed=seed)
        _options(options)
        w = self._w
        with w._turn():
            again = seed is None and w.started
            row = w.reset(None, None if again else _seeds([seed], w, self.np_random))
            self._past.clear()
            return self._seen(row), {**self._info(row), **{k: v.item() for k, v in w.references(row).items()}}

    def _info(self, row: int) -> dict[str, Any]:
        w = self._w
        info: dict[str, Any] = {"interest": w.interest[row, 0], "crawled": w.crawled[row, 0]}
        if w.with_items:
            info["items"] = w.items()[0]
        if w.render_mode:
            n = w.sources
            self._past.append((w.observation[row, 0, -2 * n : -n], info["crawled"]))
        return info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Crawl, and go on to the next epoch."""
        return self._go(action, self._form)

    def _go(self, action: Any, form: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        w = self._w
        if w._process is not _library.process:
            w._turn()
        with w._lock:
            if form == SCORES64:
                if type(action) is not np.ndarray or action.shape != self._shape or action.dtype.kind != "f":
                    action = _real(action, self._shape)
                self._scores[:] = action
            elif form == ONE:
                self._one[0] = operator.index(action)
            else:
                self._set[:] = _binary(action, self._shape)
            row = w.step(self._at[form], form)
            return (
                self._seen(row) if w.dictionary else w.observation[row, 0],
                w.reward.item(row),
                False,
                w.over.item(row),
                self._info(row),
            )

    def render(self) -> Any:  # Gymnasium 1.0 allows no other type than this
        """Return the last epochs as a picture, an array of uint8, or None without a ``render_mode``."""
        if self.render_mode is None:
            return None
        w = self._w
        if not self._past:
            raise gym.error.ResetNeeded("render before the first reset")
        age, crawled = (np.array(a) for a in zip(*self._past, strict=True))
        if w.dtype == np.float64:
            age = 1 - np.exp(-age * w.about["budget"] / sum(w.about["costs"]))
        picture = np.full((_SHOWN, w.sources, 3), 255, np.uint8)
        picture[: len(age)] -= (age[..., None] * (220, 190, 120)).astype(np.uint8)
        picture[: len(age)][crawled] = (230, 120, 20)
        return picture.transpose(1, 0, 2).repeat(max(1, 240 // w.sources), 0).repeat(4, 1)

    def close(self) -> None:
        """Free the world. It may be called again."""
        self._w.close()


class CrawlVectorEnv(gym.vector.VectorEnv[Any, Any, Any]):
    """K worlds of :class:`CrawlEnv` that are stepped by one call.

    Shapes are those of one world with K in front. World k of a reset under a seed s has the seed
    s + k, so trainings that are to share no world need seeds that are K apart. A world whose episode
    has ended is reset by its next step, whose action is not used and whose reward is 0
    (``autoreset_mode`` NEXT_STEP), by the same step (SAME_STEP; what it saw last is in
    ``info["final_obs"]``), or by ``reset(options={"reset_mask": …})`` (DISABLED).
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (as Gymnasium declares it)

    def __init__(
        self,
        num_envs: int = 1,
        instance: InstanceLike = "paper",
        autoreset_mode: Any = "NextStep",
        threads: int = 1,
        **keywords: Unpack[Form],
    ) -> None:
        """Set K worlds up, which that many threads step; the other arguments are those of :class:`CrawlEnv`."""
        mode = str(getattr(autoreset_mode, "value", autoreset_mode))
        if mode not in ("NextStep", "SameStep", "Disabled"):
            raise ValueError(f"autoreset_mode is {autoreset_mode!r}; allowed are NextStep, SameStep and Disabled")
        self._w = w = _Worlds(num_envs, instance, mode == "NextStep", threads, **keywords)
        self._mode = mode
        self.metadata = {**self.metadata}
        modes = getattr(gym.vector, "AutoresetMode", None)
        if modes is not None:
            self.metadata["autoreset_mode"] = modes(mode)
        self.num_envs = w.worlds
        self.render_mode = None
        self.single_observation_space = w.observation_space()
        self.single_action_space = w.action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._shape = (num_envs, w.sources)
        self._all, self._none = np.ones(num_envs, np.bool_), np.zeros(num_envs, np.bool_)
        self._all.flags.writeable = self._none.flags.writeable = False

    def _seen(self, row: int) -> Any:
        flat = self._w.observation[row]
        return self._w.split(flat) if self._w.dictionary else flat

    def _info(self, row: int) -> dict[str, Any]:
        w = self._w
        info = {
            "interest": w.interest[row], "_interest": self._all, "crawled": w.crawled[row], "_crawled": self._all,
        }  # fmt: skip
        if w.with_items:
            items = np.empty(self.num_envs, object)
            items[:] = w.items()
            info |= {"items": items, "_items": self._all}
        return info

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes; ``options={"reset_mask": mask}`` (K, bool) leaves the other worlds alone."""
        super().reset(seed=seed if isinstance(seed, int) else None)
        _options(options, "reset_mask")
        w, k = self._w, self.num_envs
        mask = None
        if options is not None and "reset_mask" in options:
            mask = np.ascontiguousarray(options["reset_mask"])
            if not w.started:
                raise gym.error.ResetNeeded("the first reset is of all worlds")
            if mask.shape != (k,) or mask.dtype != np.bool_:
                raise ValueError(f"reset_mask has shape {mask.shape} and dtype {mask.dtype}; needed is ({k},), bool")
        if seed is None:
            seed = [None] * k
        elif isinstance(seed, (int, np.integer)):
            seed = range(int(seed), int(seed) + k)
        with w._turn():
            again = w.started and all(s is None for s in seed)
            row = w.reset(mask, None if again else _seeds(seed, w, self.np_random))
            info = w.references(row)
            return self._seen(row), {**self._info(row), **info, **{f"_{name}": self._all for name in info}}

    def step(
        self, actions: Any
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Crawl in every world, and go on to the next epoch."""
        w = self._w
        if w.action == "scores":
            a = _real(actions, self._shape)
            if a.dtype != np.float32:
                a = a.astype(np.float64, copy=False)
            form = SCORES32 if a.dtype == np.float32 else SCORES64
        elif w.action == "one":
            a = array(actions, "the actions", f"shape ({self.num_envs},)")
            if a.shape != (self.num_envs,) or a.dtype.kind not in "iu":
                raise ValueError(
                    f"the actions have shape {a.shape} and dtype {a.dtype}; needed is ({self.num_envs},), int64"
                )
            a, form = a.astype(np.int64, copy=False), ONE
        else:
            a, form = _binary(actions, self._shape), SET
        a = np.ascontiguousarray(a)
        with w._turn():
            row = w.step(a.ctypes.data, form)
            seen, reward, over, info = self._seen(row), w.reward[row], w.over[row], self._info(row)
            if self._mode == "SameStep" and over.any():
                info["final_obs"], info["_final_obs"] = seen, over
                info["final_info"], info["_final_info"] = self._info(row), over
                seen = self._seen(w.reset(over, None))
        return seen, reward, self._none, over, info

    def close_extras(self, **kwargs: Any) -> None:
        """Free the worlds."""
        self._w.close()

    def __del__(self) -> None:
        """Do nothing: the worlds free themselves. Gymnasium's closes what may be gone, or never was."""
