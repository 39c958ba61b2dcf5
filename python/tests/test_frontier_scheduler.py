"""A real crawl of a local site by Scrapy, scheduled by a frontier."""

import http.server
import pathlib
import shutil
import socket
import subprocess
import sys
import threading
import time

import pytest

pytest.importorskip("ephemera_frontier")
ROOT = pathlib.Path(__file__).parents[2]
PAGES = 30

SPIDER = """
import scrapy
class Site(scrapy.Spider):
    name = "site"
    start_urls = ["http://127.0.0.1:{port}/0"]
    custom_settings = dict(SCHEDULER="ephemera_frontier.Scheduler", FRONTIER="{frontier}", LOG_LEVEL="WARNING",
                           TELNETCONSOLE_ENABLED=False, ROBOTSTXT_OBEY=True, CLOSESPIDER_TIMEOUT=250,
                           CLOSESPIDER_PAGECOUNT={pages})
    def parse(self, response):
        yield {{"url": response.url}}
        yield from response.follow_all(css="a")
"""


def free_port():
    """Return a port that nobody listens at."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Site(http.server.BaseHTTPRequestHandler):
    """Page n links to 2n + 1, 2n + 2, 0, and one that robots.txt closes."""

    def do_GET(self):
        if self.path == "/robots.txt":
            body = b"User-agent: *\nDisallow: /closed"
        else:
            self.server.seen.append(self.path)
            n = int(self.path[1:])
            links = [0] + [k for k in (2 * n + 1, 2 * n + 2) if k < PAGES]
            body = "".join(f'<a href="/{k}">{k}</a>' for k in [*links, "closed"]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.mark.skipif(shutil.which("go") is None, reason="needs Go")
@pytest.mark.parametrize("learn", [[], ["-learn", "site:36000"]])
def test_crawl(tmp_path, learn):
    """Each page is fetched once, also by a crawl that was stopped and goes on, and while the frontier is killed.

    What robots.txt closes keeps no crawl from its end. In a learned crawl pages are fetched again, and it is known how
    often they change. What the frontier did not ask for, robots.txt, is not put.
    """
    frontier = tmp_path / "frontier"
    subprocess.run(["go", "build", "-o", frontier, "./cmd/frontier"], cwd=ROOT, check=True)
    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    site.seen = []
    threading.Thread(target=site.serve_forever, daemon=True).start()
    address = f"127.0.0.1:{free_port()}"
    command = [frontier, "-listen", address, "-http", "", "-dir", tmp_path / "state", *learn]
    service = subprocess.Popen(command)
    kills = [] if learn else [5, 15, 25]

    def kill():
        nonlocal service
        while kills:
            while len(site.seen) < kills[0]:
                time.sleep(0.01)
            service.kill()
            service.wait()
            time.sleep(1)
            service = subprocess.Popen(command)
            del kills[0]

    try:
        deadline = time.time() + 120
        while time.time() < deadline:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", int(address.split(":")[1]))) == 0:
                    break
            time.sleep(0.1)
        import grpc
        from ephemera_frontier import urlfrontier_pb2, urlfrontier_pb2_grpc

        with grpc.insecure_channel(address) as channel:
            stub = urlfrontier_pb2_grpc.URLFrontierStub(channel)
            stub.SetDelay(urlfrontier_pb2.QueueDelayParams(delay_requestable=0))
        threading.Thread(target=kill, daemon=True).start()
        for pages in (2 * PAGES,) if learn else (10, 0):
            (tmp_path / "spider.py").write_text(SPIDER.format(port=site.server_port, frontier=address, pages=pages))
            run = [sys.executable, "-m", "scrapy", "runspider", "spider.py"]
            subprocess.run(run, cwd=tmp_path, check=True, timeout=280)
        assert not kills
        fetched = sorted(int(path[1:]) for path in site.seen)
        assert sorted(set(fetched)) == list(range(PAGES))
        with grpc.insecure_channel(address) as channel:
            every = urlfrontier_pb2.ListUrlParams(crawlID="site", size=100)
            urls = [item.known.info.url for item in urlfrontier_pb2_grpc.URLFrontierStub(channel).ListURLs(every)]
            left = urlfrontier_pb2_grpc.URLFrontierStub(channel).GetStats(
                urlfrontier_pb2.QueueWithinCrawlParams(crawlID="site")
            )
        assert len(urls) == PAGES + 1 and not any(url.endswith("robots.txt") for url in urls)
        if not learn:
            assert len(fetched) == PAGES and left.size == 0
            return
        assert len(fetched) > PAGES
        with grpc.insecure_channel(address) as channel:
            url = f"http://127.0.0.1:{site.server_port}/0"
            request = urlfrontier_pb2.URLStatusRequest(url=url, crawlID="site")
            status = urlfrontier_pb2_grpc.URLFrontierStub(channel).GetURLStatus(request)
            assert "changes per hour" in status.known.info.metadata["ephemera.why"].values[0]
    finally:
        service.terminate()
        service.wait()
        site.shutdown()


def test_given_back():
    """A URL keeps its key, and one that was fetched before and is not fetched now is not put."""
    scheduler_module = pytest.importorskip("ephemera_frontier.scheduler")
    from ephemera_frontier import urlfrontier_pb2 as pb
    from scrapy.http import Response

    before = {"signature": pb.StringList(values=["a"]), "fetch.statusCode": pb.StringList(values=["200"])}
    scheduler = scheduler_module.Scheduler()
    scheduler.crawl, put = "c", []
    scheduler.put = lambda known: put.append((known.info.url, known.info.key))
    scheduler.ready = [
        pb.URLInfo(url="http://h/1", key="group", metadata=before),
        pb.URLInfo(url="http://h/2", key="group"),
        pb.URLInfo(url="http://h/3", key="group", metadata=before),
    ]
    scheduler.channel = type("Channel", (), {"close": lambda self: None})()
    request = scheduler.next_request()
    scheduler.fetched(Response(request.url, body=b"x"), request, None)
    scheduler.close("finished")
    assert put == [("http://h/1", "group"), ("http://h/2", "group")]


def test_made_again():
    """A request that Scrapy makes again, elsewhere too, is made, and its response is put for the URL handed out."""
    scheduler_module = pytest.importorskip("ephemera_frontier.scheduler")
    from ephemera_frontier import urlfrontier_pb2 as pb
    from scrapy import Request
    from scrapy.http import Response

    scheduler = scheduler_module.Scheduler()
    scheduler.crawl, put = "c", []
    scheduler.put = lambda **item: put.extend((k, v.info.url, v.info.key) for k, v in item.items())
    scheduler.ready = [pb.URLInfo(url="http://h/1", key="group")]
    request = scheduler.next_request()
    moved = request.replace(url="http://h/2")
    assert scheduler.enqueue_request(moved) and scheduler.has_pending_requests()
    assert scheduler.next_request() is moved
    scheduler.fetched(Response(moved.url, body=b"x"), moved, None)
    scheduler.enqueue_request(Request("http://h/3#part", meta=moved.meta))  # a part of a page is no other page
    assert put == [("known", "http://h/1", "group"), ("discovered", "http://h/3", "")]


def test_a_time_of_refetching_is_any_number():
    """Such as time.time() and an hour."""
    scheduler_module = pytest.importorskip("ephemera_frontier.scheduler")
    from scrapy import Request
    from scrapy.http import Response

    scheduler = scheduler_module.Scheduler()
    scheduler.crawl, put = "c", []
    scheduler.put = lambda known: put.append(known.refetchable_from_date)
    request = Request("http://h/1", meta={"frontier": "http://h/1", "frontier_key": "h", "refetch": 1_700_000_000.5})
    scheduler.fetched(Response(request.url, body=b"x"), request, None)
    assert put == [1_700_000_000]


def test_what_is_not_to_be_fetched_is_put():
    """A URL that robots.txt closes, or of which no request can be made, would be handed out for ever."""
    scheduler_module = pytest.importorskip("ephemera_frontier.scheduler")
    from ephemera_frontier import urlfrontier_pb2 as pb
    from scrapy.exceptions import IgnoreRequest
    from scrapy.http import Response
    from scrapy.spidermiddlewares.httperror import HttpError
    from twisted.internet.error import ConnectionRefusedError
    from twisted.python.failure import Failure

    scheduler = scheduler_module.Scheduler()
    scheduler.crawl, put = "c", []

    def known(known):
        put.append((known.info.url, known.info.key, known.refetchable_from_date, *known.info.metadata))

    scheduler.put = known
    scheduler.ready = [pb.URLInfo(url=url, key="group") for url in ("nothing", "http://h/1")]
    request = scheduler.next_request()
    assert request.url == "http://h/1" and put == [("nothing", "group", 0, "error.cause")]
    for error in (ConnectionRefusedError(), HttpError(Response(request.url)), IgnoreRequest("Forbidden by robots.txt")):
        assert len(put) == 1
        failure = Failure(error)
        failure.request = request
        assert request.errback(failure) is failure  # it is logged as any other
    assert put[1:] == [("http://h/1", "group", 0, "error.cause")]
