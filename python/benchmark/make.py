"""Makes the leaderboard: what the policies of the catalogue earn in the benchmark.

    python benchmark/make.py

plays every policy below in all tasks of its track under the first test seeds, and writes leaderboard.json and the
table of README.md; with --trace those of recordings. Runs are kept in a directory, so that the same command goes on
after an interruption, and plays again what was played with another version, policy or number of epochs. Rows of
methods that are not in the catalogue come from files in rows/, as ``python -m ephemera.benchmark --format json``
prints them.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import ephemera

HERE = Path(__file__).parent
SEEDS = 5
POLICIES: dict[str, list[str]] = {
    "parameters": ["whittle", "lambdacrawl", "greedy-ncis"],
    "state": ["whittle", "lspe", "myopic"],
    "items": ["forecast", "certainty", "miniflux", "commafeed"],
    "harvest": ["lspe", "salmut", "q-whittle"],
    "bit": ["nutch", "stormcrawler"],
    "change": [
        "forecast", "lambdacrawl-learned", "explore-then-commit", "whittle-naive", "whittle-cho", "whittle-lln",
        "whittle-sa", "whittle-mle", "round-robin",
    ],
    "age": ["round-robin"],
}  # fmt: skip
RECORDED = {
    "items": ["forecast", "certainty"],
    "harvest": ["lspe", "salmut", "q-whittle"],
    "bit": ["nutch", "stormcrawler"],
    "age": ["round-robin"],
}
SEEN = {
    "parameters": "rates of change of pages, recall and false pings",
    "state": "the parameters of the sources or their simulator, and what waits at each before a crawl",
    "items": "the items that crawls bring back, each with its age and interest",
    "harvest": "what each crawl brings in all, and the age of its source",
    "bit": "whether a crawl brought anything",
    "change": "whether a page has changed; pings, and the importance of pages",
    "age": "how long ago each source was crawled",
}


def rows(kept: Path, processes: int, recordings: Path | None = None) -> list[dict[str, Any]]:
    """Return the rows of all policies, best first within a track; with a directory, of those that play recordings."""
    made = []
    how: dict[str, Any] = {"seeds": SEEDS, "processes": processes}
    if recordings is not None:
        how |= {"tasks": [t for t in ephemera.tasks.RECORDINGS if t.endswith("-v2")], "trace": recordings, "seeds": 1}
    for track, names in (POLICIES if recordings is None else RECORDED).items():
        for name in names:
            found = ephemera.benchmark(name, track, out=kept / track / name, **how)
            print(f"{track} {name}: {100 * found.row['mean']['share']:.1f} % of Whittle", flush=True)
            made.append(found.row | {"settings": {}, "training_epochs": 0, "commit": ""})
    for file in sorted((HERE / "rows").glob("*.json")) if recordings is None else []:
        made.append(json.loads(file.read_text("utf-8")))
    order = list(ephemera.TRACKS)
    return sorted(made, key=lambda r: (order.index(r["track"]), -r["mean"]["share"]))


def table(made: list[dict[str, Any]]) -> str:
    """Return the tables of the page, one for each track: a share with its interval for each task."""
    parts = []
    for track in dict.fromkeys(r["track"] for r in made):
        of = [r for r in made if r["track"] == track]
        tasks = list(dict.fromkeys(t for r in of for t in r["tasks"]))
        parts.append(f"### {track}: {SEEN.get(track, track)}\n")
        parts.append("| policy | " + " | ".join(tasks) + " | mean | trained for | version |")
        parts.append("|---|" + "--:|" * (len(tasks) + 3))
        for r in of:
            cells = [cell(r["tasks"][t]) if t in r["tasks"] else "–" for t in tasks]
            trained = f"{r['training_epochs']:,}" if r["training_epochs"] else "–"
            parts.append(f"| {r['policy']} | " + " | ".join([*cells, cell(r["mean"]), trained, r["version"]]) + " |")
        parts.append("")
    return "\n".join(parts)


def cell(e: dict[str, Any]) -> str:
    """Return a share with its interval, in percent."""
    share = f"{100 * e['share']:.1f}"
    return share if e["lo"] is None else f"{share} ({100 * e['lo']:.1f} to {100 * e['hi']:.1f})"


def main() -> None:
    """Make the file and the page."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--kept", type=Path, default=Path("leaderboard-runs"), help="directory that keeps each run")
    p.add_argument("--processes", type=int, default=1, help="runs at a time; default: 1")
    p.add_argument("--trace", type=Path, help="directory of the recordings; makes recordings.json and its table")
    p.add_argument("--table", action="store_true", help="only write the page, of what leaderboard.json has")
    a = p.parse_args()
    if not a.table:
        name, seeds = ("leaderboard", SEEDS) if a.trace is None else ("recordings", 1)
        made = {"format": 1, "seeds": seeds, "rows": rows(a.kept / name, a.processes, a.trace)}
        (HERE / f"{name}.json").write_text(json.dumps(made, indent=1) + "\n", "utf-8")
    page = HERE / "README.md"
    text = page.read_text("utf-8")
    for name, begin in (("leaderboard", "<!-- table -->\n"), ("recordings", "<!-- table of recordings -->\n")):
        if (HERE / f"{name}.json").exists():
            made = json.loads((HERE / f"{name}.json").read_text("utf-8"))["rows"]
            head, rest = text.split(begin)
            text = head + begin + table(made) + rest[rest.index("<!-- end of table -->") :]
    page.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
