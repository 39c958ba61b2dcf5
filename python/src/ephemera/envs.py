"""The crawling problem as a Gymnasium environment, one world or K of them."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Sequence
from typing import Any, TypeAlias, Unpack

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from . import _library
from .instance import InstanceLike
from .runs import earned
from .world import World, spec

Observation: TypeAlias = "NDArray[np.floating[Any]] | dict[str, NDArray[np.floating[Any]]]"

_SCORES32, _SCORES64, _SET, _ONE = range(4)
_BLOCK = 1 << 18  # bytes of rows that are handed out before new ones are allocated


class Form(World, total=False):
    """Keywords of an environment; :class:`CrawlEnv` explains them."""

    steps: int | None
    action: str
    overspend: str
    observation: str
    scaled: bool
    render_mode: None


class _Worlds(_library.Handle):
    """K worlds behind a handle, and the rows that they write into.

    Each reset or step writes into a row that nobody has seen, so that arrays that were
    handed out stay as they are, and nothing is copied.
    """

    _kind = "environment"

    def __init__(
        self,
        worlds: int,
        instance: InstanceLike,
        autoreset: bool,
        *,
        steps: int | None = 1000,
        action: str = "scores",
        overspend: str = "refuse",
        observation: str = "flat",
        scaled: bool = True,
        render_mode: None = None,
        **world: Unpack[World],
    ) -> None:
        if render_mode is not None:
            raise ValueError(f"render_mode is {render_mode!r}; nothing is rendered")
        if overspend not in ("refuse", "truncate"):
            raise ValueError(f"overspend is {overspend!r}; allowed are 'refuse' and 'truncate'")
        if observation not in ("flat", "dict"):
            raise ValueError(f"observation is {observation!r}; allowed are 'flat' and 'dict'")
        named = spec(instance, **world)
        self.worlds = operator.index(worlds)
        self._handle, about = _library.build(
            "worlds",
            {
                **named, "worlds": self.worlds, "steps": operator.index(steps or 0), "scaled": bool(scaled),
                "action": action, "truncate": overspend == "truncate", "autoreset": autoreset,
            },
        )  # fmt: skip
        self.about: dict[str, Any] = about
        self.step_function = _library.library().eph_step
        self.answer = ctypes.c_void_p()
        self.answer_at = ctypes.addressof(self.answer)
        self.sources = len(about["names"])
        self.width: int = about["width"]
        self.action = action
        self.dtype: Any = np.float32 if scaled else np.float64
        self.dictionary = observation == "dict"
        bytes_of_row = self.worlds * (self.width * np.dtype(self.dtype).itemsize + 9 * self.sources + 9)
        self.rows: int = max(1, min(256, _BLOCK // bytes_of_row))
        self.row: int = self.rows  # the next that nobody has seen
        self.started = False
        self.whittle, self.bound = self.references(named)

    def references(self, world: dict[str, Any]) -> tuple[float, float]:
        """Return what exact Whittle earns, and the bound.

        Where rewards have the means of the mean dynamics and no state is seen, Whittle is run in
        these; otherwise in the worlds' own way.
        """
        bound = float("nan")
        if world.get("knowledge") == "online":
            world = {**world, "knowledge": "model"}
        if self.about["bounded"]:
            world = {k: v for k, v in world.items() if k in ("instance", "toml", "budget")}
            bound = _library.ask("relax", world)["Bound"]
        epochs = self.about["steps"] or 10_000
        return earned("whittle", {**world, "steps": epochs, "seed": 1}), bound

    def refill(self) -> None:
        """Have the worlds write into rows that are new."""
        r, k, n = self.rows, self.worlds, self.sources
        self.observation = np.empty((r, k, self.width), self.dtype)
        self.reward = np.empty((r, k))
        self.interest = np.empty((r, k, n))
        self.crawled = np.empty((r, k, n), np.bool_)
        self.over = np.empty((r, k), np.bool_)
        arrays = (self.observation, self.reward, self.interest, self.crawled, self.over)
        _library.call("eph_bind", self._handle, r, *(a.ctypes.data for a in arrays))
        self.row = 0

    def reset(self, mask: NDArray[np.bool_] | None, seeds: NDArray[np.uint64] | None) -> int:
        """Reset worlds; the row that tells what is seen then."""
        self._alive()
        if self.row == self.rows:
            self.refill()
        marks, numbers = (None if a is None else a.ctypes.data for a in (mask, seeds))
        _library.call("eph_reset", self._handle, self.row, marks, numbers)
        self.started = True
        self.row += 1
        return self.row - 1

    def step(self, at: int, form: int) -> int:
        """Step all worlds with the actions at an address; the row that tells what it brought."""
        row = self.row
        if row == self.rows or self._handle == 0:
            self._alive()
            if not self.started:
                raise RuntimeError("step before the first reset")
            self.refill()
            row = 0
        self.row = row + 1
        if self.step_function(self._handle, row, at, form, self.answer_at):
            raise _library.Error(_library.take(self.answer))
        return row

    def split(self, flat: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Name the parts of a flat observation; they are views of it."""
        n = self.sources
        parts = {"age": flat[..., -2 * n : -n], "found": flat[..., -n:]}
        return {"state": flat[..., :n], **parts} if self.width == 3 * n else parts

    def observation_space(self) -> spaces.Box | spaces.Dict:
        """Return the space of one world's observation."""
        n, about = self.sources, self.about
        scaled = self.dtype == np.float32
        greatest = np.finfo(self.dtype).max
        steps = about["steps"]
        high = np.full(self.width, greatest, self.dtype)
        low = np.zeros(self.width, self.dtype)
        if scaled:
            high[-2 * n : -n] = 1
        else:
            low[-2 * n : -n] = 1
            high[-2 * n : -n] = steps + 1 if steps else 2**53
        if about["limited"] and about["ceiling"] is not None:
            # A state under the mean dynamics is at most u*; rounding may add an ulp or two.
            ceiling = np.ones(n) if scaled else np.array(about["ceiling"])
            ceiling = (ceiling * (1 + 1e-6)).astype(self.dtype)
            high[:n] = ceiling
            high[-n:] = ceiling
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


def _seeds(seeds: Sequence[int | None], worlds: int, rng: np.random.Generator) -> NDArray[np.uint64]:
    """Return a seed for each world; those that are None are drawn."""
    if len(seeds) != worlds:
        raise ValueError(f"there are {len(seeds)} seeds for {worlds} worlds")
    numbers = [int(rng.integers(0, 2**63)) if s is None else operator.index(s) for s in seeds]
    for s in numbers:
        if not 0 <= s < 2**64:
            raise ValueError(f"seed is {s}; allowed are 0 to {2**64 - 1}")
    return np.array(numbers, np.uint64)


def _binary(action: Any, shape: tuple[int, ...]) -> NDArray[np.int8]:
    a = np.asarray(action)
    if a.shape != shape:
        raise ValueError(f"the action has shape {a.shape}; needed is {shape}")
    if a.dtype == np.int8:
        return a
    if a.dtype.kind not in "biu":
        raise TypeError(f"the action has dtype {a.dtype}; needed are 0 and 1, as int8 or bool")
    if a.dtype != np.bool_ and not ((a == 0) | (a == 1)).all():
        raise ValueError("the action holds other numbers than 0 and 1")
    return a.astype(np.int8)


def _real(action: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    a = np.asarray(action)
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
        harvests as shares of the source's ceiling u*, with ``online`` harvests as log(1 + x);
        ages as 1 − exp(−age/round), where a round crawls each source once.

    Action, by the keyword ``action``:
        ``scores``: a real number for each source; the best are crawled within the budget, equal
        ones by number. −inf is never crawled.
        ``set``: 0 or 1 for each source; a set that is dearer than the budget is refused, or, with
        ``overspend="truncate"``, cut to it, sources that have waited longest first.
        ``one``: the number of a source; for crawls that cost 1 and a budget of 1.

    Reward: interest of all that the crawls found.

    Info of a step: ``interest`` (n, float64), what each source's crawl brought, whose sum is the
    reward; ``crawled`` (n, bool). Info of a reset: ``whittle``, what the exact Whittle index policy
    earns per epoch, and ``bound``, what no policy exceeds (NaN where none is known). Whittle's
    figure is that of the mean dynamics; with knowledge ``observed`` and in replays that of the same
    world.

    An episode is truncated after ``steps`` epochs (``None``: never, or at the end of a recording);
    no state is terminal.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (as Gymnasium declares it)

    def __init__(self, instance: InstanceLike = "paper", **keywords: Unpack[Form]) -> None:
        """Set the world up.

        Args:
            instance: an :class:`Instance`, ``paper``, ``lognormal:N[:SEED]``, ``wide:N[:SEED]``,
                ``mixed:N[:SEED]``, or the path of a .toml file.
            keywords: None, or to leave one out, is the default.

        Keywords that name the world:
            ``budget``: budget units that the crawls of one epoch may cost; default the instance's own.
            ``world``: ``mean`` (the papers' mean dynamics; default), ``poisson`` (single items), ``replay``.
            ``knowledge``: ``model`` (default), ``observed`` or ``online``.
            ``marks``: law of the items' initial interest in ``poisson``: ``constant`` (default),
            ``per-item``, ``per-epoch`` or ``lognormal``.
            ``sigma``: σ of lognormal marks; default 1.
            ``unobserved``: names of sources of ``poisson`` whose state is not seen with knowledge ``observed``.
            ``trace``: path of the recording that ``replay`` plays.
            ``epoch``: length of an epoch of a recording, seconds; default an hour.
            ``decay``: decay rate of interest in a recording, 1/hour; default 0.175.
            ``split``: share of the recording on which its model is fitted; the rest is played; default 0.5.

        Keywords of the environment:
            ``steps``: epochs of an episode; default 1000, None for no end.
            ``action``: ``scores`` (default), ``set`` or ``one``.
            ``overspend``: ``refuse`` (default) or ``truncate``.
            ``observation``: ``flat`` (default) or ``dict``.
            ``scaled``: whether observations are float32 without units; default True.
        """
        self._w = w = _Worlds(1, instance, False, **keywords)
        self.observation_space = w.observation_space()
        self.action_space = w.action_space()
        self.render_mode = None
        self._shape = (w.sources,)
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
        w = self._w
        with w._turn():
            again = seed is None and w.started
            row = w.reset(None, None if again else _seeds([seed], 1, self.np_random))
            told = {"interest": w.interest[row, 0], "crawled": w.crawled[row, 0]}
            return self._seen(row), {**told, "whittle": w.whittle, "bound": w.bound}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Crawl, and go on to the next epoch."""
        w = self._w
        if _library._forked:
            _library.library()
        with w._lock:
            if w.action == "scores":
                if type(action) is not np.ndarray or action.shape != self._shape or action.dtype.kind != "f":
                    action = _real(action, self._shape)
                self._scores[:] = action
                form = _SCORES64
            elif w.action == "one":
                self._one[0] = operator.index(action)
                form = _ONE
            else:
                self._set[:] = _binary(action, self._shape)
                form = _SET
            row = w.step(self._at[form], form)
            return (
                self._seen(row) if w.dictionary else w.observation[row, 0],
                w.reward.item(row),
                False,
                w.over.item(row),
                {"interest": w.interest[row, 0], "crawled": w.crawled[row, 0]},
            )

    def close(self) -> None:
        """Free the world. It may be called again."""
        self._w.close()


class CrawlVectorEnv(gym.vector.VectorEnv[Any, Any, Any]):
    """K worlds of :class:`CrawlEnv` that are stepped by one call.

    Shapes are those of one world with K in front. World k of a reset under a seed s has the seed
    s + k. A world whose episode has ended is reset by its next step, whose action is not used and
    whose reward is 0 (``autoreset_mode`` NEXT_STEP), by the same step (SAME_STEP; what it saw last
    is in ``info["final_obs"]``), or by ``reset(options={"reset_mask": …})`` (DISABLED).
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (as Gymnasium declares it)

    def __init__(
        self,
        num_envs: int = 1,
        instance: InstanceLike = "paper",
        autoreset_mode: Any = "NextStep",
        **keywords: Unpack[Form],
    ) -> None:
        """Set K worlds up; the other arguments are those of :class:`CrawlEnv`."""
        mode = str(getattr(autoreset_mode, "value", autoreset_mode))
        if mode not in ("NextStep", "SameStep", "Disabled"):
            raise ValueError(f"autoreset_mode is {autoreset_mode!r}; allowed are NextStep, SameStep and Disabled")
        self._w = w = _Worlds(num_envs, instance, mode == "NextStep", **keywords)
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

    def _seen(self, row: int) -> Any:
        flat = self._w.observation[row]
        return self._w.split(flat) if self._w.dictionary else flat

    def _told(self, row: int) -> dict[str, Any]:
        w = self._w
        return {
            "interest": w.interest[row],
            "_interest": np.ones(self.num_envs, np.bool_),
            "crawled": w.crawled[row],
            "_crawled": np.ones(self.num_envs, np.bool_),
        }

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes; ``options={"reset_mask": mask}`` (K, bool) leaves the other worlds alone."""
        super().reset(seed=seed if isinstance(seed, int) else None)
        w, k = self._w, self.num_envs
        mask = None
        if options is not None and "reset_mask" in options:
            mask = np.ascontiguousarray(options["reset_mask"])
            if mask.shape != (k,) or mask.dtype != np.bool_:
                raise ValueError(f"reset_mask has shape {mask.shape} and dtype {mask.dtype}; needed is ({k},), bool")
        if seed is None:
            seed = [None] * k
        elif isinstance(seed, (int, np.integer)):
            seed = range(int(seed), int(seed) + k)
        with w._turn():
            again = w.started and all(s is None for s in seed)
            row = w.reset(mask, None if again else _seeds(seed, k, self.np_random))
            return self._seen(row), {
                **self._told(row),
                "whittle": np.full(k, w.whittle),
                "_whittle": np.ones(k, np.bool_),
                "bound": np.full(k, w.bound),
                "_bound": np.ones(k, np.bool_),
            }

    def step(
        self, actions: Any
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Crawl in every world, and go on to the next epoch."""
        w = self._w
        if w.action == "scores":
            a = _real(actions, self._shape)
            if a.dtype != np.float32:
                a = a.astype(np.float64, copy=False)
            form = _SCORES32 if a.dtype == np.float32 else _SCORES64
        elif w.action == "one":
            a = np.asarray(actions)
            if a.shape != (self.num_envs,) or a.dtype.kind not in "iu":
                raise ValueError(
                    f"the actions have shape {a.shape} and dtype {a.dtype}; needed is ({self.num_envs},), int64"
                )
            a, form = a.astype(np.int64, copy=False), _ONE
        else:
            a, form = _binary(actions, self._shape), _SET
        a = np.ascontiguousarray(a)
        with w._turn():
            row = w.step(a.ctypes.data, form)
            seen, reward, over, info = self._seen(row), w.reward[row], w.over[row], self._told(row)
            if self._mode == "SameStep" and over.any():
                info["final_obs"], info["_final_obs"] = seen, over
                info["final_info"], info["_final_info"] = self._told(row), over
                seen = self._seen(w.reset(over, None))
        return seen, reward, np.zeros(self.num_envs, np.bool_), over, info

    def close_extras(self, **kwargs: Any) -> None:
        """Free the worlds."""
        self._w.close()
