"""The benchmark: tracks, test seeds, and runs that are kept."""

import functools
import gzip
import importlib
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import psutil
import pytest

import ephemera
from ephemera.benchmark.__main__ import main
from ephemera.identity import digest

SHORT = {"steps": 200, "seeds": 5, "tasks": ["TableI-v1", "Lognormal10-v1"]}


class Waits:
    """Crawls what has waited longest, and keeps what it is shown."""

    shown: list = []  # noqa: RUF012

    def begin(self, info):
        self.shown.append(info)

    def select(self, view):
        assert view.mean is None and view.state is None
        return view.age * 1.0

    def update(self, crawls, view):
        self.shown.append(crawls)


@pytest.mark.parametrize("track", ["items", "harvest", "bit", "age"])
def test_what_a_policy_sees(track):
    Waits.shown.clear()
    b = ephemera.benchmark(Waits, track, **SHORT)
    begun = [x for x in Waits.shown if isinstance(x, dict)]
    crawls = [x for x in Waits.shown if not isinstance(x, dict)]
    assert len(begun) == 10 and not any(x["seed"] in ephemera.TEST_SEEDS for x in begun)
    assert len(crawls) == (0 if track == "age" else 2000)
    assert all((c.items is not None) == (track == "items") for c in crawls)
    if track in ("harvest", "bit"):
        assert ({float(x) for c in crawls for x in c.interest} <= {0.0, 1.0}) == (track == "bit")
    want = ephemera.benchmark("round-robin", **SHORT)
    assert want.row["track"] == "age" and b.row["track"] == track
    np.testing.assert_allclose(b.shares, want.shares, rtol=1e-9)
    assert b.shares.shape == (5, 2) and b.row["epochs"] == 2000 and 0.1 < b.shares.min() < b.shares.max() < 1
    for column, e in zip(b.shares.T, b.row["tasks"].values(), strict=True):
        assert e["share"] == pytest.approx(column.mean()) and e["lo"] < e["share"] < e["hi"] and e["regret"] > 0


def test_every_entry_says_its_track():
    of = {e.name: e.tracks for e in ephemera.catalogue()}
    assert of["whittle"] == {"model": "parameters", "observed": "state"}
    assert of["lspe"] == {"online": "harvest", "observed": "state"}
    assert of["q-whittle"] == {"model": "harvest"} and of["nutch"] == {"online": "bit"}
    assert {t for tracks in of.values() for t in tracks.values()} == set(ephemera.TRACKS)
    with pytest.raises(ValueError, match="track is 'items'; allowed for whittle are parameters, state"):
        ephemera.benchmark("whittle", "items")
    with pytest.raises(ValueError, match="track is 'all'; allowed are parameters, state"):
        ephemera.benchmark(Waits, "all")
    with pytest.raises(ValueError, match="TableIMean-v1 is no task of track 'items'"):
        ephemera.benchmark(Waits, "items", tasks=["TableIMean-v1"])
    with pytest.raises(ValueError, match="more than track 'bit' sees"):
        ephemera.benchmark(ephemera.gym_policy(lambda seen: seen[:4]), "bit", **SHORT)


class Pages(Waits):
    """The same of pages, which keeps the pings of each crawl too."""

    def begin(self, info):
        self.info, self.pings = info, np.zeros(len(info["names"]), int)

    def select(self, view):
        self.pings += view.pings
        return super().select(view)

    def update(self, crawls, view):
        assert crawls.items is None and set(crawls.interest) <= {0, 1}
        self.shown += zip(self.pings[crawls.source], crawls.interest, crawls.age, strict=True)
        self.pings[crawls.source] = 0


def test_what_is_seen_of_pages():
    """Whether a page has changed, its importance and pings, which tell of changes; never for how long it was fresh."""
    for task, pinged in (("Pages200-v2", False), ("PagesPinged200-v2", True)):
        Waits.shown.clear()
        b = ephemera.benchmark(Pages, "change", tasks=[task], seeds=1)
        assert b.shares == ephemera.benchmark("round-robin", "change", tasks=[task], seeds=1).shares < 0.9
        pings, changed, age = np.array(Waits.shown).T
        assert len(pings) == 5000 and (pings.sum() > 1000) == pinged and 0.2 < changed.mean() < 0.9
        assert changed[age > 20].mean() > changed[age < 20].mean()  # the first crawls
        if pinged:
            assert changed[pings > 0].mean() > changed[pings == 0].mean() + 0.2
    named = ephemera.benchmark("lambdacrawl", "parameters", tasks=["Pages200-v2"], seeds=1, steps=300)
    assert named.shares > 0.8  # it knows the rates
    with pytest.raises(ValueError, match="track is 'change'; allowed for whittle are parameters, state"):
        ephemera.benchmark("whittle", "change")
    with pytest.raises(ValueError, match="track is 'change'; allowed for lspe are state, harvest"):
        ephemera.benchmark("lspe", "change")
    with pytest.raises(ValueError, match="more than track 'change' sees"):
        ephemera.benchmark(ephemera.gym_policy(lambda seen: seen[:200]), "change", seeds=1)
    with pytest.raises(ValueError, match="how long a copy was fresh"):
        ephemera.run(ephemera.gym_policy(lambda seen: seen[:9]), "pages:9", 10, world="pages")


def test_recordings(tmp_path):
    """They are played from a directory; tasks whose recording is not there are left out."""
    rows = [f"{'abcdefgh'[k % 7]},{1_500_000_000 + 900 * k},{1 + k % 7}" for k in range(4000)]
    (tmp_path / "trace_hn.csv.gz").write_bytes(
        gzip.compress("\n".join(["source,published_unix,utility", *rows]).encode())
    )
    short = {"seeds": 1, "steps": 50}
    b = ephemera.benchmark(Waits, "items", trace=tmp_path, **short)
    assert [t for t in b.row["tasks"] if "Recording" in t] == ["Recording-hn-v2"]
    assert not [t for t in ephemera.benchmark(Waits, "items", **short).row["tasks"] if "Recording" in t]
    (half,) = b.comparisons["Recording-hn-v2"].runs
    assert 499 <= half["epochs"] <= 500  # of 1000 hours the second half
    one = ephemera.benchmark(Waits, "items", tasks=["Recording-hn-v1"], trace=tmp_path, seeds=5)
    assert list(one.row["tasks"]) == ["Recording-hn-v1"]
    assert one.row["seeds"] == 1 and one.row["mean"]["lo"] is one.row["tasks"]["Recording-hn-v1"]["lo"] is None
    both = ephemera.benchmark(Waits, "items", tasks=["TableI-v1", "Recording-hn-v1"], trace=tmp_path, seeds=5, steps=50)
    assert both.row["tasks"]["Recording-hn-v1"] == one.row["tasks"]["Recording-hn-v1"]
    assert both.row["tasks"]["TableI-v1"]["lo"] < both.row["mean"]["lo"] < both.row["mean"]["hi"]
    assert both.shares.shape == (5, 2) and set(both.shares[:, 1]) == {one.shares.item()}
    assert both.row["epochs"] == 5 * 50 + one.row["epochs"]
    for task, where, words in (
        ("Recording-fbmedia2016-v2", None, "plays trace_fbmedia2016.csv.gz, and no trace is given"),
        ("Recording-fbmedia2016-v2", tmp_path, "needed is the directory with that file"),
        ("Recording-hn-v2", tmp_path / "trace_hn.csv.gz", "needed is the directory of the recordings"),
    ):
        with pytest.raises(ValueError, match=words):
            ephemera.benchmark(Waits, "items", tasks=[task], trace=where)


def test_worlds_of_tests_are_not_trained_in():
    """Seeds of training warn where they are of the test; those of compare and the benchmark are."""
    table = ephemera.compare([Waits], steps=20, seeds=3, knowledge="online")
    assert [r["seed"] for r in table.runs] == list(ephemera.TEST_SEEDS[:3])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = ephemera.CrawlVectorEnv(128, max_episode_steps=1)
        trained = set(env.reset(seed=1)[1]["seed"].tolist())
        for _ in range(20):  # through many episodes
            env.step(np.zeros((128, 4)))
            trained.update(env.reset()[1]["seed"].tolist())
        ephemera.benchmark(Waits, **SHORT)
    assert len(trained) == 128 * 21 and not trained & set(ephemera.TEST_SEEDS)
    for env in (ephemera.CrawlEnv(), ephemera.CrawlVectorEnv(3)):
        with pytest.warns(UserWarning, match="seed 1099511627776 is one of ephemera.TEST_SEEDS"):
            env.reset(seed=ephemera.TEST_SEEDS[0])


def test_runs_are_kept(tmp_path, command):
    """What is there is not played again unless it was played otherwise; a report is made of each task."""

    def played(**how):
        Waits.shown.clear()
        b = ephemera.benchmark(Waits, "harvest", out=tmp_path, **{**SHORT, **how})
        return b, sum(isinstance(x, dict) and x["epochs"] > 20 for x in Waits.shown)

    first, runs = played()
    assert runs == 10 and json.loads((first.directory / "benchmark.json").read_text()) == first.row
    lost, half, *_ = (first.directory / "TableI-v1" / "runs").iterdir()
    lost.unlink()
    half.write_bytes(half.read_bytes()[:100])
    again, runs = played()
    assert runs == 2 and again.row == first.row and again.directory == first.directory
    assert played(steps=100)[1] == 10 and played(seeds=6)[1] == 2
    other, runs = played(name="other")
    assert runs == 10 and other.directory != first.directory and first.directory.parent == tmp_path
    for b, name in ((first, "Waits"), (other, "other")):
        command("report", b.directory)
        for task in SHORT["tasks"]:
            assert name in (b.directory / task / "report.html").read_text()
        assert json.loads((b.directory / "benchmark.json").read_text())["policy"] == name


SCALE = 1.0


class Weighted:
    """Crawls what has waited longest, the sources not alike."""

    def __init__(self, weight, file=None):
        self.weight, self.file = weight, file

    def begin(self, info):
        weight = float(np.load(self.file)) if self.file else self.weight
        self.weights = 1 + weight * np.arange(len(info["costs"]))

    def select(self, view):
        return view.age * self.weights


def closed(weight):
    return lambda: Weighted(weight)


def constant():
    return Weighted(SCALE)


def loaded(file):
    return Weighted(float(np.load(file)))


def cell(text):
    """Run a cell of a notebook, which no file holds."""
    room = {"np": np, "__name__": "__main__"}
    exec(text, room)
    return room["Mine"]


CELL = "class Mine:\n    def select(self, view):\n        return view.age * ({} + np.arange(len(view.age)))\n"
LATE = CELL.replace("{}", "1.0 + (view.epoch > 50) * {}")
DEEP = "def weight(n):\n    return {} + np.arange(n)\n" + CELL.replace(
    "({} + np.arange(len(view.age)))", "weight(len(view.age))"
)


def of_file(at):
    def write(room, weight):
        np.save(room / "weights.npy", np.array(weight))
        return at(room / "weights.npy")

    return write


@pytest.mark.parametrize(
    "make",
    [
        lambda room, w: functools.partial(Weighted, w),
        lambda room, w: closed(w),
        lambda room, w: ephemera.gym_policy(lambda seen: seen[:4] * (1 + w * np.arange(4))),
        lambda room, w: cell(CELL.format(w)),
        lambda room, w: cell(DEEP.format(w)),
        lambda room, w: cell(LATE.format(w)),
        lambda room, w: [constant, globals().update(SCALE=w)][0],
        lambda room, w: functools.partial(functools.cache(Weighted), np.float64(w)),
        of_file(lambda file: functools.partial(loaded, file)),
        of_file(lambda file: functools.partial(Weighted, 0.0, file)),
    ],
    ids=[
        "partial",
        "closure",
        "gym",
        "cell",
        "cell that calls",
        "late",
        "constant",
        "wrapped",
        "file",
        "file of begin",
    ],
)
def test_kept_runs_are_those_of_the_policy(make, tmp_path):
    """A policy that is another under the same name has other figures, and the same one has those that are kept."""
    how = {"tasks": ["TableI-v1"], "seeds": 2, "steps": 200, "track": "harvest", "name": "mine"}
    weights = [0.0, 3.0]

    def policy(weight):
        return make(tmp_path, weight)

    want = [ephemera.benchmark(policy(w), **how).shares for w in weights]
    assert (want[0] != want[1]).all()
    for _ in range(2):
        for w, shares in zip(weights, want, strict=True):
            np.testing.assert_array_equal(ephemera.benchmark(policy(w), out=tmp_path / "kept", **how).shares, shares)
    assert len(list((tmp_path / "kept").rglob("runs/*.json"))) == 4  # the second time none was played


def test_kept_runs_are_those_of_the_weights_of_a_policy_that_draws(tmp_path):
    """What the constructor reads counts also where it draws a seed of its own."""

    class Drawn:
        def __init__(self):
            self.rng, self.weight = np.random.default_rng(), float((tmp_path / "weight").read_text())

        def select(self, view):
            return self.rng.random(len(view.age)) * self.weight

    how = {"tasks": ["TableI-v1"], "seeds": 1, "steps": 50, "track": "age", "out": tmp_path / "kept"}
    rooms = []
    for weight in ("1", "0", "0"):
        (tmp_path / "weight").write_text(weight)
        rooms.append(ephemera.benchmark(Drawn, **how).directory)
    assert rooms[0] != rooms[1] == rooms[2]


def test_kept_runs_are_those_of_the_recording(tmp_path):
    def recorded(gap):
        rows = [f"{'abcdefgh'[k % 7]},{1_500_000_000 + gap * k},{1 + k % 7}" for k in range(2000)]
        text = "\n".join(["source,published_unix,utility", *rows])
        (tmp_path / "trace_hn.csv.gz").write_bytes(gzip.compress(text.encode()))
        how = {"tasks": ["Recording-hn-v2"], "trace": tmp_path}
        return [ephemera.benchmark("round-robin", **how, **kept).row for kept in ({}, {"out": tmp_path / "kept"})]

    for gap in (900, 1900):
        played, kept = recorded(gap)
        assert played == kept


def test_what_cannot_be_known_is_played_again(tmp_path):
    """A policy that holds what no other call can have is never taken for the one before, and that is said."""
    how = {"tasks": ["TableI-v1"], "seeds": 2, "steps": 50, "track": "harvest", "out": tmp_path}
    lock = threading.Lock()

    def policy(view):
        with lock:
            return view.age * 1.0

    rooms = []
    for _ in range(2):
        with pytest.warns(UserWarning, match=r"policy holds a _thread.lock, of which nothing says"):
            rooms.append(ephemera.benchmark(policy, **how).directory)
    assert rooms[0] != rooms[1]
    chance = {"rng": np.random.default_rng()}

    class ByChance:
        def select(self, view):
            return chance["rng"].random(len(view.age))

    class Drawn(ByChance):
        def __init__(self):
            self.start = np.random.default_rng().random()

    assert ephemera.benchmark(Drawn, **how).directory.name.startswith("Drawn-")
    assert ephemera.benchmark(longest, **how).directory == ephemera.benchmark(longest, **how).directory


MINE = """
import dataclasses, enum, functools, re
import numpy as np
import helper

class Kind(enum.Enum):
    A = 1

@dataclasses.dataclass
class Mine:
    w: float = 1.0
    kinds: set = dataclasses.field(default_factory=lambda: {'a', 'b', 'c'})

    def select(self, view):
        return helper.score(view) * self.w * (Kind.A.value in {1, 2, 'x'})

    @functools.cached_property
    def x(self):
        return re.compile('a')

    @property
    def y(self):
        return super().__repr__()

policy = functools.partial(Mine, np.float64(2))
"""


def test_the_same_policy_in_another_process_has_the_same_digest(tmp_path):
    """Also where sets and addresses are others."""
    (tmp_path / "mine.py").write_text(MINE)
    say = "import mine; from ephemera.identity import digest; print(digest(mine.policy), digest(mine.policy()))"

    def digests(seed):
        env = os.environ | {"PYTHONHASHSEED": seed}
        run = [sys.executable, "-c", say]
        return subprocess.run(run, cwd=tmp_path, env=env, check=True, capture_output=True, text=True).stdout

    (tmp_path / "helper.py").write_text("def score(view):\n    return view.age * 1.0\n")
    first = digests("1")
    assert digests("2") == first and len(set(first.split())) == 2
    (tmp_path / "helper.py").write_text("def score(view):\n    return view.age * 2.0\n")
    changed = digests("1")
    assert not set(changed.split()) & set(first.split())
    text = (tmp_path / "mine.py").read_text()
    (tmp_path / "mine.py").write_text("# a remark\n" + text)
    assert digests("1") == changed


def test_values_that_say_how_they_are_pickled():
    """An array's mask counts, and so does a pattern."""
    masks = [digest(np.ma.array([1.0, 2.0], mask=mask)) for mask in ([0, 1], [1, 0], [1, 0])]
    patterns = [digest(re.compile(pattern)) for pattern in ("a", "b", "b")]
    for one, other, same in (masks, patterns):
        assert one != other == same


def test_another_version_of_a_package_has_another_digest(tmp_path):
    """Also of a package without __version__, of which pip alone knows the version."""
    room = tmp_path / "site-packages"
    of = room / "thing-1.dist-info"
    of.mkdir(parents=True)
    (room / "thing.py").write_text("def longest(view):\n    return view.age * 1.0\n")
    (of / "top_level.txt").write_text("thing\n")
    say = (
        "import pathlib, thing; from ephemera.identity import digest\n"
        "for version in ('1.0', '2.0', '2.0'):\n"
        "    text = f'Metadata-Version: 2.1\\nName: thing\\nVersion: {version}\\n'\n"
        "    pathlib.Path('thing-1.dist-info/METADATA').write_text(text)\n"
        "    print(digest(thing.longest))\n"
    )
    run = subprocess.run([sys.executable, "-c", say], cwd=room, check=True, capture_output=True, text=True)
    found = run.stdout.split()
    assert found[0] != found[1] == found[2]


def test_a_module_that_a_function_imports_counts(tmp_path, monkeypatch):
    """Also one of its own package, by a relative name."""
    room = tmp_path / "own_package"
    room.mkdir()
    (room / "__init__.py").touch()
    (room / "policy.py").write_text(
        "def longest(view):\n    from . import weights\n    return view.age * weights.WEIGHT\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    for weight in ("1.0", "-20.0", "-20.0"):
        (room / "weights.py").write_text(f"WEIGHT = {weight}\n")
        found.append(digest(importlib.import_module("own_package.policy").longest))
    assert found[0] != found[1] == found[2]


@pytest.mark.parametrize(
    "how, words",
    [
        ({"steps": 0}, "steps is 0; allowed is 1 or more$"),
        ({"trace": "."}, r"trace is '.'; needed is the directory of the recordings, with a file trace_hn.csv.gz or"),
        ({"tasks": []}, r"tasks is \[\]; needed is a list of names"),
        ({"tasks": "TableI-v1"}, "tasks is 'TableI-v1'; needed is a list of names"),
        ({"seeds": 0}, "seeds is 0"),
        ({"processes": 0}, "processes is 0; allowed is 1 or more"),
        ({"policy": ""}, "a policy has the name ''; allowed are .*lspe"),
        ({"policy": lambda view: view.age * 1.0, "processes": 2}, "cannot be pickled"),
    ],
)
def test_refusals(how, words):
    with pytest.raises(ValueError, match=words):
        ephemera.benchmark(**{"policy": longest, "track": "age" if how.get("policy") != "" else None, **SHORT, **how})


def test_an_agent_plays_one_run():
    """It would begin the second task with what it has learned in the first."""
    with pytest.raises(ValueError, match="Waits is one agent, which would carry what it learned from run to run; give"):
        ephemera.benchmark(Waits(), "age", **SHORT | {"seeds": 1})
    alone = {"steps": 50, "seeds": 1, "tasks": ["TableI-v1"]}
    assert ephemera.benchmark(Waits(), "age", **alone).shares == ephemera.benchmark(Waits, "age", **alone).shares


def longest(view):
    return view.age * 1.0


def flat_ages(seen):
    return seen[:4]


def test_an_agent_goes_to_other_processes():
    how = {"tasks": ["ephemera/TableI-v1"], "seeds": 2, "steps": 50}
    b = ephemera.benchmark(ephemera.gym_policy(flat_ages), **how, processes=2)
    assert b.row == ephemera.benchmark(ephemera.gym_policy(flat_ages), **how).row
    assert b.row["policy"] == "flat_ages" and b.row["track"] == "harvest" and list(b.row["tasks"]) == ["TableI-v1"]


def test_one_run_in_any_track():
    """The track says what is seen, whatever knowledge the task has."""
    world = ephemera.task("TableI-v1")
    for track, seen in (("parameters", "mean"), ("state", "state"), ("age", None)):

        class Policy:
            def select(self, view, seen=seen):
                assert [k for k in ("mean", "state") if getattr(view, k) is not None] == ([seen] if seen else [])
                return view.age * 1.0

        record = ephemera.benchmark_run(Policy, world, 7, track=track, steps=20)
        assert record["learning"]["epochs"] == 20 and record["learning"]["reward"] > 0, track
    with pytest.raises(TypeError, match="world is 'TableI-v1'; needed are keywords"):
        ephemera.benchmark_run(longest, "TableI-v1", 7, track="age")
    for policy in (longest, "round-robin"):  # a number of NumPy is a seed, too
        record = ephemera.benchmark_run(policy, world, np.int64(7), track="age", steps=20)
        assert record["learning"] == ephemera.benchmark_run(policy, world, 7, track="age", steps=20)["learning"]
        with pytest.raises(ValueError, match="seed is -1; allowed are 0 to"):
            ephemera.benchmark_run(policy, world, -1, track="age", steps=20)


def test_one_run_goes_anywhere():
    """One function plays one run, in another process too."""
    run = {"policy": longest, "world": ephemera.task("TableI-v1"), "seed": 7, "track": "age", "steps": 100}
    here = ephemera.benchmark_run(**run)
    assert pickle.loads(pickle.dumps(here)) == here
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*fork")
        with ProcessPoolExecutor(1) as pool:
            assert pool.submit(ephemera.benchmark_run, **run).result() == here
        assert (
            ephemera.benchmark(longest, "age", processes=2, **SHORT).row
            == ephemera.benchmark(longest, "age", **SHORT).row
        )


def test_tables():
    b = ephemera.benchmark(longest, "age", **SHORT)
    assert "TableI-v1" in str(b) and "track age" in str(b) and "from five seeds on with 95 % intervals" in str(b)
    assert ", 1 test seed, " in str(ephemera.benchmark(longest, "age", **SHORT | {"seeds": 1}))
    assert b.to_markdown().count("\n|") == 5 and "<caption>longest, track age" in b._repr_html_()
    latex = b.to_latex()
    assert latex.startswith("\\begin{tabular}") and "\\% of Whittle" in latex and latex.count("\\\\") == 5
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    axes = b.plot().axes[0]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["Lognormal10-v1", "TableI-v1"]
    pyplot.close("all")


def test_where_exact_whittle_earns_nothing():
    """That task has no share, nor have the means of the tasks; the other task has its own."""
    b = ephemera.benchmark(longest, "items", tasks=["Quiet50-v2", "TableI-v1"], seeds=5, steps=1)
    assert np.isnan(b.shares[:, 0]).any() and np.isfinite(b.shares[:, 1]).all()
    nothing = {"share": None, "lo": None, "hi": None}
    assert b.row["tasks"]["Quiet50-v2"].items() >= nothing.items() and b.row["mean"] == nothing
    assert b.row["iqm"] is None and b.row["tasks"]["TableI-v1"]["share"] == pytest.approx(b.shares[:, 1].mean())
    assert [line.split()[1] for line in str(b).splitlines()[1:2]] == ["–"]
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    points = [line for line in b.plot().axes[0].lines if line.get_marker() == "o"]
    assert len(points) == 1
    pyplot.close("all")


def test_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("class Policy:\n    def select(self, view):\n        return view.age * 1.0\n")
    short = ["--seeds", "5", "--steps", "100", "--tasks", "TableI-v1"]
    assert main(["mine:Policy", *short, "--format", "json", "--name", "Longest (ours)"]) == 0
    assert json.loads(capsys.readouterr().out)["policy"] == "Longest (ours)"
    assert main(["mine:Policy", *short, "--format", "json", "--out", "kept"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["policy"] == "Policy" and row["track"] == "items" and row["seeds"] == 5
    for wrong, words in (
        ("mine:Other", "module 'mine' has no 'Other'"),
        ("nobody", "there is no policy 'nobody'; allowed are MODULE:NAME, FILE.py:NAME, "),
        (":Policy", "there is no policy ':Policy'; allowed are MODULE:NAME, "),
        ("mine:", "there is no policy 'mine:'; allowed are MODULE:NAME, "),
        ("greedy-ncis", "task TableI-v1: greedy-ncis does not run on paper in world poisson: it is for pages"),
        ("nowhere.py:Policy", "nowhere.py:Policy: there is no file nowhere.py"),
        ("nowhere:Policy", "there is no module 'nowhere'"),
        ("nowhere.deep:Policy", "there is no module 'nowhere'"),
    ):
        assert main([wrong, *short]) == 2
        assert words in capsys.readouterr().err
    for name, text, words in (  # mistakes of the user's own have their place
        ("asks", "import nowhere", ["import nowhere", "ModuleNotFoundError: No module named 'nowhere'"]),
        ("early", "x = float('a')", ["x = float('a')", "ValueError"]),
        ("takes", "class P:\n def __init__(self):\n  float('a')", ["float('a')", "ValueError"]),
        (
            "late",
            "def P(view):\n if view.epoch == 7:\n  float('a')\n return view.age * 1.0",
            ["float('a')", "policy P, seed 10995116277", ", epoch 7", "task TableI-v1"],
        ),
    ):
        (tmp_path / f"{name}.py").write_text(text + "\n")
        for processes in ["1", "2"] if name == "late" else ["1"]:
            command = [sys.executable, "-W", "ignore", "-m", "ephemera.benchmark", f"{name}:P", *short]
            done = subprocess.run([*command, "--processes", processes], capture_output=True, text=True)
            assert done.returncode == 1 and "Traceback" in done.stderr, name
            assert not [w for w in words if w not in done.stderr], done.stderr
    (tmp_path / "wrong.py").write_text("def policy(view):\n return [9]\n")
    assert main(["wrong:policy", *short]) == 1  # what a policy returned needs no traceback
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "chose source 9" in said and "epoch 0; task TableI-v1" in said
    (tmp_path / "nan.py").write_text(
        "def policy(view):\n return view.age * (float('nan') if view.epoch == 3 else 1.0)\n"
    )
    assert main(["nan:policy", *short]) == 1
    said = capsys.readouterr().err
    assert "the score of source 0 is NaN; allowed are numbers, inf" in said, said
    assert "policy policy, seed 1099511627776, epoch 3; task TableI-v1" in said, said
    assert main(["mine:Policy", *short, "--out", "mine.py"]) == 2
    assert "out is 'mine.py', a file; allowed is a directory" in capsys.readouterr().err
    module = [sys.executable, "-W", "error", "-m", "ephemera.benchmark", "lspe", *short]
    done = subprocess.run(module, check=True, capture_output=True, text=True)
    assert "lspe, track harvest" in done.stdout and done.stderr == ""


def test_command_takes_a_file(tmp_path):
    """One of another directory imports what lies next to it, also in other processes, and is the module's policy."""
    room = tmp_path / "methods"
    room.mkdir()
    (room / "mine_of_file.py").write_text(
        "import next_to_it\n\n\nclass Policy:\n    def select(self, view):\n        return next_to_it.score(view)\n"
    )
    (room / "next_to_it.py").write_text("def score(view):\n    return view.age * 1.0\n")
    short = ["--seeds", "2", "--steps", "50", "--tasks", "TableI-v1", "--processes", "2", "--format", "json", "--out"]
    kept = tmp_path / "kept"
    for where, name in ((tmp_path, "methods/mine_of_file.py"), (room, "mine_of_file")):
        command = [sys.executable, "-m", "ephemera.benchmark", f"{name}:Policy", *short, str(kept)]
        done = subprocess.run(command, cwd=where, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["policy"] == "Policy"
    assert len(list(kept.iterdir())) == 1, "the file and the module are one policy, whose runs are kept once"


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of Unix")
@pytest.mark.parametrize("processes", ["1", "2"])
def test_interrupted(tmp_path, processes):
    """Ctrl-C ends at once and keeps the runs that are done, and the same command goes on with them."""
    (tmp_path / "mine.py").write_text(
        "import os, sys, time\n\n\ndef policy(view):\n"
        "    if view.epoch == 1000 and 'slow' in os.environ:\n        time.sleep(float(os.environ['slow']))\n"
        "    if view.epoch == 0:\n        print('begun', file=sys.stderr, flush=True)\n    return view.age * 1.0\n"
    )
    command = [sys.executable, "-m", "ephemera.benchmark", "mine:policy", "--out", "kept", "--seeds", "8", "--steps"]
    command += ["2000", "--tasks", "TableI-v1", "--processes", processes, "--format", "json"]
    own = {"cwd": tmp_path, "text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # A shell has what it runs in the background ignore SIGINT, and what that starts, too.
    p = subprocess.Popen(
        command, **own, env=os.environ | {"slow": "0.5"}, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    until = time.monotonic() + 120

    def runs():
        return list((tmp_path / "kept").glob("*/TableI-v1/runs/*.json"))

    while not runs() and time.monotonic() < until:
        time.sleep(0.02)
    os.killpg(p.pid, signal.SIGINT)  # as a terminal does
    began = time.monotonic()
    _, said = p.communicate(timeout=120)
    assert time.monotonic() - began < 5
    assert p.returncode == 130 and "the same command goes on with kept" in said
    kept = {f: f.stat().st_mtime_ns for f in runs()}
    assert 1 <= len(kept) < 8 and said.count("begun") <= 2 + len(kept) + 2 * int(processes)
    done = subprocess.run(command, check=True, **own)
    assert all(f.stat().st_mtime_ns == at for f, at in kept.items()) and len(runs()) == 8
    elsewhere = [x if x != "kept" else "elsewhere" for x in command]
    assert subprocess.run(elsewhere, check=True, **own).stdout == done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of Unix")
def test_killed(tmp_path):
    """The processes of a command that is killed end, too."""
    (tmp_path / "mine.py").write_text(
        "import os, time\n\n\ndef policy(view):\n    open(f'{os.getpid()}.run', 'w').close()\n    time.sleep(3600)\n"
    )
    command = [sys.executable, "-m", "ephemera.benchmark", "mine:policy", "--tasks", "TableI-v1", "--processes", "2"]
    p = subprocess.Popen(command, cwd=tmp_path)
    until = time.monotonic() + 120
    while len(found := list(tmp_path.glob("*.run"))) < 2:
        assert time.monotonic() < until, "the runs did not begin"
        time.sleep(0.02)
    children = [psutil.Process(int(f.stem)) for f in found]
    p.kill()
    p.wait()
    _, left = psutil.wait_procs(children, timeout=120)
    for child in left:
        child.kill()
    assert not left


class Ends:
    """A policy whose process ends, as the system ends one for want of memory."""

    def begin(self, info):
        self.last = info["seed"] == ephemera.TEST_SEEDS[3] % 1_000_003

    def select(self, view):
        if self.last and view.epoch == 40:
            os._exit(1)
        return view.age * 1.0


class Watched:
    """A policy that remembers how far it was played."""

    last = 0

    def select(self, view):
        Watched.last = max(Watched.last, view.epoch)
        return view.age * 1.0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="nobody can write into /proc")
def test_where_nothing_can_be_written():
    """No run is played that could not be kept."""
    with pytest.raises(OSError, match="/proc/kept"):
        ephemera.benchmark(Watched, "age", out="/proc/kept", tasks=["TableI-v1"], seeds=1, steps=50)
    assert Watched.last < 20


class Far(Exception):
    """One that cannot be made again from its text, so that no other process takes it."""

    def __init__(self, what, where):
        super().__init__(f"{what} at {where}")


def fails(view):
    raise Far("nothing", "all")


@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_process_that_ends(tmp_path):
    """One error says so, and what the others had finished is kept."""
    how = {"tasks": ["TableI-v1"], "steps": 50, "processes": 2}
    with pytest.raises(ChildProcessError, match="a process that played Ends ended before its run did"):
        ephemera.benchmark(Ends, "age", seeds=4, out=tmp_path, **how)
    assert list(tmp_path.glob("*/TableI-v1/runs/*.json"))
    with pytest.raises(RuntimeError, match=r"(?s)in fails\n.*Far: nothing at all\npolicy fails, seed .*, epoch 0"):
        ephemera.benchmark(fails, "age", seeds=2, **how)
