"""Epochs per second: the mean dynamics here and in NumPy, on two threads, and other forms of the environment.

Both sides are stepped in turns, and the least processor time of each counts, of threads that of the clock:
``python speed.py``.
"""

import math
import time

import gymnasium
import numpy as np

import ephemera

WORLDS, WARM = 1024, 60


class Plain:
    """The mean dynamics of K worlds in NumPy, without costs, checks, seeds and ends of episodes."""

    def __init__(self, sources, worlds):
        self.alpha = np.exp([-s.decay for s in sources])
        self.ceiling = np.array([s.rate * s.interest / s.decay for s in sources])
        self.gain = self.ceiling * (1 - self.alpha)
        self.round, self.k = len(sources), np.arange(worlds)
        self.state = np.tile(self.gain, (worlds, 1))
        self.age = np.ones((worlds, len(sources)), np.float32)
        self.found = np.zeros((worlds, len(sources)), np.float32)

    def step(self, scores):
        source = scores.argmax(axis=1)
        reward = self.state[self.k, source]
        self.found[self.k, source] = reward / self.ceiling[source]
        self.state[self.k, source] = 0
        self.state *= self.alpha
        self.state += self.gain
        self.age += 1
        self.age[self.k, source] = 1
        state = (self.state / self.ceiling).astype(np.float32)
        return np.concatenate([state, 1 - np.exp(-self.age / self.round), self.found], axis=1), reward


def least(*steps, calls, rounds=12, clock=time.process_time):
    """Return the least time of a call of each."""
    times = [float("inf")] * len(steps)
    for step in steps:
        for _ in range(WARM):
            step()
    for _ in range(rounds):
        for k, step in enumerate(steps):
            began = clock()
            for _ in range(calls):
                step()
            times[k] = min(times[k], (clock() - began) / calls)
    return times


def stepping(env, instance):
    """Return a function that steps with actions that differ from call to call, so that all sources are crawled."""
    shape = WORLDS, len(instance.sources)
    rng = np.random.default_rng(1)
    scores = rng.random(2 * math.prod(shape), np.float32)

    def step():
        begin = rng.integers(math.prod(shape))
        env.step(scores[begin : begin + math.prod(shape)].reshape(shape))

    return step


if __name__ == "__main__":
    print("sources   NumPy, epochs/s   here, epochs/s   ratio")
    for name in ("paper", "lognormal:100", "lognormal:1000"):
        instance = ephemera.load_instance(name)
        env = gymnasium.make_vec("ephemera/Crawl-v0", num_envs=WORLDS, instance=name, world="mean")
        env.reset(seed=1)
        n = len(instance.sources)
        plain, here = least(
            stepping(Plain(instance.sources, WORLDS), instance),
            stepping(env, instance),
            calls=max(2, 100_000 // n // 100),
        )
        print(f"{n:7} {WORLDS / plain:17,.0f} {WORLDS / here:16,.0f} {plain / here:7.2f}")
        env.close()
    print("\nsources   world     1 thread, epochs/s   2 threads, epochs/s   ratio, by the clock")
    for name, world in (("paper", "poisson"), ("lognormal:100", "mean"), ("lognormal:1000", "mean")):
        instance = ephemera.load_instance(name)
        n, steps = len(instance.sources), []
        for threads in (1, 2):
            form = {"instance": name, "world": world, "threads": threads}
            env = gymnasium.make_vec("ephemera/Crawl-v0", num_envs=WORLDS, **form)
            env.reset(seed=1)
            steps.append(stepping(env, instance))
        one, two = least(*steps, calls=2, rounds=100, clock=time.perf_counter)
        print(f"{n:7}   {world:7} {WORLDS / one:20,.0f} {WORLDS / two:21,.0f} {one / two:7.2f}")
    print("\nTable I             1 world     1024 worlds, epochs/s")
    for keywords in ({"world": "mean"}, {"world": "mean", "action": "one"}, {"world": "mean", "scaled": False}, {}):
        one = gymnasium.make("ephemera/Crawl-v0", max_episode_steps=-1, **keywords)
        many = gymnasium.make_vec("ephemera/Crawl-v0", num_envs=WORLDS, **keywords)
        one.reset(seed=1), many.reset(seed=1)
        action, actions = one.action_space.sample(), np.asarray(many.action_space.sample())
        (single,) = least(lambda one=one, action=action: one.step(action), calls=3000)
        (each,) = least(lambda many=many, actions=actions: many.step(actions), calls=5)
        print(f"{', '.join(map(str, keywords.values())) or 'poisson':15} {1 / single:11,.0f} {WORLDS / each:15,.0f}")
