"""The leaderboard of benchmark/: its page is what the file says, and the file what one command makes."""

import gzip
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ephemera

ROOM = Path(__file__).parents[1] / "benchmark"


@pytest.fixture
def make():
    if not (ROOM / "make.py").exists():
        pytest.skip("a source distribution has no leaderboard")
    spec = importlib.util.spec_from_file_location("make", ROOM / "make.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["make"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["make"]


def test_the_page_is_what_the_file_says(make):
    """Nothing is entered by hand, and rows of others are in the file as they were sent."""
    found = json.loads(make.FILE.read_text("utf-8"))
    text = (ROOM / "README.md").read_text("utf-8")
    assert make.page(text, found) == text
    assert make.added(found["rows"]) == found["rows"]
    played = {(track, name) for track, names in make.POLICIES.items() for name in names}
    assert played <= {(r["track"], r["policy"]) for r in found["rows"]}
    for r in found["rows"]:
        if (r["track"], r["policy"]) in played:  # others may leave out commit and recordings
            assert r["version"] == ephemera.__version__, r["policy"]
            assert r["commit"] and "changed" not in r["commit"], r["policy"]
            assert ("recordings" in r) == (r["track"] in make.RECORDED), r["policy"]


@pytest.mark.parametrize("name", ["neurwin", "deeptop"])
def test_the_page_of_agents_has_the_curves_of_trainings(make, name):
    """What was earned along a training stands in a table."""
    page = (ROOM.parent / "peers" / "README.md").read_text("utf-8")
    (curve,) = json.loads((ROOM / "rows" / f"{name}.json").read_text("utf-8"))["curve"].values()
    epochs = "| epochs | " + " | ".join(f"{epoch:,}" for epoch, _ in curve) + " |\n"
    shares = "| % of exact Whittle | " + " | ".join(f"{100 * share:.1f}" for _, share in curve) + " |\n"
    assert epochs + "|---|" + "--:|" * len(curve) + "\n" + shares in page


def test_rows_of_others(make, tmp_path, monkeypatch, capsys):
    """What the benchmark prints and the epochs of a training are a row; for a wrong one nothing is written."""
    for file in (make.FILE, ROOM / "README.md"):
        shutil.copy(file, tmp_path)
    shutil.copytree(ROOM / "rows", tmp_path / "rows")
    monkeypatch.setattr(make, "HERE", tmp_path)
    monkeypatch.setattr(make, "FILE", tmp_path / "leaderboard.json")
    monkeypatch.setattr(sys, "argv", ["make.py", "--table"])
    before = [(tmp_path / name).read_text("utf-8") for name in ("leaderboard.json", "README.md")]

    def made():
        code = make.main()
        return (
            code,
            capsys.readouterr().err,
            [(tmp_path / n).read_text("utf-8") for n in ("leaderboard.json", "README.md")],
        )

    assert made() == (0, "", before)
    row = ephemera.benchmark(make.in_turn, "harvest", tasks=["Spare20-v2"], seeds=make.SEEDS, name="mine").row
    row["mean"]["share"] = 0.77
    file = tmp_path / "rows" / "mine.json"
    for wrong, words in (
        (row, "mine.json lacks training_epochs; needed are the epochs"),
        (row | {"training_epochs": 0, "seeds": 3}, "has 3 seeds and 300 epochs; needed are 5 seeds"),
        (row | {"training_epochs": 0, "track": "all"}, "has the track all"),
        ({k: v for k, v in row.items() if k != "mean"}, "mine.json lacks mean"),
    ):
        file.write_text(json.dumps(wrong))
        code, said, found = made()
        assert code == 2 and words in said and found == before
    file.write_text(json.dumps(row | {"training_epochs": 1234567}))
    code, _, (rows, page) = made()
    assert code == 0 and "| mine | – | " in page and "| 77.0 (" in page and "| 1,234,567 |" in page
    assert json.loads(rows)["rows"] != json.loads(before[0])["rows"]
    file.unlink()
    assert made() == (0, "", before)


def test_made_again_after_interruptions(make, tmp_path, monkeypatch, capsys):
    """Ended twice, the command makes the same bytes as at one go, on another number of processes."""
    rows = [f"{'abcdefgh'[k % 7]},{1_500_000_000 + 900 * k},{1 + k % 7}" for k in range(4000)]
    for name in ("hn", "fbmedia2016"):
        file = tmp_path / f"trace_{name}.csv.gz"
        file.write_bytes(gzip.compress("\n".join(["source,published_unix,utility", *rows]).encode()))
    monkeypatch.setattr(make, "POLICIES", {"harvest": ["salmut", "wiql"], "age": ["round-robin"]})
    for task in ephemera.EPOCHS:
        monkeypatch.setitem(ephemera.EPOCHS, task, 30)
    monkeypatch.setattr(make, "sent", lambda file: json.loads(file.read_text("utf-8")))  # of other epochs
    play, asked = ephemera.benchmark, []

    def ended(*policy, **how):
        asked.append(policy)
        if len(asked) in (2, 6):
            raise KeyboardInterrupt
        return play(*policy, **how)

    def made(out, processes, kept, *more):
        command = ["make.py", "--trace", tmp_path, "--kept", tmp_path / kept, "--out", tmp_path / out]
        monkeypatch.setattr(sys, "argv", [str(x) for x in [*command, "--processes", processes, *more]])
        return make.main()

    monkeypatch.setattr(ephemera, "benchmark", ended)
    assert made("a.json", 1, "a") == made("a.json", 1, "a") == 130 and not (tmp_path / "a.json").exists()
    assert "the same command goes on with" in capsys.readouterr().err
    before = {f: f.stat().st_mtime_ns for f in (tmp_path / "a").rglob("runs/*.json")}
    assert made("a.json", 1, "a") == 0
    assert before and all(f.stat().st_mtime_ns == at for f, at in before.items())
    monkeypatch.setattr(ephemera, "benchmark", play)
    assert made("b.json", 2, "b") == 0
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    monkeypatch.setattr(ephemera, "benchmark", ended)
    monkeypatch.setattr(make, "same", lambda row: True)  # also in a tree with changes
    first, asked[:] = (tmp_path / "b.json").read_bytes(), [()] * 9
    assert made("b.json", 1, "c") == 0 and (tmp_path / "b.json").read_bytes() == first
    assert asked == [()] * 9  # all rows were fresh
    assert made("b.json", 1, "b", "--again", "wiql") == 0 and (tmp_path / "b.json").read_bytes() == first
    assert {kind for kind, _ in asked[9:]} == {make.PYTHON["wiql"]}
    runs = [len(list((tmp_path / kept).rglob("runs/*.json"))) for kept in "ab"]
    assert runs[0] == runs[1] > len(before)  # none was played twice
    found = json.loads((tmp_path / "a.json").read_text())
    assert {r["policy"] for r in found["rows"]} >= {"salmut", "wiql", "round-robin"}
    of = next(r for r in found["rows"] if r["policy"] == "wiql")["recordings"]
    assert list(of) == list(found["recordings"]) == make.RECORDINGS
    for t, most in found["recordings"].items():  # with foresight, with a view of what waits, and by learning
        bound, sees, again = most.values()
        assert bound + 1e-9 > sees > max(again, of[t]["share"])
    (tmp_path / "trace_hn.csv.gz").unlink()
    assert made("c.json", 1, "a") == 2 and not (tmp_path / "c.json").exists()
    assert "which has no trace_hn.csv.gz; needed is the directory of the recordings" in capsys.readouterr().err


def test_a_row_is_stale_when_its_own_code_has_changed(make, tmp_path, monkeypatch):
    """A commit to a learner makes its rows stale, one to a world those of all where it shows, one to a test none."""
    git = shutil.which("git")
    if git is None:
        pytest.skip("no Git")
    monkeypatch.setattr(make, "HERE", tmp_path / "python" / "benchmark")

    def change(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    def commit(path, text):
        change(path, text)
        who = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-C", tmp_path]
        for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
            subprocess.run([git, *who, *command], check=True)

    def stale():
        return {name for name, row in played.items() if not make.fresh(row)}

    commit("env/a.go", "1")
    commit("learner/lspe/a.go", "1")
    names = ["lspe", "forecast", "whittle", "wiql"]
    of = {"track": "state", "tasks": ["Quiet50-v2"], "epochs": make.SEEDS * ephemera.EPOCHS["Quiet50-v2"]}
    played = {name: of | {"policy": name, "seeds": make.SEEDS, "commit": make.commit(name)} for name in names}
    assert played["lspe"]["commit"] != played["whittle"]["commit"] and not stale()
    commit("README.md", "of another room")
    commit("env/a_test.go", "2")
    assert not stale()
    change("learner/lspe/a.go", "2")  # not yet committed
    assert stale() == {"lspe"} and make.commit("lspe").endswith("-changed")
    commit("learner/lspe/a.go", "2")
    assert stale() == {"lspe"}
    commit("learner/lspe/a.go", "1")  # as it was
    assert not stale()
    commit("python/peers/tabular.py", "2")
    assert stale() == {"wiql"}
    commit("env/a.go", "2")
    assert stale() == set(names)
    for name, row in played.items():
        row |= {"check": {"Quiet50-v2": 1.0 if name == "lspe" else 0.5}}
    monkeypatch.setattr(make, "short", lambda track, name: {"Quiet50-v2": 0.5})
    assert stale() == {"lspe"}  # nothing else earns what it did not before
    played["lspe"] |= {"commit": make.commit("lspe"), "seeds": make.SEEDS + 1}
    assert "lspe" in stale()
    monkeypatch.setitem(ephemera.EPOCHS, "Quiet50-v2", 20)
    assert stale() == set(names)  # the task has other epochs
    monkeypatch.delitem(ephemera.EPOCHS, "Quiet50-v2")
    assert stale() == set(names)  # there is no such task any more


@pytest.mark.parametrize(
    ("name", "package"), [("lspe", "learner/lspe"), ("forecast", "learner/forecast"), ("salmut", "baselines")]
)
def test_a_row_names_all_code_that_it_depends_on(make, name, package):
    """What the package of a policy is built from makes its row stale."""
    go, root = shutil.which("go"), ROOM.parents[1]
    if go is None or not (root / "go.mod").exists():
        pytest.skip("no Go")
    said = subprocess.run([go, "list", "-deps", f"./{package}"], cwd=root, check=True, capture_output=True, text=True)
    deps = [d.removeprefix("ephemera/") for d in said.stdout.split() if d.startswith("ephemera/")]
    assert package in deps and "env" in deps
    for d in deps:
        assert any(d == path or d.startswith(path + "/") for path in make.code(name)), d


def test_own_rows_next_to_published_ones():
    """Own ones stand among those of their track by the mean of the tasks that they have."""
    tasks = ["Tight20-v2", "Spare20-v2"]
    mine, turn = (
        ephemera.benchmark(policy, "harvest", tasks=tasks, seeds=seeds, name=name)
        for policy, seeds, name in (("lspe", 5, "mine"), (lambda view: view.age * 1.0, 2, "turn"))
    )
    board = ephemera.leaderboard(turn, json.loads(json.dumps(mine.row)), policies=["lspe", "wiql"])
    names = [r["policy"] for r in board.rows]
    assert set(names[:2]) == {"lspe", "mine"} and names[2:] == ["wiql", "turn"] and board.tasks == tasks
    of = dict(zip(names, board._cells(), strict=True))
    lspe = next(r for r in board.rows if r["policy"] == "lspe")["tasks"]
    shown = [f"{100 * (e := lspe[t])['share']:.1f} ± {50 * (e['hi'] - e['lo']):.1f}" for t in tasks]
    assert of["lspe"] == ["lspe", *shown, f"{50 * sum(lspe[t]['share'] for t in tasks):.1f}", "5"]
    assert of["turn"][1:] == [*(f"{100 * turn.row['tasks'][t]['share']:.1f}" for t in tasks), of["turn"][3], "2"]
    assert of["mine"][3] == f"{100 * mine.row['mean']['share']:.1f}"
    latex = board.to_latex().replace(r"$\pm$", "±")
    assert latex.startswith("\\begin{tabular}{lrrrr}") and f"lspe & {shown[0]} & " in latex and "$" in board.to_latex()
    assert f"| lspe | {shown[0]} |" in board.to_markdown() and "track harvest; % of exact" in str(board)
    idle = json.loads(json.dumps(turn.row))  # of a task in which exact Whittle earned nothing
    idle["tasks"]["Spare20-v2"]["share"] = None
    assert ephemera.leaderboard(idle, policies=[])._cells() == [["turn", of["turn"][1], "–", "–", "2"]]
    state = ephemera.leaderboard(track="state", tasks=["StateDrift20-v2"])
    assert "13,000" in str(state) and "trained for" in state._repr_html_()
    (recorded,) = ephemera.leaderboard(track="harvest", policies=["lspe"], tasks=["Recording-hn-v2"])._cells()
    assert recorded[0] == "lspe" and float(recorded[1]) > 50 and recorded[1] == recorded[2]
    short = ephemera.benchmark("lspe", tasks=tasks, seeds=1, steps=50)
    recorded = short.row | {"tasks": short.row["tasks"] | {"Recording-hn-v2": short.row["tasks"]["Tight20-v2"]}}
    for how, words in (
        (lambda: ephemera.leaderboard(), "track is None; allowed is one of parameters"),
        (
            lambda: ephemera.leaderboard(track="harvest", policies="lspe"),
            "policies is 'lspe'; needed is a list of names",
        ),
        (lambda: ephemera.leaderboard(track="harvest", tasks="Tight20-v2"), "tasks is 'Tight20-v2'; needed is a list"),
        (lambda: ephemera.leaderboard(mine, track="age"), "mine is of track harvest; allowed is 'age'"),
        (lambda: ephemera.leaderboard(short), "lspe was played for 100 epochs in all; needed are 260"),
        (lambda: ephemera.leaderboard(recorded), "lspe was played with steps=50; needed is a row without"),
        (lambda: ephemera.leaderboard(mine, policies=["forecast"]), "no published row of forecast; there are lspe"),
        (lambda: ephemera.leaderboard(mine, tasks=["StateDrift20-v2"]), "no row has StateDrift20-v2; there are Tight"),
    ):
        with pytest.raises(ValueError, match=words):
            how()
