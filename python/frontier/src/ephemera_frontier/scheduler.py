"""The scheduler, and what it puts back after a fetch."""

import hashlib
from urllib.parse import urldefrag

import grpc
from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest
from scrapy.spidermiddlewares.httperror import HttpError

from . import urlfrontier_pb2 as pb
from .urlfrontier_pb2_grpc import URLFrontierStub

# A call to a service that is down, as for an upgrade, waits until it is back, and is made again if its answer is lost.
# It takes a minute at most, as Scrapy does nothing else meanwhile.
CALLS = """{"methodConfig": [{"name": [{}], "waitForReady": true, "timeout": "60s", "retryPolicy": {
    "maxAttempts": 5, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
    "retryableStatusCodes": ["UNAVAILABLE"]}}]}"""


class Scheduler:
    """Keeps nothing but the URLs that were handed out and not fetched yet, and requests that are made again."""

    def __init__(self):
        """Begin without URLs and requests."""
        self.ready, self.again = [], []

    @classmethod
    def from_crawler(cls, crawler):
        """Make one from FRONTIER, the service's address, FRONTIER_CRAWL and FRONTIER_HOLD."""
        scheduler = cls()
        scheduler.crawl = crawler.settings.get("FRONTIER_CRAWL")
        scheduler.hold = crawler.settings.getint("FRONTIER_HOLD", 120)
        address = crawler.settings.get("FRONTIER", "127.0.0.1:7071")
        scheduler.channel = grpc.insecure_channel(address, [("grpc.service_config", CALLS)])
        scheduler.frontier = URLFrontierStub(scheduler.channel)
        crawler.signals.connect(scheduler.fetched, signals.response_received)
        return scheduler

    def open(self, spider):
        """Begin the crawl of the spider's name, unless the settings name one."""
        self.crawl = self.crawl or spider.name

    def close(self, reason):
        """Put back what was handed out and never fetched: it is due now.

        Of what was fetched before, any put would count as a fetch: it is due when its hold ends.
        """
        for info in self.ready:
            if "fetch.statusCode" not in info.metadata:
                self.put(known=pb.KnownURLItem(info=info, refetchable_from_date=1))
        self.channel.close()

    def has_pending_requests(self):
        """Tell whether any URL is to be fetched, now or later."""
        if self.ready or self.again:
            return True
        return self.frontier.GetStats(pb.QueueWithinCrawlParams(crawlID=self.crawl)).size > 0

    def put(self, **item):
        """Put a URL, and tell whether it is taken."""
        return next(self.frontier.PutURLs(iter([pb.URLItem(**item)]))).status == pb.AckMessage.OK

    def enqueue_request(self, request):
        """Put a URL that was discovered. A request of the frontier's that Scrapy makes again is the next one.

        That is where it was redirected or failed. It names the URL of which its response is put. Those of a spider that
        hand on its meta are not told to skip Scrapy's filter.
        """
        if "frontier" in request.meta and request.dont_filter:
            self.again.append(request)
            return True
        url = urldefrag(request.url).url  # what stands behind # is a part of the page, which no server is asked for
        return self.put(discovered=pb.DiscoveredURLItem(info=pb.URLInfo(url=url, crawlID=self.crawl)))

    def next_request(self):
        """Return a URL that is due, or None."""
        if self.again:
            return self.again.pop(0)
        if not self.ready:
            params = pb.GetParams(max_queues=8, max_urls_per_queue=16, delay_requestable=self.hold, crawlID=self.crawl)
            self.ready = list(self.frontier.GetURLs(params))
        while self.ready:
            info = self.ready.pop(0)
            meta = {"frontier": info.url, "frontier_key": info.key}
            try:
                return Request(info.url, meta=meta, dont_filter=True, errback=self.failed)
            except ValueError as e:  # such as one without a scheme
                self.refused(meta, e)

    def fetched(self, response, request, spider):
        """Put what a fetch has found, but for one that the frontier did not ask for, such as of robots.txt."""
        if "frontier" not in request.meta:
            return
        of = {"signature": hashlib.md5(response.body).hexdigest(), "fetch.statusCode": str(response.status)}
        self.known(request.meta, of)

    def failed(self, failure):
        """Put a URL that is not to be fetched, as robots.txt says. Another that failed is due when its hold ends."""
        if failure.check(IgnoreRequest) and not failure.check(HttpError):  # the latter has a response, which was put
            self.refused(failure.request.meta, failure.value)
        return failure

    def refused(self, meta, why):
        """Put a URL that is never fetched, and why."""
        self.known(meta, {"error.cause": str(why)})

    def known(self, meta, of):
        """Put what is known of a URL that was handed out."""
        info = pb.URLInfo(url=meta["frontier"], key=meta["frontier_key"], crawlID=self.crawl)
        for name, value in of.items():
            info.metadata[name].values.append(value)
        self.put(known=pb.KnownURLItem(info=info, refetchable_from_date=int(meta.get("refetch", 0))))
