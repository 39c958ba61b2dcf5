"""A Scrapy scheduler that asks a URLFrontier service what to fetch next."""

from .scheduler import Scheduler

__all__ = ["Scheduler"]
