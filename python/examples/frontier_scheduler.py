"""A Scrapy scheduler that asks a URLFrontier service what to fetch next.

SCHEDULER = "frontier_scheduler.FrontierScheduler"; FRONTIER is the service's address. A URL is fetched
again at response.meta["refetch"] (Unix seconds), and otherwise never; one whose fetch fails, when its hold
of two minutes ends. Requests keep their URL alone, so that spider.parse gets all responses.
"""

import grpc
import urlfrontier_pb2 as pb
from scrapy import Request, signals
from urlfrontier_pb2_grpc import URLFrontierStub


class FrontierScheduler:
    """Keeps nothing but the URLs that were handed out and not fetched yet."""

    @classmethod
    def from_crawler(cls, crawler):
        scheduler = cls()
        scheduler.channel = grpc.insecure_channel(crawler.settings.get("FRONTIER", "127.0.0.1:7071"))
        scheduler.frontier, scheduler.ready = URLFrontierStub(scheduler.channel), []
        crawler.signals.connect(scheduler.fetched, signals.response_received)
        return scheduler

    def open(self, spider):
        self.crawl = spider.name

    def close(self, reason):
        for info in self.ready:
            self.put(known=pb.KnownURLItem(info=info, refetchable_from_date=1))
        self.channel.close()

    def has_pending_requests(self):
        return bool(self.ready) or self.frontier.GetStats(pb.QueueWithinCrawlParams(crawlID=self.crawl)).size > 0

    def put(self, **item):
        return next(self.frontier.PutURLs(iter([pb.URLItem(**item)]))).status == pb.AckMessage.OK

    def enqueue_request(self, request):
        return self.put(discovered=pb.DiscoveredURLItem(info=pb.URLInfo(url=request.url, crawlID=self.crawl)))

    def next_request(self):
        if not self.ready:
            params = pb.GetParams(max_queues=8, max_urls_per_queue=16, delay_requestable=120, crawlID=self.crawl)
            self.ready = list(self.frontier.GetURLs(params))
        if self.ready:
            info = self.ready.pop(0)
            return Request(info.url, meta={"frontier": info.url}, dont_filter=True)

    def fetched(self, response, request, spider):
        info = pb.URLInfo(url=request.meta.get("frontier", request.url), crawlID=self.crawl)
        self.put(known=pb.KnownURLItem(info=info, refetchable_from_date=request.meta.get("refetch", 0)))
