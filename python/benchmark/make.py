"""Makes the leaderboard: what the policies of the catalogue earn in the benchmark.

    python python/benchmark/make.py --trace DIR

plays every policy below in all tasks of its track under the first test seeds, and in the recordings that DIR has, once,
and writes leaderboard.json and the tables of README.md. Rows of the file stay whose code has not changed
since their commit (that of worlds, account and their own policy, not that of other learners), or has changed without a
difference: a short run under the first seed earns in each task what it earned then. Runs are kept in a directory by the
commit of the code that was played, so that the same command goes on after an interruption. What could be earned in the
recordings is found anew each time. Rows of methods that are
trained before come from files in rows/, as ``python -m ephemera.benchmark --format json`` prints them, and from nowhere
else.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import ephemera

HERE = Path(__file__).parent
FILE = HERE / "leaderboard.json"  # which the package takes with it
sys.path.insert(0, str(HERE.parent / "peers"))  # also in the processes that play
import product  # noqa: E402
import tabular  # noqa: E402

SEEDS = 5
CHECK = 300  # epochs of the short runs
POLICIES: dict[str, list[str]] = {
    "parameters": ["whittle", "whittle-packed", "lambdacrawl", "greedy-ncis"],
    "state": ["whittle", "lspe", "myopic", "in-turn"],
    "items": ["forecast", "certainty", "miniflux", "commafeed"],
    "harvest": ["lspe", "salmut", "q-whittle", "wiql", "ucwhittle", "product"],
    "bit": ["nutch", "stormcrawler"],
    "change": [
        "forecast", "lambdacrawl-learned", "explore-then-commit", "whittle-naive", "whittle-cho", "whittle-lln",
        "whittle-sa", "whittle-mle", "round-robin",
    ],
    "age": ["round-robin"],
}  # fmt: skip
RECORDED = ("items", "harvest", "bit", "age")
PAGES = [t for t, world in ephemera.TASKS.items() if world.get("world") == "pages"]
ALONE = {  # in track parameters: exact Whittle, which all shares are of, need not be played but beside others
    "whittle": ["Tight20-v2", *PAGES],
    "whittle-packed": ["Tight20-v2"],
    "lambdacrawl": PAGES,
    "greedy-ncis": PAGES,
}
RECORDINGS = [t for t in ephemera.tasks.RECORDINGS if t.endswith("-v2")]


def in_turn(view: ephemera.View) -> Any:
    """Crawl what has waited longest, whatever waits there."""
    return view.age * 1.0


PYTHON = {"in-turn": in_turn, "wiql": tabular.Wiql, "ucwhittle": tabular.UcWhittle, "product": product.Product}
PLAYED = [  # code that all rows depend on: worlds, exact Whittle and its account, tasks and seeds
    "env", "baselines", "internal", "python/native",
    ":(glob)experiments/*.go", "experiments/result", "experiments/stats",
    "python/src/ephemera/benchmark/__init__.py", "python/src/ephemera/tasks.py", "python/src/ephemera/world.py",
]  # fmt: skip
LOOP = ["python/src/ephemera/loop.py"]
LEARNED = ["learner/forecast", "learner/estimate", "learner/learner.go"]
OWN = {
    "lspe": ["learner/lspe", "learner/critic", "learner/internal", "learner/learner.go"],
    "forecast": LEARNED,
    "certainty": LEARNED,
    "in-turn": LOOP,
    "wiql": [*LOOP, "python/peers/tabular.py"],
    "ucwhittle": [*LOOP, "python/peers/tabular.py"],
    "product": [*LOOP, "python/peers/product.py"],
}
"""What only the rows of one policy depend on; those of baselines have all they need in PLAYED."""
FORESIGHT = "bound with foresight"
BEYOND = {  # what could be earned in a recording, with what one has to know for it
    FORESIGHT: "what will be published",
    "myopic": "what waits at all sources now",
    "forecast, a second time": "what it learned from the same half before",
}
ROOM = 2  # points below full knowledge that a task leaves where it is not solved
NAIVE = ("round-robin", "in-turn")
UNTRAINED = ("nutch", "stormcrawler", "miniflux", "commafeed", "myopic", *NAIVE)  # of what is seen nothing is fitted
SEEN = {
    "parameters": "the parameters of the sources; of pages rates of change, recall and false pings",
    "state": "the parameters of the sources or their simulator, and what waits at each before a crawl",
    "items": "the items that crawls bring back, each with its age and interest",
    "harvest": "what each crawl brings in all, and the age of its source",
    "bit": "whether a crawl brought anything",
    "change": "whether a page has changed; pings, and the importance of pages",
    "age": "how long ago each source was crawled",
}


def git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Ask Git about the repository, with paths from its root."""
    return subprocess.run(["git", "-C", str(HERE.parents[1]), *arguments], capture_output=True)


def code(name: str) -> list[str]:
    """Return the paths that the rows of a policy depend on, as Git takes them; tests are none."""
    return ["--", *PLAYED, *OWN.get(name, []), ":(exclude,top)*_test.go"]


def commit(name: str) -> str:
    """Return the last commit that changed what the rows of a policy depend on, marked where it has changed since."""
    last, now = git("log", "-1", "--format=%h", "--abbrev=12", *code(name)), git("status", "--porcelain", *code(name))
    last.check_returncode()
    return last.stdout.decode().strip() + ("-changed" if now.stdout else "")


def same(row: dict[str, Any]) -> bool:
    """Tell whether the code that a row depends on is that of its commit."""
    if row["commit"].endswith("-changed") or commit(row["policy"]).endswith("-changed"):
        return False
    return git("diff", "--quiet", row["commit"], *code(row["policy"])).returncode == 0  # 128: no such commit here


def asked(track: str, name: str) -> list[str] | None:
    """Return the tasks that a policy plays; None for all of its track."""
    return ALONE[name] if track == "parameters" else None


def short(track: str, name: str) -> dict[str, float]:
    """Return what a policy earns in short runs, by task, as a share of exact Whittle."""
    of: dict[str, Any] = {"tasks": asked(track, name), "seeds": 1, "steps": CHECK, "name": name}
    found = ephemera.benchmark(PYTHON.get(name, name), track, **of).row
    return {t: float(f"{e['share']:.9g}") for t, e in found["tasks"].items()}


def fresh(row: dict[str, Any]) -> bool:
    """Tell whether a row is what would be found today."""
    epochs = SEEDS * sum(ephemera.EPOCHS.get(t, 0) for t in row["tasks"])
    if row["seeds"] != SEEDS or row["epochs"] != epochs:
        return False
    return same(row) or ("check" in row and row["check"] == short(row["track"], row["policy"]))


def rows(
    kept: Path, processes: int, recordings: Path, before: list[dict[str, Any]], again: list[str]
) -> list[dict[str, Any]]:
    """Return the rows of all policies: those of before that are fresh, others played where they are not kept."""
    for file in (ephemera.tasks.RECORDINGS[t] for t in RECORDINGS):
        if not (recordings / file).exists():
            raise ValueError(f"--trace is {recordings}, which has no {file}; needed is the directory of the recordings")
    old = {(r["track"], r["policy"]): r for r in before}
    made = []
    for track, names in POLICIES.items():
        for name in names:
            of = commit(name)
            if (row := old.get((track, name))) and name not in again and fresh(row):
                made.append(row | {"commit": of, "version": ephemera.__version__})  # as if it were played now
                continue
            policy = PYTHON.get(name, name)
            how: dict[str, Any] = {"processes": processes, "name": name}
            room = kept / of / track / name
            found = ephemera.benchmark(policy, track, tasks=asked(track, name), out=room, seeds=SEEDS, **how).row
            once = {}
            if track in RECORDED:
                how |= {"tasks": RECORDINGS, "trace": recordings, "seeds": 1}
                once = {"recordings": ephemera.benchmark(policy, track, out=room / "recordings", **how).row["tasks"]}
            print(f"{track} {name}: {100 * found['mean']['share']:.1f} % of Whittle", flush=True)
            made.append(
                found | once | {"settings": {}, "training_epochs": 0, "commit": of, "check": short(track, name)}
            )
    return made


def beyond(recordings: Path) -> dict[str, dict[str, float]]:
    """Return, by recording, what those of BEYOND earn there, as shares of exact Whittle with mean rates."""
    found = {}
    for t in RECORDINGS:
        world = ephemera.task(t, trace=str(recordings / ephemera.tasks.RECORDINGS[t]), window=None)
        learner, sees = (
            ephemera.benchmark_run(name, world, ephemera.TEST_SEEDS[0], track=track, steps=None)
            for name, track in (("forecast", "items"), ("myopic", "state"))
        )
        earned = learner["bound"], sees["learning"]["reward"], learner["learned"]["reward"]
        found[t] = {who: x / learner["learning"]["whittle"] for who, x in zip(BEYOND, earned, strict=True)}
    return found


def sent(file: Path) -> dict[str, Any]:
    """Return the row of a file of rows/, with what it may leave out, or raise."""
    row: dict[str, Any] = json.loads(file.read_text("utf-8"))
    printed = "version", "policy", "track", "seeds", "epochs", "tasks", "mean"
    if missing := [k for k in printed if k not in row]:
        raise ValueError(f"{file} lacks {', '.join(missing)}; needed is what the benchmark prints as json")
    if "training_epochs" not in row:
        raise ValueError(
            f"{file} lacks training_epochs; needed are the epochs of all worlds that it was trained in, or 0"
        )
    found = [t for t in row["tasks"] if t not in ephemera.EPOCHS]
    if found or row["track"] not in ephemera.TRACKS:
        raise ValueError(
            f"{file} has the track {row['track']} and the tasks {', '.join(row['tasks'])}; allowed are the tracks "
            f"{', '.join(ephemera.TRACKS)} and the tasks {', '.join(ephemera.EPOCHS)}"
        )
    epochs = SEEDS * sum(ephemera.EPOCHS[t] for t in row["tasks"])
    if (row["seeds"], row["epochs"]) != (SEEDS, epochs):
        raise ValueError(
            f"{file} has {row['seeds']} seeds and {row['epochs']} epochs; needed are {SEEDS} seeds, and in these tasks "
            f"{epochs} epochs"
        )
    return row | {k: v for k, v in {"settings": {}, "commit": ""}.items() if k not in row}


def added(made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows that this command makes with those of rows/, best first within a track."""
    own = [sent(file) for file in sorted((HERE / "rows").glob("*.json"))]
    new = {(r["track"], r["policy"]) for r in own}
    here = [r for r in made if r["policy"] in POLICIES.get(r["track"], [])]
    order = list(ephemera.TRACKS)
    whole = [r for r in here if (r["track"], r["policy"]) not in new] + own
    return sorted(whole, key=lambda r: (order.index(r["track"]), -r["mean"]["share"]))


def table(found: dict[str, Any]) -> str:
    """Return the tables of the page, one for each track: a share with its interval for each task."""
    made, parts = found["rows"], []
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


def recorded(found: dict[str, Any]) -> str:
    """Return the tables of the recordings, which are played once: what is earned, and what could be."""
    made = found["rows"]
    lines = ["| policy | track | " + " | ".join(RECORDINGS) + " |", "|---|---|" + "--:|" * len(RECORDINGS)]
    for r in made:
        if of := r.get("recordings"):
            lines.append(f"| {r['policy']} | {r['track']} | " + " | ".join(cell(of[t]) for t in RECORDINGS) + " |")
    lines += ["", "| who | knows | " + " | ".join(RECORDINGS) + " |", "|---|---|" + "--:|" * len(RECORDINGS)]
    for who, knows in BEYOND.items():
        shares = [f"{100 * found['recordings'][t][who]:.1f}" for t in RECORDINGS]
        lines.append(f"| {who} | {knows} | " + " | ".join(shares) + " |")
    return "\n".join(lines) + "\n"


def tasks(found: dict[str, Any]) -> str:
    """Return the table of all tasks: who earns what, which tasks leave room, and whom they tell apart."""
    earned: dict[str, dict[str, dict[str, tuple[str, dict[str, Any]]]]] = {}  # by task, track and policy
    for r in found["rows"]:
        for t, e in (r["tasks"] | r.get("recordings", {})).items():
            earned.setdefault(t, {}).setdefault(r["track"], {})[r["policy"]] = e
    head = [
        "task",
        "naive",
        "best without training",
        "learners and peers, by track",
        "full knowledge",
        "spread",
        "room",
    ]
    lines = ["| " + " | ".join(head) + " |", "|---|--:|--:|---|--:|--:|---|"]
    small: list[str] = []
    left_in: dict[str, dict[bool, list[str]]] = {}  # by track: tasks that leave room, and those that do not
    for t in [t for t in ephemera.TASKS if t in earned]:
        of = earned[t]
        every = [(e["share"], p, track) for track, ps in of.items() for p, e in ps.items()]
        naive = max(x for x in every if x[1] in NAIVE)
        plain = max(x for x in every if x[1] in UNTRAINED)
        known = max([(1.0, "whittle", ""), *(x for x in every if x[2] == "parameters")])
        learners = {
            track: {p: e for p, e in ps.items() if p not in UNTRAINED and not (track == "state" and p == "whittle")}
            for track, ps in of.items()
            if track != "parameters"
        }
        learners = {track: ps for track, ps in learners.items() if ps}
        best = {track: max(e["share"] for e in ps.values()) for track, ps in learners.items()}
        spread = 100 * (max([known[0], *best.values()]) - naive[0])
        most = ""
        if t in found["recordings"]:
            known, most = (found["recordings"][t][FORESIGHT], FORESIGHT, ""), " at most"
        room = {track: 100 * (known[0] - share) for track, share in best.items()}
        if spread < 10:
            small.append(t)
        for track, left in room.items():
            left_in.setdefault(track, {True: [], False: []})[left >= ROOM].append(f"{t} {left:.1f}{most}")
        cells = [
            t, f"{100 * naive[0]:.1f}", f"{plain[1]} {100 * plain[0]:.1f}",
            "; ".join(f"{track}: {ranked(ps)}" for track, ps in learners.items()),
            f"{known[1]} {100 * known[0]:.1f}", f"{spread:.1f}",
            ", ".join(f"{track} {left:.1f}{most}" for track, left in room.items()),
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", f"| track | leave {ROOM} points or more | solved: leave less |", "|---|---|---|"]
    lines += [
        f"| {track} | {', '.join(x[True]) or '–'} | {', '.join(x[False]) or '–'} |" for track, x in left_in.items()
    ]
    lines += ["", f"Spread under 10 points: {', '.join(small) or 'none'}."]
    return "\n".join(lines) + "\n"


def ranked(of: dict[str, dict[str, Any]]) -> str:
    """Return policies, best first: > between neighbours whose intervals have nothing in common."""
    order = sorted(of.items(), key=lambda x: -x[1]["share"])
    text = ""
    for k, (name, e) in enumerate(order):
        if k:
            before = order[k - 1][1]
            text += ", " if e["hi"] is None or before["lo"] is None or before["lo"] <= e["hi"] else " > "
        text += f"{name} {100 * e['share']:.1f}"
    return text


TABLES = {
    "<!-- table -->\n": table,
    "<!-- table of tasks -->\n": tasks,
    "<!-- table of recordings -->\n": recorded,
}


def page(text: str, found: dict[str, Any]) -> str:
    """Return the page with its tables made anew, of what the file holds."""
    for begin, of in TABLES.items():
        head, rest = text.split(begin)
        text = head + begin + of(found) + rest[rest.index("<!-- end of table -->") :]
    return text


def cell(e: dict[str, Any]) -> str:
    """Return a share with its interval, in percent."""
    share = f"{100 * e['share']:.1f}"
    return share if e["lo"] is None else f"{share} ({100 * e['lo']:.1f} to {100 * e['hi']:.1f})"


def main() -> int:
    """Make the file and the page."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--trace", type=Path, help="directory of the recordings")
    p.add_argument("--kept", type=Path, default=Path("leaderboard-runs"), help="directory that keeps each run")
    p.add_argument("--processes", type=int, default=1, help="runs at a time; default: 1")
    p.add_argument("--out", type=Path, default=FILE, help="default: that of the page, whose fresh rows stay")
    p.add_argument(
        "--again", nargs="+", default=[], metavar="POLICY", help="play these though their rows are fresh",
        choices=list(dict.fromkeys(name for names in POLICIES.values() for name in names)),
    )  # fmt: skip
    p.add_argument("--table", action="store_true", help="play nothing: add rows/ to the file, and write the page")
    a = p.parse_args()
    if not a.table and a.trace is None:
        p.error("--trace is needed: the directory of the recordings")
    before = json.loads(a.out.read_text("utf-8")) if a.out.exists() else {"rows": []}
    try:
        added([])  # wrong rows are named before anything is played
        made = before["rows"] if a.table else rows(a.kept, a.processes, a.trace, before["rows"], a.again)
        found = {
            "format": 2,
            "seeds": SEEDS,
            "recordings": before["recordings"] if a.table else beyond(a.trace),
            "rows": added(made),
        }
    except KeyboardInterrupt:
        print(f"\n{p.prog}: interrupted; the same command goes on with {a.kept}", file=sys.stderr)
        return 130  # as the other commands do
    except ValueError as e:
        if hasattr(e, "__notes__"):  # of a policy
            raise
        print(f"{p.prog}: {e}", file=sys.stderr)
        return 2
    text = json.dumps(found, indent=1) + "\n"
    whole = {a.out: text}
    if a.out == FILE:
        readme = HERE / "README.md"
        whole[readme] = page(readme.read_text("utf-8"), found)
    for file, words in whole.items():
        file.with_suffix(".part").write_text(words, "utf-8")
    for file in whole:  # all of them can be made
        file.with_suffix(".part").replace(file)
    print(f"{a.out}: sha256 {hashlib.sha256(text.encode()).hexdigest()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
