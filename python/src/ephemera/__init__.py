"""Worlds, learners and exact references for crawling ephemeral content."""

from __future__ import annotations

from ._library import Error
from .arm import ArmEnv
from .benchmark import Benchmark, benchmark, benchmark_run  # the function takes the name of its module
from .board import Leaderboard, leaderboard
from .crawler import Belief, Crawler
from .envs import CrawlEnv, CrawlVectorEnv
from .instance import Change, Instance, InstanceLike, Source
from .policies import Crawls, Learner, Policy, View, sources
from .references import (
    Relaxed,
    bound,
    catalogue,
    curves,
    index,
    index_at_age,
    load_instance,
    relax,
    state_at_age,
    threshold,
)
from .results import Results, load
from .runs import Agent, Comparison, Outcome, PolicyLike, Run, compare, figures, gym_policy, run, whittle
from .tasks import EPOCHS, TASKS, TRACKS, register, task
from .world import TEST_SEEDS

__version__ = "0.2.0"

__all__ = [
    "EPOCHS",
    "TASKS",
    "TEST_SEEDS",
    "TRACKS",
    "Agent",
    "ArmEnv",
    "Belief",
    "Benchmark",
    "Change",
    "Comparison",
    "CrawlEnv",
    "CrawlVectorEnv",
    "Crawler",
    "Crawls",
    "Error",
    "Instance",
    "InstanceLike",
    "Leaderboard",
    "Learner",
    "Outcome",
    "Policy",
    "PolicyLike",
    "Relaxed",
    "Results",
    "Run",
    "Source",
    "View",
    "__version__",
    "benchmark",
    "benchmark_run",
    "bound",
    "catalogue",
    "compare",
    "curves",
    "figures",
    "gym_policy",
    "index",
    "index_at_age",
    "leaderboard",
    "load",
    "load_instance",
    "relax",
    "run",
    "sources",
    "state_at_age",
    "task",
    "threshold",
    "whittle",
]

register()
