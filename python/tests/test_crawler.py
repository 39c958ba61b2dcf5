"""A crawler of sources that come and go."""

import math
import re
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

import ephemera

README = Path(__file__).parents[1] / "README.md"


def fetch(name, now):
    """Return what a feed shows, when it may be asked again, and whether it answers."""
    if name == "dead":
        return None, 0.0
    gap = {"news": 1800, "busy": 3600, "blog": 40_000}[name]
    return [
        (gap * k, 1.0) for k in range(int(now // gap) - 20, int(now // gap) + 1)
    ], now + 7200 if name == "busy" else 0.0


def test_the_loop_of_the_readme(tmp_path, monkeypatch):
    """Three feeds, one dead, one that asks to wait; one is added, one removed, with a restart in the middle."""
    monkeypatch.chdir(tmp_path)
    (loop,) = (b for b in re.findall(r"^```python\n(.*?)^```", README.read_text(), re.M | re.S) if "Crawler(" in b)
    assert len(loop.splitlines()) <= 40
    names = {"ephemera": ephemera, "fetch": fetch}
    exec(loop, names)
    crawler, crawls, times = names["crawler"], names["crawls"], names["times"]
    assert len(crawler) == 3 and set(crawls) == {"news", "busy", "dead", "blog"}
    assert crawls["news"] > crawls["blog"] > crawls["dead"] > 0
    assert min(b - a for a, b in zip(times["busy"], times["busy"][1:], strict=False)) >= 7200
    news = crawler.belief("news")
    assert news.items == pytest.approx(2, rel=0.3) and news.due > news.last > 0
    with pytest.raises(ephemera.Error, match='no source "busy"'):
        crawler.belief("busy")


def test_goes_on_as_if_not_interrupted(tmp_path):
    def crawl(restart):
        crawler, chosen = ephemera.Crawler(0, budget=2), []
        for name in ("news", "busy", "blog"):
            crawler.add(name)
        seen = {}
        for hour in range(60):
            now = 3600.0 * hour + 60
            if restart and hour % 20 == 7:
                crawler.save(tmp_path)
                crawler = ephemera.Crawler.load(tmp_path)
            for name in crawler.select(now, 5):
                items, _ = fetch(name, now)
                crawler.update(name, now, [i for i in items if i[0] > seen.get(name, -math.inf)])
                seen[name] = now
                chosen.append((hour, name))
        return chosen

    assert crawl(False) == crawl(True)


def test_limits_and_late_worth():
    crawler = ephemera.Crawler(0, budget=5, per_group=1)
    for k in range(4):
        crawler.add(f"a{k}", group="a", longest=7200)
    crawler.add("b", shortest=10_800)
    hours = []
    for hour in range(30):
        now = 3600.0 * hour
        names = crawler.select(now, 10)
        assert sum(n[0] == "a" for n in names) <= 1
        hours += [hour] * ("b" in names)
        for name in names:
            crawler.update(name, now, [(now - 60, None)], truncated=hour == 0)
            crawler.report(name, now, [(now - 60, 3.0)])
    assert len(hours) > 5 and min(np.diff(hours)) >= 3
    crawler.set_budget(1)
    crawler.select(3600 * 31, 10)
    assert len(crawler.select(3600 * 40, 10)) == 1


def test_far_dates():
    """A source waits until then, however far off it is; what is no date in seconds is refused."""
    crawler = ephemera.Crawler(1_700_000_000, budget=5)
    for name, until in (("near", 1_700_010_000), ("year 5138", 1e11), ("year 9999", 253_402_300_799)):
        crawler.add(name)
        crawler.update(name, 1_700_000_000, [(1_699_999_000, 1.0)], not_before=until)
    waits = set()
    for hour in range(1, 3000):
        waits.update(crawler.select(1_700_000_000 + 3600 * hour, 5))
    assert waits == {"near"}
    for wrong in (1.7e12, -1e12, math.nan, math.inf):
        with pytest.raises(ValueError, match=r"not_before is .*; allowed are Unix times in seconds, up to"):
            crawler.update("near", 1_700_000_100, not_before=wrong)
    with pytest.raises(ValueError, match=r"now is 1700000000000.0; allowed are Unix times in seconds"):
        crawler.select(1.7e12, 1)
    with pytest.raises(ValueError, match=r"published is 1700000000000"):
        crawler.update("near", 1_700_000_100, [(1.7e12, 1.0)])


@pytest.mark.parametrize(
    "use,words",
    [
        (lambda c: c.add("a"), "a name that no other source has"),
        (lambda c: c.add("b", cost=0.0 - 1), "cost is -1"),
        (lambda c: c.remove("x"), 'no source "x"'),
        (lambda c: c.update("a", 1, outcome="lost"), "allowed are found, unchanged, failed"),
        (lambda c: c.update("a", 1, [(0, -1.0)]), "worth is -1"),
        (lambda c: c.update("a", 1, [(0, 1e308)]), "allowed is 0 to 1e.100"),
        (lambda c: c.update("a", 1, [(0, 1.0)], outcome="unchanged"), "not Found"),
        (lambda c: c.set_budget(0), "budget is 0"),
        (lambda c: ephemera.Crawler(0, budget=-1), "budget is -1"),
        (lambda c: ephemera.Crawler(0, learner="whittle"), "no learner"),
        (lambda c: ephemera.Crawler(0, settings={"moon": 1}), "moon"),
    ],
)
def test_refusals(use, words):
    crawler = ephemera.Crawler(0)
    crawler.add("a")
    with pytest.raises(ValueError, match=words):
        use(crawler)


def test_damaged_states(tmp_path):
    learner = ephemera.Learner("forecast", knowledge="online")
    learner.save(tmp_path / "learner")
    for what in (ephemera.Crawler.load, ephemera.Learner.load):
        for name, text in (("text", "x"), ("empty", ""), ("half", (tmp_path / "learner").read_text()[:80])):
            (tmp_path / name).write_text(text)
            with pytest.raises(ephemera.Error):
                what(tmp_path / name)
        with pytest.raises(ValueError, match="no regular file"):
            what("/dev/null")
    with pytest.raises(ephemera.Error, match="not saved by a program that crawls"):
        ephemera.Crawler.load(tmp_path / "learner")


def test_states_whose_numbers_were_changed(tmp_path):
    """Whatever number is changed: it is refused, or it crawls on."""
    learner = ephemera.Learner("lspe", knowledge="online")
    for _ in range(30):
        learner.update([(int(i), 3.0, ([0.5], [3.0])) for i in learner.select()])
    learner.save(tmp_path / "a")
    text = (tmp_path / "a").read_text()
    begin = text.index('"learner"')
    for number in list(re.finditer(r"(?<=[:,\[])-?\d[\d.e+-]*(?=[,\]}])", text[begin:]))[::7]:
        for other in ("-7", "1e300", "123456789012"):
            changed = text[:begin] + text[begin:][: number.start()] + other + text[begin:][number.end() :]
            (tmp_path / "b").write_text(changed)
            try:
                again = ephemera.Learner.load(tmp_path / "b")
                for _ in range(3):
                    again.update([(int(i), 3.0, ([0.5], [3.0])) for i in again.select()])
            except ephemera.Error as e:
                assert "goroutine" not in str(e), (number, other)


@pytest.mark.parametrize("seconds", [math.nan, math.inf, 1e11])
def test_lengths_of_time_are_finite(seconds):
    with pytest.raises(ValueError, match=f"epoch is {seconds}; allowed are seconds, up to 9223372036"):
        ephemera.Crawler(0, epoch=seconds)
    with pytest.raises(ValueError, match=f"longest is {seconds}; allowed are seconds"):
        ephemera.Crawler(0).add("a", longest=seconds)


def test_waits_for_a_date_that_is_far_ahead():
    crawler = ephemera.Crawler(0, epoch=60)
    crawler.add("far")
    crawler.update("far", 0, not_before=1e11)
    assert not any(crawler.select(60.0 * minute, 1) for minute in range(1, 5000))


def test_the_loop_of_pages():
    """The loop of docs/freshness.md: the fast page takes what the others leave, and rates of change are learned."""
    page = Path(__file__).parents[2] / "docs" / "freshness.md"
    if not page.exists():
        pytest.skip("the package is tested without its repository")
    (loop,) = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
    every = {"front": 6 * 3600, "about": 480 * 3600, "clock": 60}

    def fetch_page(name, now):
        return f"{name} {now // every[name]}"

    def in_sitemap(name, now):
        return fetch_page(name, now) != fetch_page(name, now - 600)

    names = {"ephemera": ephemera, "fetch_page": fetch_page, "in_sitemap": in_sitemap}
    exec(loop, names)
    crawls, front = names["crawls"], names["front"]
    assert crawls["front"] > crawls["about"] and sum(crawls.values()) > 1000
    assert front.changes == pytest.approx(1 / 6, rel=0.3) and 0 < front.fresh <= 1 and front.items == 0
    with pytest.raises(ephemera.Error, match="it belongs to the objective freshness"):
        ephemera.Crawler(0).add("a", importance=2)
    with pytest.raises(ephemera.Error, match="the objective is delay; allowed is freshness"):
        crawler = ephemera.Crawler(0)
        crawler.add("a")
        crawler.ping("a", 0)


@pytest.mark.parametrize("time", [datetime(2026, 1, 1), "2026-01-01", None])
def test_times_are_numbers(time):
    """A date, or a length of time with its unit, is answered by what is needed."""
    crawler = ephemera.Crawler(1_700_000_000)
    crawler.add("a")
    for name, use in (
        ("start", lambda: ephemera.Crawler(time)),
        ("now", lambda: crawler.select(time, 1)),
        ("published", lambda: crawler.update("a", 1_700_000_060, [(time, 1.0)])),
    ):
        with pytest.raises(ValueError, match=f"{name} is {re.escape(repr(time))}; allowed are Unix times in seconds"):
            use()
    with pytest.raises(ValueError, match="epoch is '1h'; allowed are seconds"):
        ephemera.Crawler(1_700_000_000, epoch="1h")
