"""The crawling problem as a Gymnasium environment, one world or K of them."""

from __future__ import annotations

import contextlib
import ctypes
import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from . import _library
from .instance import InstanceLike
from .runs import earned
from .world import spec

Observation: TypeAlias = "NDArray[np.floating[Any]] | dict[str, NDArray[np.floating[Any]]]"

_SCORES32, _SCORES64, _SET, _ONE = range(4)
_OF_WORLDS = ("worlds", "steps", "scaled", "action", "truncate", "autoreset")  # settings of no run
_BLOCK = 1 << 18  # bytes of rows that are handed out before new ones are allocated


def _settings(
    worlds: int,
    instance: InstanceLike,
    budget: float | None,
    world: str,
    knowledge: str,
    marks: str | None,
    sigma: float,
    unobserved: Sequence[str] | None,
    trace: str | None,
    epoch: float,
    decay: float,
    split: float,
    steps: int | None,
    action: str,
    overspend: str,
    observation: str,
    scaled: bool,
) -> dict[str, Any]:
    if overspend not in ("refuse", "truncate"):
        raise ValueError(f"overspend is {overspend!r}; allowed are 'refuse' and 'truncate'")
    if observation not in ("flat", "dict"):
        raise ValueError(f"observation is {observation!r}; allowed are 'flat' and 'dict'")
    return {
        **spec(instance, budget, world, knowledge, marks, sigma, unobserved, trace, epoch, decay, split),
        "worlds": worlds,
        "steps": operator.index(steps or 0),
        "scaled": bool(scaled),
        "action": action,
        "truncate": overspend == "truncate",
    }


class _Worlds:
    """K worlds behind a handle, and the rows that they write into.

    Each reset or step writes into a row that nobody has seen, so that arrays that were
    handed out stay as they are, and nothing is copied.
    """

    def __init__(self, settings: dict[str, Any], observation: str) -> None:
        self.handle, about = _library.build("worlds", settings)
        self.library = _library.library()
        self.step_function = self.library.eph_step
        self.answer = ctypes.c_void_p()
        self.answer_at = ctypes.addressof(self.answer)
        self.about: dict[str, Any] = about
        self.worlds: int = settings["worlds"]
        self.sources = len(about["names"])
        self.width: int = about["width"]
        self.row: int
        self.action: str = settings["action"]
        self.dtype: Any = np.float32 if settings["scaled"] else np.float64
        self.dictionary = observation == "dict"
        self.scores: NDArray[np.float64] = np.zeros(self.sources)
        self.set: NDArray[np.int8] = np.zeros(self.sources, np.int8)
        self.one = np.zeros(1, np.int64)
        self.scores_at, self.set_at, self.one_at = (a.ctypes.data for a in (self.scores, self.set, self.one))
        bytes_of_row = self.worlds * (self.width * np.dtype(self.dtype).itemsize + 9 * self.sources + 9)
        self.rows = max(1, min(256, _BLOCK // bytes_of_row))
        self.row = self.rows
        self.whittle, self.bound = self.references(settings)

    def references(self, settings: dict[str, Any]) -> tuple[float, float]:
        """Return what exact Whittle earns, and the bound.

        Where rewards have the means of the mean dynamics and no state is seen, Whittle is run in
        these; otherwise in the worlds' own way.
        """
        world = {k: v for k, v in settings.items() if k not in _OF_WORLDS}
        if world["knowledge"] == "online":
            world["knowledge"] = "model"
        bound = float("nan")
        if self.about["bounded"]:
            world |= {"world": "mean", "marks": "", "unobserved": None}
            bound = _library.ask("relax", world)["Bound"]
        epochs = self.about["steps"] or 10_000
        return earned({**world, "policies": [{"name": "whittle"}], "steps": epochs, "seed": 1}), bound

    def refill(self) -> None:
        """Have the worlds write into rows that are new."""
        r, k, n = self.rows, self.worlds, self.sources
        self.observation = np.empty((r, k, self.width), self.dtype)
        self.reward = np.empty((r, k))
        self.interest = np.empty((r, k, n))
        self.crawled = np.empty((r, k, n), np.bool_)
        self.over = np.empty((r, k), np.bool_)
        arrays = (self.observation, self.reward, self.interest, self.crawled, self.over)
        _library.call("eph_bind", self.handle, r, *(a.ctypes.data for a in arrays))
        self.row = 0

    def next_row(self) -> int:
        """Return a row that nobody has seen."""
        if self.row == self.rows:
            self.refill()
        self.row += 1
        return self.row - 1

    def reset(self, mask: NDArray[np.bool_] | None, seeds: NDArray[np.uint64] | None) -> int:
        """Reset worlds; the row that tells what is seen then."""
        self.alive()
        row = self.next_row()
        _library.call(
            "eph_reset",
            self.handle,
            row,
            None if mask is None else mask.ctypes.data,
            None if seeds is None else seeds.ctypes.data,
        )
        return row

    def refuse(self) -> None:
        """Raise what the last step answered."""
        raise _library.Error(_library.take(self.answer))

    def alive(self) -> None:
        """Raise if the worlds are closed."""
        _library.library()
        if self.handle == 0:
            raise RuntimeError("the environment is closed")

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

    def close(self) -> None:
        """Free the worlds."""
        handle, self.handle = self.handle, 0
        if handle:
            _library.ask("close", handle=handle)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


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

    def __init__(
        self,
        instance: InstanceLike = "paper",
        budget: float | None = None,
        world: str = "mean",
        knowledge: str = "model",
        marks: str | None = None,
        sigma: float = 1.0,
        unobserved: Sequence[str] | None = None,
        trace: str | None = None,
        epoch: float = 3600.0,
        decay: float = 0.175,
        split: float = 0.5,
        steps: int | None = 1000,
        action: str = "scores",
        overspend: str = "refuse",
        observation: str = "flat",
        scaled: bool = True,
        render_mode: None = None,
    ) -> None:
        """Set the world up.

        Args:
            instance: an :class:`Instance`, ``paper``, ``lognormal:N[:SEED]``, ``wide:N[:SEED]``,
                ``mixed:N[:SEED]``, or the path of a .toml file.
            budget: budget units that the crawls of one epoch may cost; None is the instance's own.
            world: ``mean`` (the papers' mean dynamics), ``poisson`` (single items), ``replay``.
            knowledge: ``model``, ``observed`` or ``online``.
            marks: law of the items' initial interest in ``poisson``: ``constant``, ``per-item``,
                ``per-epoch`` or ``lognormal``.
            sigma: σ of lognormal marks.
            unobserved: names of sources whose state is not seen with knowledge ``observed``.
            trace: path of the recording that ``replay`` plays.
            epoch: length of an epoch of a recording, seconds.
            decay: decay rate of interest in a recording, 1/hour.
            split: share of the recording on which its model is fitted; the rest is played.
            steps: epochs of an episode.
            action: ``scores``, ``set`` or ``one``.
            overspend: ``refuse`` or ``truncate``.
            observation: ``flat`` or ``dict``.
            scaled: whether observations are float32 without units.
            render_mode: None; nothing is rendered.
        """
        if render_mode is not None:
            raise ValueError(f"render_mode is {render_mode!r}; nothing is rendered")
        settings = _settings(
            1, instance, budget, world, knowledge, marks, sigma, unobserved, trace, epoch, decay, split,
            steps, action, overspend, observation, scaled,
        )  # fmt: skip
        self._w = w = _Worlds(settings, observation)
        self.observation_space = w.observation_space()
        self.action_space = w.action_space()
        self.render_mode = render_mode
        self._shape = (w.sources,)
        self._started = False

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
        seeds = None
        if seed is not None:
            seeds = np.array([seed], np.uint64)
        elif not self._started:
            seeds = self.np_random.integers(0, 2**63, 1, np.uint64)
        row = self._w.reset(None, seeds)
        self._started = True
        w = self._w
        told = {"interest": w.interest[row, 0], "crawled": w.crawled[row, 0], "whittle": w.whittle, "bound": w.bound}
        return self._seen(row), told

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Crawl, and go on to the next epoch."""
        w = self._w
        if w.action == "scores":
            if type(action) is not np.ndarray or action.shape != self._shape or action.dtype.kind != "f":
                action = _real(action, self._shape)
            w.scores[:] = action
            at, form = w.scores_at, _SCORES64
        elif w.action == "one":
            w.one[0] = operator.index(action)
            at, form = w.one_at, _ONE
        else:
            w.set[:] = _binary(action, self._shape)
            at, form = w.set_at, _SET
        row = w.row
        if row == w.rows or _library._forked or w.handle == 0:
            w.alive()
            if not self._started:
                raise RuntimeError("step before the first reset")
            row = w.next_row()
        else:
            w.row = row + 1
        if w.step_function(w.handle, row, at, form, w.answer_at):
            w.refuse()
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

    def __reduce__(self) -> Any:
        raise TypeError("an environment holds a world of the Go code and cannot be pickled; pickle its arguments")


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
        budget: float | None = None,
        world: str = "mean",
        knowledge: str = "model",
        marks: str | None = None,
        sigma: float = 1.0,
        unobserved: Sequence[str] | None = None,
        trace: str | None = None,
        epoch: float = 3600.0,
        decay: float = 0.175,
        split: float = 0.5,
        steps: int | None = 1000,
        action: str = "scores",
        overspend: str = "refuse",
        observation: str = "flat",
        scaled: bool = True,
        render_mode: None = None,
        autoreset_mode: Any = "NextStep",
    ) -> None:
        """Set K worlds up; the arguments are those of :class:`CrawlEnv`."""
        if render_mode is not None:
            raise ValueError(f"render_mode is {render_mode!r}; nothing is rendered")
        mode = str(getattr(autoreset_mode, "value", autoreset_mode))
        if mode not in ("NextStep", "SameStep", "Disabled"):
            raise ValueError(f"autoreset_mode is {autoreset_mode!r}; allowed are NextStep, SameStep and Disabled")
        settings = _settings(
            operator.index(num_envs), instance, budget, world, knowledge, marks, sigma, unobserved, trace, epoch,
            decay, split, steps, action, overspend, observation, scaled,
        )  # fmt: skip
        settings["autoreset"] = mode == "NextStep"
        self._w = w = _Worlds(settings, observation)
        self._mode = mode
        self.metadata = {**self.metadata}
        modes = getattr(gym.vector, "AutoresetMode", None)
        if modes is not None:
            self.metadata["autoreset_mode"] = modes(mode)
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.single_observation_space = w.observation_space()
        self.single_action_space = w.action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._shape = (num_envs, w.sources)
        self._started = False

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
        mask = None
        if options is not None and "reset_mask" in options:
            mask = np.ascontiguousarray(options["reset_mask"])
            if mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
                raise ValueError(
                    f"reset_mask has shape {mask.shape} and dtype {mask.dtype}; needed is ({self.num_envs},), bool"
                )
        seeds: NDArray[np.uint64] | None = None
        if isinstance(seed, (int, np.integer)):
            seeds = np.arange(int(seed), int(seed) + self.num_envs, dtype=np.uint64)
        elif seed is not None and all(s is not None for s in seed):
            seeds = np.array(seed, np.uint64)
            if seeds.shape != (self.num_envs,):
                raise ValueError(f"there are {len(seeds)} seeds for {self.num_envs} worlds")
        elif not self._started:
            seeds = self.np_random.integers(0, 2**63, self.num_envs, np.uint64)
        row = self._w.reset(mask, seeds)
        self._started = True
        k = self.num_envs
        return self._seen(row), {
            **self._told(row),
            "whittle": np.full(k, self._w.whittle),
            "_whittle": np.ones(k, np.bool_),
            "bound": np.full(k, self._w.bound),
            "_bound": np.ones(k, np.bool_),
        }

    def step(
        self, actions: Any
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Crawl in every world, and go on to the next epoch."""
        w = self._w
        w.alive()
        if not self._started:
            raise RuntimeError("step before the first reset")
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
        row = w.next_row()
        if w.step_function(w.handle, row, a.ctypes.data, form, w.answer_at):
            w.refuse()
        seen, reward, over, info = self._seen(row), w.reward[row], w.over[row], self._told(row)
        if self._mode == "SameStep" and over.any():
            info["final_obs"], info["_final_obs"] = seen, over
            info["final_info"], info["_final_info"] = self._told(row), over
            seen = self._seen(w.reset(over, None))
        return seen, reward, np.zeros(self.num_envs, np.bool_), over, info

    def close_extras(self, **kwargs: Any) -> None:
        """Free the worlds."""
        self._w.close()

    def __reduce__(self) -> Any:
        raise TypeError("an environment holds worlds of the Go code and cannot be pickled; pickle its arguments")
