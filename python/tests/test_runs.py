"""Runs and comparisons, of policies in Go and in Python."""

import inspect
import os
import re
import signal
import subprocess
import sys
import time

import gymnasium
import numpy as np
import pytest

import ephemera

LEARNER = next(e.name for e in ephemera.catalogue() if e.learns)
ONLINE = {"knowledge": "online"}


class RoundRobin:
    """An agent that counts what it observes."""

    def __init__(self):
        self.runs, self.updates, self.items, self.reward = 0, 0, 0, 0.0

    def begin(self, info):
        self.runs += 1
        self.names = info["names"]

    def select(self, view):
        return view.age.astype(float)

    def update(self, crawls, view):
        self.updates += 1
        self.reward += crawls.interest.sum()
        if crawls.items is not None:
            for (ages, interests), total in zip(crawls.items, crawls.interest, strict=True):
                assert ages.shape == interests.shape and np.isclose(interests.sum(), total)
            self.items += sum(len(a) for a, _ in crawls.items)


@pytest.mark.parametrize("knowledge,world", [("model", "mean"), ("observed", "poisson"), ("online", "poisson")])
def test_agent_in_the_go_loop(knowledge, world):
    keywords = {"steps": 300, "seed": 6, "budget": 2, "knowledge": knowledge, "world": world}
    want = ephemera.run("round-robin", **keywords)
    mine = RoundRobin()
    got = ephemera.run(mine, **keywords)
    assert got.outcome.reward == pytest.approx(want.outcome.reward, rel=1e-12)
    assert np.allclose(got.curve, want.curve, rtol=1e-12) and got.outcome.crawls == want.outcome.crawls
    assert mine.runs == 1 and mine.updates == 300 and len(mine.names) == 4
    assert mine.reward / 300 == pytest.approx(got.outcome.reward)
    assert (mine.items > 0) == (knowledge == "online")


def test_ways_to_choose():
    """Scores, marks, numbers and one number mean the same."""

    def show(view):
        assert view.age.dtype == np.int64 and view.mean.dtype == np.float64 and view.state is None
        return view.mean

    rewards = {
        ephemera.run(f, steps=200, world="mean").outcome.reward
        for f in (
            show,
            lambda v: v.mean == v.mean.max() if (v.mean == v.mean.max()).sum() == 1 else [int(v.mean.argmax())],
            lambda v: [int(v.mean.argmax())],
            lambda v: v.mean.argmax(),
        )
    }
    assert len(rewards) == 1
    assert ephemera.run(lambda v: [], steps=10).outcome.reward == 0


def test_infinite_scores():
    """A method by upper confidence bounds gives inf to what it never tried, and −inf to what is not to be crawled."""

    def crawled(scores):
        seen = []

        class Policy:
            def select(self, view):
                return np.array(scores)

            def update(self, crawls, view):
                seen.append(sorted(crawls.source.tolist()))

        ephemera.run(Policy, "paper", 1, budget=2)
        return seen[0]

    inf = np.inf
    for scores, want in (
        ([1, 2, inf, 3], [2, 3]), ([1e308, inf, 1e307, inf], [1, 3]), ([inf] * 4, [0, 1]), ([-inf, 1, -inf, -inf], [1]),
        ([-inf] * 4, []), ([inf, -inf, -inf, -inf], [0]),
    ):  # fmt: skip
        assert crawled(scores) == want, f"crawled of {scores}"


def test_outcome_has_all_figures():
    """Each figure that the Go code adds up has its words, and is an attribute."""
    run = ephemera.run("whittle", steps=200, budget=2)
    figures = ephemera.figures()
    assert list(figures)[:2] == ["reward", "crawls"] and all(figures.values())
    assert list(vars(run.outcome)) == ["epochs", *figures]
    kept = ephemera.compare(["whittle"], steps=200, budget=2, seeds=1, seed=1).runs[0]
    assert vars(run.outcome) == {k: kept[k] for k in ("epochs", *figures)} and run.outcome.cost == kept["cost"] > 1
    again, shorter = (ephemera.run("whittle", steps=n, budget=2).outcome for n in (200, 9))
    assert run.outcome == again != shorter
    assert repr(run.outcome).startswith("Outcome(epochs=200, reward=")
    with pytest.raises(AttributeError, match="cannot be set"):
        run.outcome.reward = 1.0


def test_learner_by_name():
    run = ephemera.run((LEARNER, {"kappa": np.float32(2)}), steps=2000, evaluation=500, **ONLINE)
    assert run.learned.epochs == 500 and run.outcome.epochs == 2000
    spans = np.diff(run.curve[:, 0], prepend=0)
    assert run.curve.shape[1] == 3 and run.curve[-1, 0] == 2000
    assert run.curve[:, 1] @ spans / 2000 == pytest.approx(run.outcome.reward)
    assert ephemera.run("whittle", steps=10).learned is None


def test_compare_is_bench(command):
    """The table is that of `bench`, to the last digit, the own agent among the rows."""
    names = ["whittle", "greedy", "round-robin"]
    c = ephemera.compare([*names, RoundRobin], steps=500, seeds=4, seed=3)
    report = command(
        "bench", "-world", "poisson", "-policies", ",".join(names), "-steps", 500, "-seeds", 4, "-seed", 3,
        "-format", "json",
    )  # fmt: skip
    for row in report["results"]:
        assert c[row["policy"]] == row
    assert c.report["bound"] == report["bound"]
    mine = {**c["RoundRobin"], "policy": "round-robin"}
    assert mine == c["round-robin"]
    assert len(c.runs) == 16 and "RoundRobin" in str(c)


def test_each_plays_at_its_own_first_level(command):
    """Where no level of knowledge is named, as on the command line."""
    for entry in ephemera.catalogue():
        if entry.name not in ("optimum", "stochastic", "stochastic-learned", "whittle-believed", "whittle-packed"):
            try:
                run = ephemera.run(entry.name, steps=20, evaluation=10)
            except ephemera.Error as e:
                assert "it is for pages, in world pages" in str(e)
                run = ephemera.run(entry.name, "pages:20", world="pages", steps=20, evaluation=10)
            assert run.outcome.epochs == 20
    names = ["lspe", "whittle", "forecast", "greedy", "nutch"]
    c = ephemera.compare([*names, RoundRobin], steps=300, seeds=3, seed=1)
    report = command("bench", "-policies", ",".join(names), "-steps", 300, "-seeds", 3, "-format", "json")
    assert len(report["results"]) == 7 and len(list(c)) == 8
    for row in report["results"]:
        assert c[row["policy"]] == row
    assert c.report["algorithm"] == "lspe+forecast" and c.report["knowledge"] == "online+model"
    assert ephemera.compare(["whittle", "greedy"], steps=10, seeds=1).report["knowledge"] == "model"
    with pytest.raises(ephemera.Error, match="it works with knowledge online and observed only"):
        ephemera.run("lspe", steps=10, knowledge="model")


@pytest.mark.parametrize("task", ["Lognormal10-v1", "Drift-v1", "Mixed20-v1", "TableIMean-v1", "Observed-v1"])
def test_one_account_for_all_rows(task, tmp_path):
    """An own policy has the figures of the same policy of the catalogue, also where worlds differ and change."""
    pytest.importorskip("pandas")
    world = ephemera.task(task)
    steps = 2500 if task == "Drift-v1" else 300  # the world changes twice
    c = ephemera.compare(["whittle", "round-robin", RoundRobin, lambda v: v.age * 1.0], steps=steps, seeds=3, **world)
    own = {"RoundRobin": "round-robin", "<lambda>": "round-robin"}

    def same(row):
        policy, _, part = row["policy"].partition("/")
        figures = {k: pytest.approx(v, rel=1e-9) for k, v in row.items() if isinstance(v, (int, float))}
        return {**row, **figures, "policy": own.get(policy, policy) + f"/{part}" * (part != "")}

    for rows in (list(c), c.runs, c.curves):
        of = {name: [r for r in rows if r["policy"].split("/")[0] == name] for name in ("round-robin", *own)}
        for name in own:
            assert len(of[name]) == len(of["round-robin"]) > 0
            assert [same(r) for r in of[name]] == of["round-robin"]
    assert len(list(c)) == (8 if task == "Drift-v1" else 4)
    assert all(r["whittle"] > 0 and r["of_whittle"] == r["reward"] / r["whittle"] for r in [*c.runs, *c.curves])
    c.save(tmp_path)
    scores, kept = c.to_rliable(), ephemera.load(tmp_path).to_rliable()
    assert scores.keys() == kept.keys() == {r["policy"] for r in c}
    for name, values in scores.items():
        assert values.shape == kept[name].shape == (3, 1) and np.isfinite(values).all()
        np.testing.assert_allclose(values, kept[name], rtol=1e-12)
        assert (values == 1).all() == name.startswith("whittle")


def test_evaluation_of_an_own_policy():
    """What an own policy or learner earns after learning is of the epochs of the evaluation."""
    how = {"steps": 400, "evaluation": 150, "seed": 5}
    own = ephemera.run(Best, **how)
    assert (own.outcome.epochs, own.learned.epochs) == (400, 150)
    longer = ephemera.run(Best, steps=400, seed=5)
    assert longer.learned.epochs == 400 and longer.outcome == own.outcome


def test_what_an_agent_is_given():
    """At the beginning of a run it is given the world of its seed, and not when that changes."""
    begun = []

    class Asks:
        def begin(self, info):
            begun.append(info)

        def select(self, view):
            return view.age * 1.0

    ephemera.compare([Asks], steps=50, seeds=2, seed=1, instance="mixed:6:*", knowledge="online")
    assert [b["seed"] for b in begun] == [1, 2] and [b["costs"] for b in begun] == [
        list(ephemera.CrawlEnv(f"mixed:6:{seed}").costs) for seed in (1, 2)
    ]
    terms = {"names", "costs", "budget", "start", "length", "importance", "objective"}
    assert begun[0].keys() == terms | {"epochs", "seed", "knowledge"}
    assert begun[0]["epochs"] == 50 and begun[0]["knowledge"] == "online"


def test_report_of_what_was_saved(command, tmp_path):
    """The command `report` makes the page of a comparison of Python as of one of `bench`."""
    for name, policies, seeds in (("one", ["whittle", LEARNER, Best], 1), ("own", {"mine": RoundRobin}, 3)):
        ephemera.compare(policies, steps=300, seeds=seeds, seed=5).save(tmp_path / name)
        command("report", tmp_path / name)
        page = (tmp_path / name / "report.html").read_text()
        assert "round-robin" not in page and ("mine" if name == "own" else "Best") in page


def test_compare_learner_and_names():
    policies = {"a": LEARNER, "b": (LEARNER, {"kappa": 1.0}), "mine": lambda v: v.age * 1.0}
    c = ephemera.compare(policies, steps=300, seeds=2, workers=1, **ONLINE)
    assert {r["policy"] for r in c} == {"a/learning", "a/learned", "b/learning", "b/learned", "mine"}
    assert (
        c["a/learning"]["reward"]
        == ephemera.compare([LEARNER], steps=300, seeds=2, **ONLINE)[f"{LEARNER}/learning"]["reward"]
    )
    assert c["a/learning"]["reward"] != c["b/learning"]["reward"]
    with pytest.raises(KeyError):
        c["nobody"]


class Best:
    """An agent that learns the source that brought most, and says so."""

    def __init__(self):
        self.most = np.zeros(4)

    def begin(self, info):
        assert info["seed"] in (5, 6) and info["names"] == ["1", "2", "3", "4"] and (self.most == 0).all()

    def select(self, view):
        return [view.epoch % 4] if view.epoch < 40 else [int(self.most.argmax())]

    def update(self, crawls, view):
        self.most[crawls.source] += crawls.interest

    def frozen(self):
        return lambda view: [int(self.most.argmax())]


def test_one_agent_per_seed():
    """What is learned under a seed does not leak into the next, and has a row of its own."""
    c = ephemera.compare({"best": Best}, steps=300, seeds=2, seed=5)
    assert {r["policy"] for r in c} == {"best/learning", "best/learned"}
    for seed in (5, 6):
        alone = ephemera.run(Best(), steps=300, seed=seed)
        (learning,) = (r["reward"] for r in c.runs if r["seed"] == seed and r["policy"] == "best/learning")
        assert alone.outcome.reward == learning != alone.learned.reward
    with pytest.raises(ValueError, match="carry what it learned from run to run"):
        ephemera.compare([Best()], steps=300, seeds=2)


def test_kept_and_scored(tmp_path):
    pytest.importorskip("pandas")
    c = ephemera.compare(["whittle", LEARNER, lambda v: v.age * 1.0], steps=300, seeds=3, **ONLINE)
    c.save(tmp_path)
    again = ephemera.load(tmp_path)
    assert again.report == c.report and len(again.runs) == len(c.runs) == 12
    ends = {r["policy"]: r["epoch"] for r in c.curves}
    assert set(ends.values()) == {300} and len(again.curves) == len(c.curves)
    scores, kept = c.to_rliable(), again.to_rliable()
    assert scores.keys() == kept.keys() and all(np.allclose(scores[k], kept[k]) for k in scores)


def test_policy_of_what_environments_show():
    """It earns in a table what it earns in its environment."""
    for form in ({"action": "one"}, {"action": "set", "observation": "dict"}, {"scaled": False}):

        def act(seen, form=form):
            age = seen["age"] if isinstance(seen, dict) else seen[4:8]
            return {"one": age.argmax(), "set": age == age.max()}.get(form.get("action"), age)

        got = ephemera.run(ephemera.gym_policy(act, **form), steps=200, world="mean", budget=1)
        assert got.outcome.reward == pytest.approx(ephemera.run("round-robin", steps=200, world="mean").outcome.reward)


def test_without_noise():
    c = ephemera.compare(["whittle", "greedy"], steps=100, seeds=6, world="mean")
    assert c["whittle"]["lo"] is None and "all runs the same" in str(c)


class Trouble(Exception):
    """A policy's own."""


def test_errors_come_back():
    def fails(view):
        if view.epoch == 7:
            raise Trouble("at 7")
        return [0]

    for call in (ephemera.run, lambda p, **k: ephemera.compare([p], seeds=2, **k)):
        with pytest.raises(Trouble, match="at 7"):
            call(fails, steps=1000)
    for wrong, error, words in [
        (lambda v: [9], ValueError, "source 9; allowed are 0 to 3"),
        (lambda v: [1, 1], ValueError, r"source 1 twice; allowed are 0 to 3, each once(\n|$)"),
        (lambda v: v.age, ValueError, "source 1 twice.* 4 integers are taken for source numbers; scores are floats"),
        (lambda v: [0, 1], ephemera.Error, "the budget"),
        (lambda v: [0.5], ValueError, "the policy returned shape"),
        (lambda v: "a", ValueError, "the policy returned a str; allowed are source numbers"),
        (lambda v: {0: 1.0}, ValueError, "the policy returned a dict; allowed are source numbers"),
        (lambda v: None, ValueError, "the policy returned None; allowed are source numbers"),
        (lambda v: [[1], [1, 2]], ValueError, "returned has parts of unequal length; needed is source numbers"),
        (lambda v: np.full(4, np.nan), ValueError, "source 0 is NaN; allowed are numbers, inf, which is crawled first"),
    ]:
        with pytest.raises(error, match=words):
            ephemera.run(wrong, steps=10)
    for call, words in [
        (lambda: ephemera.run("nobody"), "unknown"),
        (lambda: ephemera.run("miniflux", knowledge="model"), "knowledge online"),
        (lambda: ephemera.run("whittle", steps=None), "steps is None, .* this world does not end; needed is a number"),
        (lambda: ephemera.run("whittle", steps=0), "steps is 0; allowed is 1 or more$"),
        (lambda: ephemera.run("whittle", seed=-1), "seed is -1; allowed are 0"),
        (lambda: ephemera.compare([]), "needed is one at least"),
        (lambda: ephemera.compare("whittle"), "policies is 'whittle'; needed is a list of policies"),
        (lambda: ephemera.compare(lambda v: v.age), "policies is <function.*; needed is a list of policies"),
        (lambda: ephemera.compare(["whittle", "whittle"]), "with a name of its own"),
        (lambda: ephemera.run(("whittle", {"kappa": 1})), 'no setting "kappa"'),
    ]:
        with pytest.raises(ValueError, match=words):
            call()
    for p in ("whittle", lambda v: v.age):
        with pytest.raises(ValueError, match="allowed are 1 to 100000"):
            ephemera.compare([p], seeds=10**12)
    for how, words in (
        ({"steps": 1e4}, "steps is 10000.0; needed is a whole number"),
        ({"seeds": 2.0}, "seeds is 2.0; needed is a whole number"),
        ({"seed": 1.0}, "seed is 1.0; needed is a whole number"),
    ):
        with pytest.raises(TypeError, match=words):
            ephemera.compare(["whittle"], **how)
    for wrong in (3, (LEARNER, {}, 3)):
        with pytest.raises(TypeError, match="is no policy"):
            ephemera.run(wrong)

    class Misspelt:
        def selekt(self, view): ...

    with pytest.raises(TypeError, match="Misspelt has no method select; needed is one, or a function of a view"):
        ephemera.run(Misspelt)

    class Steep:
        def __init__(self, slope): ...

        def select(self, view): ...

    with pytest.raises(TypeError, match=r"Steep is a class .*'slope'.*; needed is one without, or lambda: Steep"):
        ephemera.run(Steep)
    with pytest.raises(ValueError, match="a number is NaN"):
        ephemera.run((LEARNER, {"kappa": float("nan")}))


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of Unix")
@pytest.mark.parametrize("policy", ["'whittle'", "lambda v: [0]"])
def test_interrupt(policy):
    """Ctrl-C ends a long run within a second, and the library goes on working."""
    code = f"""
import ephemera, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has what runs in the background ignore the signal
try:
    print("go", flush=True)
    ephemera.run({policy}, steps=10**10)
except KeyboardInterrupt:
    assert ephemera.run("whittle", steps=10).outcome.epochs == 10
    print("interrupted", flush=True)
"""
    p = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert p.stdout.readline() == "go\n"
        time.sleep(0.5)
        os.kill(p.pid, signal.SIGINT)
        out, _ = p.communicate(timeout=120)
    finally:
        p.kill()
    assert out == "interrupted\n" and p.returncode == 0


PLAYED = ["whittle", "lspe", "salmut", "q-whittle", "round-robin", "greedy", "certainty"]


@pytest.fixture(scope="module")
def played():
    return ephemera.compare(PLAYED, steps=1000, seeds=5, knowledge="online")


def test_tables_of_a_comparison(played):
    latex = played.to_latex()
    assert latex.startswith("\\begin{tabular}{lrrrrr}\n\\toprule\n") and "95 \\% interval" in latex
    rows = latex.split("\\midrule\n")[1].split("\\bottomrule")[0].splitlines()
    assert [r.split(" & ")[0] for r in rows] == [r["policy"] for r in played]
    whittle = played["whittle"]
    lo, hi = whittle["lo"], whittle["hi"]
    assert f"whittle & {whittle['reward']:.1f} & {lo:.1f} to {hi:.1f} & 100.0 & -- & 1.000 " in latex
    assert "Left out" in str(played) and "frame() has them" in str(played) and "worst" in played.frame()
    many = ephemera.compare(["round-robin"], "lognormal:500", steps=20, seeds=1, budget=100)
    assert f"round-robin & {many['round-robin']['reward']:.0f} &" in many.to_latex()
    cells = [r.split(" & ") for r in rows]
    assert {len(c[k].split()[0].partition(".")[2]) for c in cells for k in (1, 2)} == {1}
    assert {len(c[5].split()[0].partition(".")[2]) for c in cells} == {3}
    costs = ephemera.compare(["whittle", "round-robin"], steps=50, seeds=1, objective="delay")
    assert f"round-robin & $-${-costs['round-robin']['reward']:.1f} & --" in costs.to_latex()
    odd = ephemera.compare({"a_b & <50 %>": "round-robin"}, steps=10, seeds=1)
    assert r"a\_b \& \textless{}50 \%\textgreater{}" in odd.to_latex()
    assert "<td>a_b &amp; &lt;50 %&gt;</td>" in odd._repr_html_()
    bars = ephemera.compare({"[ours]": "round-robin", "*ours|": "whittle"}, steps=10, seeds=1).to_latex()
    assert "\n{[}ours] & " in bars and "\n{*}ours\\textbar{} & " in bars  # [ and * after a line's end are its options
    page = played._repr_html_()
    assert page.count("<tr>") == 1 + len(list(played)) and "5 seeds from 1099511627776" in page


def test_picture_of_a_comparison(played, tmp_path):
    """At most six curves, with names at their ends and bands, told apart in grey, one column wide."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    from matplotlib.colors import to_rgb

    pyplot.switch_backend("agg")
    figure = played.plot()
    (axes,) = figure.axes
    assert figure.get_size_inches()[0] == 3.5 and axes.get_ylim()[0] == 0
    top = max(line.get_ydata().max() for line in axes.lines if len(line.get_xdata()) > 2)
    assert axes.get_ylim()[1] == pytest.approx(1.05 * max(1, top))
    names = [t.get_text() for t in axes.texts]
    assert names == [r["policy"] for r in played if r["policy"] != "lspe/learned"][:6]  # the best, of those with curves
    places = sorted(t.get_position()[1] for t in axes.texts)
    assert min(np.diff(places)) > 0.07 and 0 <= places[0] and places[-1] <= axes.get_ylim()[1]
    assert len(axes.collections) == 6  # bands
    curves = [line for line in axes.lines if len(line.get_xdata()) > 2]
    grey = {
        (str(c._unscaled_dash_pattern), round(float(np.dot(to_rgb(c.get_color()), (0.3, 0.59, 0.11))), 1))
        for c in curves
    }
    assert len(curves) == len(grey) == 6
    of = [c for c in played.curves if c["policy"] == "round-robin" and c["epoch"] == 1000]
    (line,) = played.plot(["round-robin"]).axes[0].lines[:1]
    assert line.get_ydata()[-1] == pytest.approx(np.mean([c["of_whittle"] for c in of]))
    for form, begins in (("pdf", b"%PDF"), ("png", b"\x89PNG"), ("svg", b"<?xml")):
        figure.savefig(tmp_path / f"curves.{form}")
        assert (tmp_path / f"curves.{form}").read_bytes().startswith(begins)
    assert b"/Type3" not in (tmp_path / "curves.pdf").read_bytes()
    profile = played.profile(["whittle", "round-robin"]).axes[0]
    assert profile.get_xlim() == (0, 1) and [t.get_text() for t in profile.texts] == ["whittle", "round-robin"]
    worst = [r["of_whittle"] for r in played.runs if r["policy"] == "round-robin"]
    x, y = profile.lines[1].get_data()
    assert y[x <= min(worst)].min() == 1 and y[x > max(worst)].max() == 0
    alone = ephemera.compare(["whittle"], steps=10, seeds=1).plot().axes[0]
    assert not alone.collections  # few seeds have no interval
    with pytest.raises(ValueError, match="7 curves; allowed are 6"):
        played.plot(["lspe/learning", *[n for n in PLAYED if n != "lspe"]])
    with pytest.raises(ValueError, match="no line of 'nobody'; there are "):
        played.plot(["nobody"])
    pyplot.close("all")


def test_pictures_show_what_beats_whittle():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    table = ephemera.compare(["whittle", "greedy"], steps=300, seeds=3)
    for rows in (table.runs, table.curves):
        for r in rows:
            r["of_whittle"] *= 1.5 if r["policy"] == "greedy" else 1
    (axes,) = table.plot().axes
    assert axes.get_ylim()[1] > max(line.get_ydata().max() for line in axes.lines) > 1.2
    profile = table.profile(["greedy"]).axes[0]
    x, y = profile.lines[0].get_data()
    best = max(r["of_whittle"] for r in table.runs)
    assert profile.get_xlim()[1] == pytest.approx(best) and y[x > 1].max() == 1 and best > 1.3
    gone = table.curves[0]["epoch"]
    table.curves[0]["of_whittle"] = None  # exact Whittle earned nothing there
    (axes,) = table.plot([table.curves[0]["policy"]]).axes
    assert axes.get_ylabel() == "share of exact Whittle" and gone not in axes.lines[0].get_xdata()
    assert len(axes.lines[0].get_xdata()) > 10
    for c in table.curves:
        c["of_whittle"] = None
    assert table.plot().axes[0].get_ylabel() == "interest per epoch"
    pyplot.close("all")


@pytest.mark.filterwarnings("ignore:Attempting to set identical")  # of one epoch
def test_pictures_where_exact_whittle_earns_nothing():
    """In one epoch under one of the seeds, so that no point has a share under all."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    table = ephemera.compare(["whittle", "round-robin"], "quiet:50:*", steps=1, seeds=5, budget=5)
    (axes,) = table.plot().axes
    assert axes.get_ylabel() == "interest per epoch" and len(axes.texts) == 2
    with pytest.raises(ValueError, match="no policy has a share of exact Whittle under each seed"):
        table.profile()
    pyplot.close("all")


def test_errors_of_a_policy_say_where():
    def policy(view):
        return view.age * 1.0 if view.epoch < 3 else [0, 1]

    with pytest.raises(ValueError) as e:
        ephemera.compare([policy], steps=10, seeds=1, seed=5)
    assert e.value.__notes__ == ["policy policy, seed 5, epoch 3"]
    for nobody in ("", ("", {})):
        with pytest.raises(ValueError, match="a policy has the name ''; allowed are "):
            ephemera.run(nobody, "paper", 10)


class Knows:
    """Crawls by Whittle's index, from the parameters that it is given."""

    given: list = []  # noqa: RUF012
    world = None

    def begin(self, info):
        self.instance = info["instance"]
        self.given.append(info)

    def select(self, view):
        now = self.instance.after(view.epoch + 1)
        if view.state is not None:
            return ephemera.index(now, view.state)
        return ephemera.index_at_age(now, view.age, world=self.world)


@pytest.mark.parametrize(
    "track, task, within",
    [("parameters", "Quiet50-v2", 1e-9), ("parameters", "Hump50-v2", 1e-9), ("parameters", "Pages200-v2", 1e-9),
     ("parameters", "Tight20-v2", 1e-9), ("state", "StateDrift20-v2", 1e-9)],
)  # fmt: skip
def test_a_policy_is_given_the_parameters(track, task, within):
    """What it computes from them earns as what the catalogue has."""
    Knows.given.clear()
    b = ephemera.benchmark(Knows, track, tasks=[task], seeds=2, steps=200)
    np.testing.assert_allclose(b.shares, 1, rtol=within)
    for info in Knows.given:
        sources = info["instance"].sources
        assert [s.name for s in sources] == info["names"] and [s.cost for s in sources] == info["costs"]
        assert info["instance"].budget == info["budget"]
        assert info["importance"] in (None, [s.interest for s in sources])
        assert str(ephemera.TEST_SEEDS[0]) not in info["instance"].id and info["epochs"] == 200


class KnowsMean(Knows):
    """The same in world `mean`."""

    world = "mean"


def every_instance():
    """Return an instance of each family and law."""
    with pytest.raises(ephemera.Error) as e:
        ephemera.load_instance("nowhere")
    families, laws = re.search(r"families (.*), either with .* laws are (.*)", str(e.value)).groups()
    laws = re.split(", and |, | and ", laws)
    assert {"lognormal", "mixed", "hosts"} <= set(families.split(", ")) and {"hump", "window", "mixture"} <= set(laws)
    own = [f"{family}:12:3" for family in families.split(", ")]
    own += [f"{family}:12:3:{law}" for family in ("lognormal", "mixed") for law in laws]
    own.remove("mixed:12:3:delay")  # under which no source has a window
    return own


@pytest.mark.parametrize("instance", every_instance())
def test_index_at_age_is_what_whittle_ranks_by(instance):
    """Who crawls by it crawls as whittle does, whatever the law, the windows, the batches and the costs."""
    for world, own in (("poisson", Knows), ("mean", KnowsMean)):
        if instance.startswith("hosts") and world == "mean":
            continue  # in which no crawl fails
        steps = 1050 if instance.startswith("drift") else 200
        how = {"steps": steps, "budget": 4, "world": world}
        whittle, mine = (ephemera.run(policy, instance, **how).outcome for policy in ("whittle", own))
        assert mine.crawls == whittle.crawls and mine.reward == pytest.approx(whittle.reward, rel=1e-9)


def test_parameters_are_those_of_the_world():
    """They follow changes, and nobody has them who sees crawls alone."""
    paper = ephemera.load_instance("paper")
    other = ephemera.Source("1", 20, 0.7, 1)
    changed = ephemera.Instance(paper.sources, 1, changes=[ephemera.Change(100, [other])])
    Knows.given.clear()
    want = ephemera.run("whittle", changed, 300, evaluation=200)
    assert ephemera.run(Knows, changed, 300, evaluation=200).outcome.reward == pytest.approx(want.outcome.reward)
    first, second = (info["instance"] for info in Knows.given)
    assert first == changed and second.sources[0] == other and not second.changes
    with pytest.raises(KeyError, match="instance"):
        ephemera.run(Knows, "paper", 10, knowledge="online")


@pytest.mark.parametrize(
    "objective, world",
    [("delay", "poisson"), ("delay:2", "mean"), ("deadline:24h", "poisson"), ("interest:4h", "poisson"),
     ("freshness", "pages")],
)  # fmt: skip
def test_compare_is_bench_under_an_objective(objective, world, command):
    """The object is that of `bench -objective`, and an own policy of the same rule has the same figures."""
    names = ["whittle", "round-robin"] + ["certainty", "forecast"] * (world == "poisson")
    keywords = {"steps": 200, "seeds": 3, "seed": 3, "budget": 2, "world": world, "objective": objective}
    c = ephemera.compare([*names, lambda v: v.age * 1.0], **keywords)
    report = command(
        "bench", "-world", world, "-objective", objective, "-policies", ",".join(names), "-budget", 2, "-steps", 200,
        "-seeds", 3, "-seed", 3, "-format", "json", *["-knowledge", "model"] * (world == "mean"),
    )  # fmt: skip
    assert [c[row["policy"]] for row in report["results"]] == report["results"] != []
    assert c.report["instance"] == report["instance"] == f"paper/{objective}"
    assert c.report["bound"] == report["bound"] is not None
    assert c["<lambda>"]["reward"] == pytest.approx(c["round-robin"]["reward"], rel=1e-9)
    assert ("delay" in objective) == (c["whittle"]["reward"] < 0)


@pytest.mark.parametrize("workers", [-1, 0])
def test_workers_are_at_least_one(workers):
    with pytest.raises(ValueError, match=f"workers is {workers}; allowed is 1 or more"):
        ephemera.compare(["whittle"], steps=5, seeds=1, workers=workers)


def test_an_instance_comes_with_an_objective():
    """All that takes an instance takes `objective`, and its error is that of the commands, with all objectives."""
    paper = [1.0] * 4
    calls = {
        "ArmEnv": (), "CrawlEnv": (), "CrawlVectorEnv": (2,), "Policy": ("whittle",), "bound": (),
        "compare": (["whittle"],), "curves": (), "index": ("paper", paper), "index_at_age": ("paper", paper),
        "load_instance": (), "relax": (), "run": ("whittle",), "state_at_age": ("paper", paper),
        "threshold": ("paper", 1.0), "whittle": (),
    }  # fmt: skip
    takes = [getattr(ephemera, name) for name in ephemera.__all__ if name not in ("Error", "InstanceLike")]
    takes = {f.__name__ for f in takes if callable(f) and "instance" in inspect.signature(f).parameters}
    assert takes == set(calls)
    made = {"Learner": ("forecast",), "Crawler": (0,)}  # which have no such parameter
    words = (
        'objective is "fame"; allowed are interest:HALF-LIFE such as interest:4h, delay, delay:K such as delay:2, '
        "deadline:TIME such as deadline:24h, and freshness"
    )
    for name, arguments in {**calls, **made}.items():
        with pytest.raises(ephemera.Error, match=words):
            getattr(ephemera, name)(*arguments, objective="fame")
    with pytest.raises(ephemera.Error, match=words):
        gymnasium.make("ephemera/Crawl-v0", objective="fame")
    with pytest.raises(ephemera.Error, match=words):
        ephemera.benchmark_run("whittle", ephemera.task("TableI-v1", objective="fame"), 1, track="parameters", steps=10)
    with pytest.raises(ephemera.Error, match="the items of a recording have a utility that decays, leave it out"):
        ephemera.run("whittle", steps=None, objective="delay", world="replay", trace="none.csv")


def test_an_objective_is_that_of_the_policy():
    """A policy is given the sources as the objective has them, and learners learn for it."""
    want = ephemera.load_instance("mixed:5:2", 3, objective="deadline:24h")
    assert {s.law for s in want.sources} == {"deadline"} and want.budget == 3
    assert ephemera.load_instance(want, objective="deadline:24h").sources == want.sources
    Knows.given.clear()
    run = ephemera.run(Knows, "mixed:5:2", 500, budget=3, objective="deadline:24h")
    assert Knows.given[0]["instance"] == want and Knows.given[0]["objective"] == "deadline:24h"
    assert run.outcome.reward == ephemera.run(Knows, want, 500).outcome.reward
    learners = [ephemera.Learner("forecast", "paper", objective=o) for o in ("delay", "interest:4h", None)]
    for _ in range(60):
        for learner in learners:
            learner.update([(i, 1.0, ([0.5], [1.0])) for i in learner.select()])
    assert len({learner.metrics["price"] for learner in learners}) == 3


@pytest.mark.skipif(sys.platform == "win32", reason="limits are those of Unix")
def test_a_full_disk(tmp_path):
    """What was there stays as it was, and the error names the file."""
    import resource

    found = ephemera.compare(["whittle", "round-robin"], steps=50, seeds=2)
    found.save(tmp_path)
    before = {f: f.read_bytes() for f in tmp_path.rglob("*") if f.is_file()}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(OSError, match=str(tmp_path / "runs")):
            found.save(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {f: f.read_bytes() for f in tmp_path.rglob("*") if f.is_file()} == before
