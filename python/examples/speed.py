"""Epochs per second of processor time through Gymnasium, with one world and with many: ``python speed.py``."""

import time

import gymnasium
import numpy as np

import ephemera  # noqa: F401 (registers the environment)


def best(step, epochs_per_call: int, calls: int, rounds: int = 7) -> float:
    """Return the greatest speed of several rounds, epochs per second of processor time."""
    speed = 0.0
    for _ in range(rounds):
        began = time.process_time()
        for _ in range(calls):
            step()
        speed = max(speed, calls * epochs_per_call / (time.process_time() - began))
    return speed


for keywords in ({"world": "mean"}, {"world": "mean", "action": "one"}, {"world": "mean", "scaled": False}, {}):
    name = ", ".join(f"{k}={v}" for k, v in keywords.items()) or "defaults"
    one = gymnasium.make("ephemera/Crawl-v0", max_episode_steps=-1, **keywords)
    one.reset(seed=1)
    action = one.action_space.sample()
    line = f"{name:15} 1: {best(lambda one=one, action=action: one.step(action), 1, 10_000):>12,.0f}"
    for k in (16, 1024, 4096):
        many = gymnasium.make_vec("ephemera/Crawl-v0", num_envs=k, **keywords)
        many.reset(seed=1)
        actions = np.asarray(many.action_space.sample())
        speed = best(lambda many=many, actions=actions: many.step(actions), k, max(3, 60_000 // k))
        line += f"   {k}: {speed:>12,.0f}"
        many.close()
    print(line)
