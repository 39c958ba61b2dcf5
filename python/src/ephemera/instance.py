"""Instances: sources and a budget, as data."""

from __future__ import annotations

import atexit
import functools
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Source:
    """One source of ephemeral content."""

    name: str
    rate: float
    """λ, items per epoch; 0 or more."""
    decay: float
    """c, 1/epoch; above 0."""
    interest: float
    """ξ̄, mean initial interest of an item; 0 or more."""
    window: float = float("inf")
    """M, epochs after which an item is dropped."""
    cost: float = 1.0
    """C, budget units per crawl; above 0."""
    fails: float = 0.0
    """The chance that a crawl fails, and brings nothing; 0 to .95."""
    host: str = ""
    """The host that it is at; without, one of its own."""


@dataclass(frozen=True)
class Instance:
    """Sources, and what the crawls of one epoch may cost together."""

    sources: Sequence[Source]
    budget: float = 1.0
    """Budget units per epoch."""
    id: str = "python"
    per_host: int = 0
    """Crawls of one host that an epoch has room for; more fail. 0 for any number."""

    def toml(self) -> str:
        """Return the instance as the text of an instance file."""
        lines = [f"id = {_text(self.id)}", f"budget = {_number(self.budget)}", f"per_host = {int(self.per_host)}"]
        for s in self.sources:
            lines += ["", "[[source]]", f"name = {_text(s.name)}"]
            lines += [
                f"{k} = {_number(getattr(s, k))}" for k in ("rate", "decay", "interest", "window", "cost", "fails")
            ]
            lines += [f"host = {_text(s.host)}"]
        return "\n".join(lines) + "\n"


InstanceLike: TypeAlias = "str | os.PathLike[str] | Instance"
"""An instance, the name of one (``paper``, ``lognormal:50:1``, …), or the path of a .toml file."""


def _number(v: float) -> str:
    return repr(float(v))


def _text(v: str) -> str:
    return json.dumps(str(v), ensure_ascii=False).replace("\x7f", "\\u007f")


@functools.cache
def _room() -> Path:
    """Return a directory for instance files, which goes when the program ends."""
    room = Path(tempfile.mkdtemp(prefix="ephemera"))
    atexit.register(shutil.rmtree, room, ignore_errors=True)
    return room


def named(instance: InstanceLike) -> str:
    """Return what names an instance to the Go code, which reads one of Python from a file."""
    if not isinstance(instance, Instance):
        return os.fsdecode(instance)
    text = instance.toml().encode()
    file = _room() / f"{hashlib.sha256(text).hexdigest()}.toml"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(text)
    return str(file)


def from_table(table: Mapping[str, Any]) -> Instance:
    """Return the instance that a TOML file holds."""
    of = [Source(**s) for s in table["source"]]
    return Instance(of, table["budget"], table["id"], table.get("per_host", 0))
