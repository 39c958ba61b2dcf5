"""Worlds, learners and exact references for crawling ephemeral content."""

from __future__ import annotations

import gymnasium

from ._library import Error
from .envs import CrawlEnv, CrawlVectorEnv
from .instance import Instance, InstanceLike, Source

__all__ = ["CrawlEnv", "CrawlVectorEnv", "Error", "Instance", "InstanceLike", "Source"]


if "ephemera/Crawl-v0" not in gymnasium.registry:
    gymnasium.register(
        id="ephemera/Crawl-v0",
        entry_point="ephemera.envs:CrawlEnv",
        vector_entry_point="ephemera.envs:CrawlVectorEnv",
    )
