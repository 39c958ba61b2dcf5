"""A plain baseline of track ``harvest``: what a source has brought per epoch, times the epochs since its last crawl.

It is the policy of ten lines that the package's page begins with. Nothing of it is fitted, and no parameter chosen.

    ephemera.benchmark(Product, "harvest")
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import ephemera


class Product:
    """Crawls where most has been found per epoch, times the epochs since, per budget unit."""

    name = "product"

    def begin(self, info: dict[str, Any]) -> None:
        self.costs = np.array(info["costs"])
        self.found, self.epochs = np.ones(len(self.costs)), np.ones(len(self.costs))

    def select(self, view: ephemera.View) -> NDArray[np.float64]:
        return np.asarray(self.found / self.epochs * view.age / self.costs)

    def update(self, crawls: ephemera.Crawls, view: ephemera.View) -> None:
        self.found[crawls.source] += crawls.interest
        assert crawls.age is not None
        self.epochs[crawls.source] += crawls.age
