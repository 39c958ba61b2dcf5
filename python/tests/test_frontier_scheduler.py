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

pytest.importorskip("scrapy")
protoc = pytest.importorskip("grpc_tools.protoc")
ROOT = pathlib.Path(__file__).parents[2]
PAGES = 30

SPIDER = """
import scrapy
class Site(scrapy.Spider):
    name = "site"
    start_urls = ["http://127.0.0.1:{port}/0"]
    custom_settings = dict(SCHEDULER="frontier_scheduler.FrontierScheduler", FRONTIER="{frontier}", LOG_LEVEL="WARNING",
                           TELNETCONSOLE_ENABLED=False, CLOSESPIDER_TIMEOUT=250, CLOSESPIDER_PAGECOUNT={pages})
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
    """Page n links to 2n + 1, 2n + 2 and 0."""

    def do_GET(self):
        if self.path == "/robots.txt":
            return self.send_error(404)
        self.server.seen.append(self.path)
        n = int(self.path[1:])
        links = [0] + [k for k in (2 * n + 1, 2 * n + 2) if k < PAGES]
        body = "".join(f'<a href="/{k}">{k}</a>' for k in links).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.mark.skipif(shutil.which("go") is None, reason="needs Go")
def test_crawl(tmp_path):
    """Each page is fetched once, also by a crawl that was stopped in the middle and goes on."""
    frontier = tmp_path / "frontier"
    subprocess.run(["go", "build", "-o", frontier, "./cmd/frontier"], cwd=ROOT, check=True)
    shutil.copy(ROOT / "python/examples/frontier_scheduler.py", tmp_path)
    proto = ROOT / "live/frontier/urlfrontier"
    out = [f"--python_out={tmp_path}", f"--grpc_python_out={tmp_path}", "urlfrontier.proto"]
    assert protoc.main(["protoc", f"-I{proto}", *out]) == 0
    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    site.seen = []
    threading.Thread(target=site.serve_forever, daemon=True).start()
    address = f"127.0.0.1:{free_port()}"
    service = subprocess.Popen([frontier, "-listen", address, "-http", "", "-dir", tmp_path / "state"])
    try:
        deadline = time.time() + 120
        while time.time() < deadline:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", int(address.split(":")[1]))) == 0:
                    break
            time.sleep(0.1)
        import grpc

        sys.path.insert(0, str(tmp_path))
        import urlfrontier_pb2
        import urlfrontier_pb2_grpc

        with grpc.insecure_channel(address) as channel:
            stub = urlfrontier_pb2_grpc.URLFrontierStub(channel)
            stub.SetDelay(urlfrontier_pb2.QueueDelayParams(delay_requestable=0))
        for pages in (10, 0):
            (tmp_path / "spider.py").write_text(SPIDER.format(port=site.server_port, frontier=address, pages=pages))
            run = [sys.executable, "-m", "scrapy", "runspider", "spider.py"]
            subprocess.run(run, cwd=tmp_path, check=True, timeout=280)
        assert sorted(map(int, (p[1:] for p in site.seen))) == list(range(PAGES))
    finally:
        service.terminate()
        service.wait()
        site.shutdown()
