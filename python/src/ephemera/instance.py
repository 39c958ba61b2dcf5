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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from . import document


@dataclass(frozen=True)
class Source:
    """One source of ephemeral content.

    A page has the law ``freshness`` and the rate 1; its ``decay`` is Δ, changes per epoch, and its ``interest`` its
    importance μ, of an epoch in which the copy is fresh.
    """

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
    law: str = ""
    """How an item's interest depends on its age: empty for exponential, ``power``, ``hump`` and others of the
    documentation of the model, or ``freshness``."""
    shape: float = 0.0
    """k of a law that has one; 0 for the law's usual."""
    batch: int = 0
    """Items that arrive together; 0 for 1."""
    recall: float = 0.0
    """Of a page: the share of its changes that send a ping."""
    false: float = 0.0
    """Of a page: pings per epoch that no change made."""

    def _lines(self) -> list[str]:
        """Return the source as lines of an instance file, without what it leaves at its default."""
        lines = [f"name = {_text(self.name)}"]
        lines += [f"{k} = {_number(getattr(self, k))}" for k in ("rate", "decay", "interest", "window", "cost")]
        lines += [f"{k} = {_number(v)}" for k in ("fails", "shape", "recall", "false") if (v := getattr(self, k))]
        lines += [f"{k} = {_text(v)}" for k in ("host", "law") if (v := getattr(self, k))]
        return [*lines, f"batch = {self.batch}"] if self.batch else lines


@dataclass(frozen=True)
class Change:
    """Other parameters of sources from an epoch on; what was published before keeps its law."""

    at: int
    """Epoch, 1 or more."""
    sources: Sequence[Source] = ()
    """The new parameters of the sources of these names, whose costs and hosts stay."""
    shuffle: bool = False
    """Whether the parameters of all sources are dealt out among them anew, in place of new ones."""


@dataclass(frozen=True)
class Instance:
    """Sources, and what the crawls of one epoch may cost together."""

    sources: Sequence[Source]
    budget: float = 1.0
    """Budget units per epoch."""
    id: str = "python"
    per_host: int = 0
    """Crawls of one host that an epoch has room for; more fail. 0 for any number."""

    changes: Sequence[Change] = field(default_factory=list)
    """In the order of time."""

    def __repr__(self) -> str:
        names = [s.name for s in self.sources]
        some = ", ".join(names if len(names) < 6 else [*names[:3], "…", names[-1]])
        hosts = f", per_host {self.per_host}" if self.per_host else ""
        changes = f", changes at {', '.join(str(c.at) for c in self.changes)}" if self.changes else ""
        text = f"<Instance {self.id}: {len(names)} sources ({some}), budget {self.budget:g}{hosts}{changes}>"
        return document.shown(text)

    def toml(self) -> str:
        """Return the instance as the text of an instance file."""
        lines = [f"id = {_text(self.id)}", f"budget = {_number(self.budget)}", f"per_host = {self.per_host}"]
        for s in self.sources:
            lines += ["", "[[source]]", *s._lines()]
        for c in self.changes:
            lines += ["", "[[change]]", f"at = {c.at}", *["shuffle = true"] * bool(c.shuffle)]
            for s in c.sources:
                lines += ["", "[[change.source]]", *s._lines()]
        return "\n".join(lines) + "\n"

    def after(self, epochs: int) -> Instance:
        """Return the instance that this one has become after so many epochs, without changes."""
        now = {s.name: s for s in self.sources}
        for c in self.changes:
            if c.at < epochs:
                if c.shuffle:
                    raise ValueError(
                        f"the change at epoch {c.at} deals parameters out anew, which the Go code alone knows"
                    )
                now |= {s.name: s for s in c.sources}
        return replace(self, sources=[now[s.name] for s in self.sources], changes=[])


InstanceLike: TypeAlias = "str | os.PathLike[str] | Instance"
"""An instance, the name of one (``paper``, ``lognormal:50:1``, …), or the path of a .toml file."""


def _number(v: float) -> str:
    return repr(float(v))


def _text(v: str) -> str:
    return json.dumps(str(v), ensure_ascii=False).replace("\x7f", "\\u007f")


@functools.cache
def _room() -> Path:
    """Return a directory for instance files, which goes when the program ends."""
    room, process = Path(tempfile.mkdtemp(prefix="ephemera")), os.getpid()

    def remove() -> None:
        if os.getpid() == process:  # and not a child of it
            shutil.rmtree(room, ignore_errors=True)

    atexit.register(remove)
    return room


def named(instance: InstanceLike) -> str:
    """Return what names an instance to the Go code, which reads one of Python from a file."""
    if not isinstance(instance, Instance):
        if not (name := os.fsdecode(instance)):
            raise ValueError("instance is ''; allowed are an Instance, a name such as 'paper', and a .toml file")
        return name
    text = instance.toml()
    file = _room() / f"{hashlib.sha256(text.encode()).hexdigest()}.toml"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        document.put(file, text)
    return str(file)


def from_table(table: Mapping[str, Any]) -> Instance:
    """Return the instance that a TOML file holds."""

    def sources(of: Mapping[str, Any]) -> list[Source]:
        return [Source(**s) for s in of.get("source", ())]

    changes = [Change(c["at"], sources(c), c.get("shuffle", False)) for c in table.get("change", ())]
    return Instance(sources(table), table["budget"], table["id"], table.get("per_host", 0), changes)
