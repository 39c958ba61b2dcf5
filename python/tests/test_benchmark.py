"""The benchmark: tracks, test seeds, and runs that are kept."""

import gzip
import json
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import ephemera
from ephemera.shell import main

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
    with pytest.raises(ValueError, match="whittle is of track parameters and state, not 'items'"):
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
    with pytest.raises(ValueError, match="whittle is of track parameters and state, not 'change'"):
        ephemera.benchmark("whittle", "change")
    with pytest.raises(ValueError, match="lspe is of track"):
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
    one = ephemera.benchmark(Waits, "items", tasks=["Recording-hn-v1"], trace=tmp_path / "trace_hn.csv.gz", seeds=1)
    assert list(one.row["tasks"]) == ["Recording-hn-v1"]
    with pytest.raises(ValueError, match="Recording-fbmedia2016-v2 needs its recording"):
        ephemera.benchmark(Waits, "items", tasks=["Recording-fbmedia2016-v2"])


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
        return b, sum(isinstance(x, dict) for x in Waits.shown)

    first, runs = played()
    assert runs == 10 and json.loads((tmp_path / "benchmark.json").read_text()) == first.row
    next((tmp_path / "TableI-v1" / "runs").iterdir()).unlink()
    again, runs = played()
    assert runs == 1 and again.row == first.row
    assert played(steps=100)[1] == 10 and played(seeds=6)[1] == 2 and played(name="other")[1] == 10
    command("report", tmp_path / "TableI-v1")
    assert (
        "Waits" in (tmp_path / "TableI-v1" / "report.html").read_text()
        or "other" in (tmp_path / "TableI-v1" / "report.html").read_text()
    )


def longest(view):
    return view.age * 1.0


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
    assert "TableI-v1" in str(b) and "track age" in str(b)
    assert b.to_markdown().count("\n|") == 5 and "<caption>longest, track age" in b._repr_html_()
    latex = b.to_latex()
    assert latex.startswith("\\begin{tabular}") and "\\% of Whittle" in latex and latex.count("\\\\") == 5
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    axes = b.plot().axes[0]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["Lognormal10-v1", "TableI-v1"]


def test_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("class Policy:\n    def select(self, view):\n        return view.age * 1.0\n")
    short = ["--seeds", "5", "--steps", "100", "--tasks", "TableI-v1"]
    assert main(["mine:Policy", *short, "--format", "json", "--out", "kept"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["policy"] == "Policy" and row["track"] == "items" and row["seeds"] == 5
    for wrong, words in (("mine:Other", "has no attribute 'Other'"), ("nobody", "there is no policy 'nobody'")):
        assert main([wrong, *short]) == 1
        assert words in capsys.readouterr().err
    module = [sys.executable, "-W", "error", "-m", "ephemera.benchmark", "lspe", *short]
    done = subprocess.run(module, check=True, capture_output=True, text=True)
    assert "lspe, track harvest" in done.stdout and done.stderr == ""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of Unix")
@pytest.mark.parametrize("processes", ["1", "2"])
def test_interrupted(tmp_path, processes):
    """Ctrl-C keeps the runs that are done, and the same command goes on with them."""
    (tmp_path / "mine.py").write_text("def policy(view):\n    return view.age * 1.0\n")
    command = [sys.executable, "-m", "ephemera.benchmark", "mine:policy", "--out", "kept", "--seeds", "8", "--steps"]
    command += ["2000", "--tasks", "TableI-v1", "--processes", processes, "--format", "json"]
    own = {"cwd": tmp_path, "text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # A shell has what it runs in the background ignore SIGINT, and what that starts, too.
    p = subprocess.Popen(
        command, **own, start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    )
    runs = tmp_path / "kept" / "TableI-v1" / "runs"
    until = time.monotonic() + 120
    while not (runs.is_dir() and list(runs.glob("*.json"))) and time.monotonic() < until:
        time.sleep(0.02)
    os.killpg(p.pid, signal.SIGINT)  # as a terminal does
    _, said = p.communicate(timeout=120)
    assert p.returncode == 1 and "the same command goes on with kept" in said
    kept = {f: f.stat().st_mtime_ns for f in runs.glob("*.json")}
    assert 1 <= len(kept) < 8
    done = subprocess.run(command, check=True, **own)
    assert all(f.stat().st_mtime_ns == at for f, at in kept.items()) and len(list(runs.glob("*.json"))) == 8
    elsewhere = [x if x != "kept" else "elsewhere" for x in command]
    assert subprocess.run(elsewhere, check=True, **own).stdout == done.stdout
