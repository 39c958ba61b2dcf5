"""What the commands wrote, as frames, scores and event files."""

import os
import shutil
import sys
import threading

import numpy as np
import pytest

import ephemera
from ephemera import document, tensorboard

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def written(command, tmp_path_factory):
    d = tmp_path_factory.mktemp("results")
    command("train", "-steps", 500, "-out", d / "train")
    command(
        "bench", "-world", "poisson", "-policies", "whittle,greedy,round-robin", "-steps", 200, "-seeds", 3,
        "-out", d / "bench",
    )  # fmt: skip
    command("sweep", "-set", "steps=200", "-set", "seeds=3", "-out", d / "sweep", "kappa")
    return d


def test_load_train(written):
    r = ephemera.load(written / "train")
    assert r.kind == "train" and r.config["steps"] == 500
    assert r.table.loc["whittle", "of_whittle"] == 1
    assert r.curves["epoch"].iloc[-1] == 500 and r.curves["reward"].mean() > 0
    assert len(r.learned) == 4 and r.runs is None and r.learned.select_dtypes("number").shape[1] >= 6
    scores = r.to_rliable()
    assert scores["learned"].shape == (1, 1) and scores["whittle"] == 1


def test_load_bench(written):
    r = ephemera.load(written / "bench")
    assert r.kind == "bench" and len(r.runs) == 9
    scores = r.to_rliable()
    assert {k: v.shape for k, v in scores.items()} == dict.fromkeys(("whittle", "greedy", "round-robin"), (3, 1))
    assert (scores["whittle"] == 1).all()
    want = r.runs[r.runs.policy == "greedy"].reward.to_numpy() / r.runs[r.runs.policy == "whittle"].reward.to_numpy()
    np.testing.assert_array_equal(scores["greedy"][:, 0], want)
    assert scores["greedy"].mean() == pytest.approx(r.table.loc["greedy", "of_whittle"])
    with pytest.raises(ValueError, match="no column 'x'"):
        r.to_rliable("x")


def test_load_sweep(written):
    r = ephemera.load(written / "sweep")
    assert r.kind == "sweep" and set(r.table) >= {"cell", "figure", "value"}
    scores = r.to_rliable()
    assert len(scores) == r.runs.cell.nunique() and all(v.shape == (3, 1) for v in scores.values())
    cell, first = next(iter(scores.items()))
    np.testing.assert_array_equal(first[:, 0], r.runs[r.runs.cell == cell].learned_ratio)
    # κ as the task: the values that all learners share.
    both = r.runs.groupby("learner.kappa")["learner.algorithm"].nunique() == 2
    scores = r.to_rliable("learning_reward", task="learner.kappa")
    assert set(scores) == {"paper", "lspe"} and both.any()


def test_saved_next_to_files_of_somebody_else(tmp_path):
    (tmp_path / "summary.csv").write_text("mine")
    ephemera.compare(["whittle"], steps=20, seeds=2).save(tmp_path)
    assert (tmp_path / "summary.csv").read_text() == "mine"


@pytest.mark.parametrize("other", ["train", "bench", "sweep"])
def test_saved_in_a_directory_of_a_command(written, tmp_path, other):
    """None of its results stays there, which would be read with the new ones."""
    table = ephemera.compare(["whittle"], steps=20, seeds=2)
    shutil.copytree(written / other, tmp_path / "shared")
    for name in ("alone", "shared"):
        table.save(tmp_path / name)
    alone, shared = ({f.name for f in (tmp_path / name).iterdir()} for name in ("alone", "shared"))
    assert shared - alone <= {"config.toml", "state.json", "timing.json"}
    r = ephemera.load(tmp_path / "shared")
    assert r.kind == "bench" and r.config == {} and list(r.table.index) == ["whittle"]


@pytest.mark.parametrize("names", [["NA", "None", "nan", "b"], ["never", "a,never,b", "NaN", "inf"], ["007", "1"]])
def test_names_stay_as_they_are(command, tmp_path, names):
    """Also those that pandas takes for missing figures or for numbers, and those that Go writes for a figure."""
    instance = ephemera.Instance([ephemera.Source(name, 1, 0.5, 1) for name in names])
    (tmp_path / "na.toml").write_text(instance.toml())
    command("train", "-instance", tmp_path / "na.toml", "-steps", 50, "-out", tmp_path / "out")
    learned = ephemera.load(tmp_path / "out").learned
    assert list(learned["source"]) == names and learned.select_dtypes("number").shape[1] >= 6
    ephemera.compare(dict.fromkeys(names, "whittle"), steps=5, seeds=1).save(tmp_path / "compared")
    assert list(ephemera.load(tmp_path / "compared").runs["policy"]) == names


def test_a_threshold_that_is_never_reached_is_infinite(command, tmp_path):
    """Of a source whose crawl costs more than the budget."""
    sources = [ephemera.Source("a", 1, 0.5, 1), ephemera.Source("dear", 1, 0.5, 1, cost=9)]
    (tmp_path / "dear.toml").write_text(ephemera.Instance(sources).toml())
    command("train", "-instance", tmp_path / "dear.toml", "-steps", 50, "-out", tmp_path / "out")
    ages = ephemera.load(tmp_path / "out").learned["exact age"]
    assert ages.dtype == float and ages[0] < 50 and ages[1] == np.inf


def test_odd_names_in_tables():
    """A mark that turns the direction of writing is written out; a name is no markup, and no column more."""
    odd = "a\u202eb|<i>"
    source = ephemera.Source("x\u202ey", 1, 0.5, 1)
    table = ephemera.compare({odd: lambda view: view.age * 1.0}, ephemera.Instance([source], id=odd), steps=5, seeds=1)
    rows = [["policy", "x"]], [[odd, "1"]], odd
    for text in (
        table._repr_html_(), table.to_latex(), str(table), repr(ephemera.Instance([source], id=odd)),
        *(form(*rows[0], *rows[1:]) for form in (document.text, document.markdown, document.table)),
    ):  # fmt: skip
        assert "\u202e" not in text and "\\u202e" in text.replace("\\textbackslash{}", "\\")
    assert document.markdown(*rows[0], *rows[1:]).splitlines()[2] == r"| a\u202eb\|\<i> | 1 |"


def test_rliable_takes_the_scores(written):
    """Its means are the table's, and its intervals hold them."""
    rly = pytest.importorskip("rliable.library")
    metrics = pytest.importorskip("rliable.metrics")
    r = ephemera.load(written / "bench")

    def means(scores):
        return np.array([metrics.aggregate_mean(scores), metrics.aggregate_iqm(scores)])

    point, interval = rly.get_interval_estimates(r.to_rliable(), means, reps=200)
    for policy in r.table.index:
        assert point[policy][0] == pytest.approx(r.table.loc[policy, "of_whittle"])
        low, high = interval[policy]
        assert (low <= point[policy] + 1e-12).all() and (point[policy] <= high + 1e-12).all()
    profiles, _ = rly.create_performance_profile(r.to_rliable(), np.linspace(0, 1.5, 7), reps=50)
    assert profiles["whittle"][0] == 1 and profiles["whittle"][-1] == 0


def test_what_is_missing_is_named(tmp_path, monkeypatch, capsys):
    """Without the packages of ``ephemera[results]`` an error says how to get them."""
    table = ephemera.compare(["whittle"], steps=10, seeds=1)
    for package, call in (
        ("pandas", lambda: ephemera.load(tmp_path)),
        ("pandas", table.frame),
        ("matplotlib.pyplot", table.plot),
    ):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(ModuleNotFoundError, match=rf"{package}.*; pip install 'ephemera\[results\]' brings it"):
            call()
    assert tensorboard.main([str(tmp_path)]) == 1 and "pip install 'ephemera[results]'" in capsys.readouterr().err


def test_load_refuses(tmp_path):
    with pytest.raises(FileNotFoundError, match="neither"):
        ephemera.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="no directory"):
        ephemera.load(tmp_path / "x")


def test_damaged_files(tmp_path):
    for name, text, words in (
        ("result.json", "{", "result.json is damaged"),
        ("result.json", "{}", "no results with a policy"),
        ("result.json", "[1]", "no results with a policy"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(ValueError, match=words):
            ephemera.load(tmp_path)
    os.mkfifo(tmp_path / "summary.json")
    with pytest.raises(ValueError, match="no regular file"):
        ephemera.load(tmp_path)


def test_names_lead_nowhere(tmp_path):
    results = tmp_path / "results"
    c = ephemera.compare({"../../../escaped": "whittle", "..": "greedy"}, steps=50, seeds=1)
    c.save(results)
    assert tensorboard.main([str(results), "--out", str(tmp_path / "events")]) == 0
    assert {p.name for p in tmp_path.iterdir()} == {"results", "events"}


@pytest.mark.parametrize("kind,runs", [("train", 1), ("bench", 9), ("sweep", 48)])
def test_tensorboard(written, tmp_path, capsys, kind, runs):
    """The event files are read back by TensorBoard itself."""
    pytest.importorskip("tensorboardX")
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    out = tmp_path / "events"
    assert tensorboard.main([str(written / kind), "--out", str(out)]) == 0
    assert capsys.readouterr().out.startswith(f"{runs} run{'s' * (runs > 1)} in ")
    found = sorted({p.parent for p in out.rglob("events.out.tfevents.*")})
    assert len(found) == runs
    r = ephemera.load(written / kind)
    events = reader.EventAccumulator(str(found[0]), size_guidance={"scalars": 0}).Reload()
    points = [(e.step, e.value) for e in events.Scalars("reward")]
    name = found[0].relative_to(out).as_posix()
    if kind == "train":
        rows = r.curves.rename(columns={"epoch": "epochs"})
    elif kind == "bench":
        policy, _, seed = name.split("/")
        rows = r.runs[(r.runs.policy == policy) & (r.runs.seed == int(seed[5:]))]
    else:
        cell, seed = name.rsplit("/", 1)
        rows = r.curves[(r.curves.cell == cell) & (r.curves.seed == int(seed[5:]))].rename(columns={"epoch": "epochs"})
    assert points == [(e, pytest.approx(v, rel=1e-6)) for e, v in zip(rows.epochs, rows.reward, strict=True)]
    assert tensorboard.main([str(written / kind), "--out", str(out)]) == 2


def test_tensorboard_refuses(tmp_path, capsys):
    assert tensorboard.main([str(tmp_path)]) == 1
    assert "neither result.json nor summary.json" in capsys.readouterr().err
    assert tensorboard.main([str(tmp_path), "--out", str(tmp_path)]) == 2  # it was called wrongly
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "there already; name another directory with --out" in said


def test_what_a_console_shows(tmp_path):
    """A table, not all that is behind it."""
    found = ephemera.compare(["whittle", "round-robin"], steps=50, seeds=2)
    assert repr(found) == str(found) and "% of Whittle" in repr(found)
    played = ephemera.benchmark("round-robin", tasks=["TableI-v1"], seeds=2, steps=50)
    assert repr(played) == str(played)
    found.save(tmp_path)
    said = repr(ephemera.load(tmp_path))
    assert said.startswith(f"bench in {tmp_path}\n") and "whittle" in said and len(said) < 2000


def test_two_write_one_file(tmp_path, monkeypatch):
    """Containers number their processes alike: here two of one number write the same file in a directory they share."""
    monkeypatch.setattr(os, "getpid", lambda: 1)
    failed = []

    def write():
        try:
            for _ in range(100):
                document.put(tmp_path / "run.json", "1" * 100_000)
        except OSError as e:
            failed.append(e)

    both = [threading.Thread(target=write) for _ in range(2)]
    for t in both:
        t.start()
    for t in both:
        t.join()
    assert not failed and [f.name for f in tmp_path.iterdir()] == ["run.json"]
