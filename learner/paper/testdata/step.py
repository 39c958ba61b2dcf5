"""One whole step of the printed learner on Table I in NumPy: act, simulate, features, critic, actor.

    python learner/paper/testdata/step.py
    go test ./learner/paper -run XXX -bench Step -benchtime 200ms

The first prints microseconds a step, the second nanoseconds of the same in Go: as printed, with an
inverse at every step, and with the running inverse of Sherman and Morrison.
"""

import time

import numpy as np

N, KAPPA, SHIFT, GAMMA, DELTA, EPSILON = 4, 2.0, 0.5, 0.05, 1e4, 1e-3
DECAY = np.array([0.70, 0.35, 0.70, 0.21])
INTEREST = np.array([1.00, 0.70, 0.20, 0.08])
ALPHA = np.exp(-DECAY)
GAIN = 250 * INTEREST / DECAY * (1 - ALPHA)
CEILING = GAIN / (1 - ALPHA)
ONE, OTHER = np.triu_indices(N)


def features(x):
    """Return all products of the states up to the second degree, but for the constant."""
    return np.concatenate((x, x[ONE] * x[OTHER]))


def learner(running):
    """Return a function that takes a step."""
    l = N + len(ONE)
    rand = np.random.default_rng(1)
    x, n, eta = GAIN.copy(), 0, 0.0
    q = np.zeros((N, 3))
    q[:, 0] = (GAIN + CEILING) / 2
    b_matrix, inverse, a_matrix = EPSILON * np.eye(l), np.eye(l) / EPSILON, np.zeros((l, l))
    reward_vector, r, ridge = np.zeros(l), np.zeros(l), DELTA * np.eye(l)
    now = features(x)

    def step():
        nonlocal x, n, eta, b_matrix, inverse, a_matrix, reward_vector, r, now, q
        n += 1
        total = x.sum()
        others = total - x
        psi = np.stack((np.ones(N), others, others * others), axis=1)
        threshold = np.clip((q * psi).sum(axis=1), GAIN, CEILING)
        f = 1 / (1 + np.exp(-KAPPA * (x - threshold - SHIFT)))
        crawled = rand.random(N) < f
        x = np.where(crawled, GAIN, ALPHA * x + GAIN)
        then = features(x)
        q = q + (0.5 / -(-n // 500) * KAPPA * (f - crawled) * (r @ then))[:, None] * psi
        b = 1 / (n + 1)
        d, rho = then - now, total - eta
        a_matrix = (1 - b) * a_matrix + b * np.outer(now, d)
        reward_vector = (1 - b) * reward_vector + b * rho * now
        if running:
            inverse = inverse / (1 - b)
            u = inverse @ now
            inverse = inverse - b / (1 + b * (now @ u)) * np.outer(u, u)
            r = r + GAMMA * (inverse @ (a_matrix @ r + reward_vector))
        else:
            b_matrix = (1 - b) * b_matrix + b * np.outer(now, now)
            r = r + GAMMA * np.linalg.solve(b_matrix @ b_matrix + ridge, b_matrix @ (a_matrix @ r + reward_vector))
        if not r @ r < 1e18:
            r = np.zeros(l)
        eta += b * rho
        now = then

    return step


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        for name, running in (("printed", False), ("running inverse", True)):
            step, best = learner(running), float("inf")
            for _ in range(200):  # turns that something else interrupts drop out
                began = time.perf_counter()
                for _ in range(50):
                    step()
                best = min(best, (time.perf_counter() - began) / 50)
            print(f"{name}: {best * 1e6:.1f} µs a step")
