import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import crawlercommons.urlfrontier.URLFrontierGrpc;
import crawlercommons.urlfrontier.Urlfrontier.*;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.StreamObserver;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.After;
import org.junit.Test;

/** Speaks to the service at -Dfrontier.port=PORT by URLFrontier's published stubs. */
public class FrontierTest {
    private final ManagedChannel channel =
            ManagedChannelBuilder.forAddress("127.0.0.1", Integer.getInteger("frontier.port")).usePlaintext().build();
    private final URLFrontierGrpc.URLFrontierBlockingStub frontier = URLFrontierGrpc.newBlockingStub(channel);

    @After
    public void close() {
        channel.shutdownNow();
    }

    /** Puts one item after the other on a stream that stays open, and returns the answers. */
    private List<String> put(URLItem... items) throws InterruptedException {
        BlockingQueue<String> answers = new LinkedBlockingQueue<>();
        StreamObserver<URLItem> puts =
                URLFrontierGrpc.newStub(channel).putURLs(new StreamObserver<AckMessage>() {
                    public void onNext(AckMessage ack) {
                        answers.add(ack.getID() + " " + ack.getStatus());
                    }

                    public void onError(Throwable t) {
                        answers.add(t.toString());
                    }

                    public void onCompleted() {
                        answers.add("end");
                    }
                });
        List<String> got = new ArrayList<>();
        for (URLItem item : items) {
            puts.onNext(item);
            got.add(answers.poll(10, TimeUnit.SECONDS));
        }
        puts.onCompleted();
        got.add(answers.poll(10, TimeUnit.SECONDS));
        return got;
    }

    private static URLInfo info(String url) {
        return URLInfo.newBuilder()
                .setUrl(url)
                .setCrawlID("java")
                .putMetadata("depth", StringList.newBuilder().addValues("1").addValues("2").build())
                .build();
    }

    private static URLItem discovered(String url) {
        return URLItem.newBuilder().setDiscovered(DiscoveredURLItem.newBuilder().setInfo(info(url))).build();
    }

    private static URLItem known(String url, long date) {
        return URLItem.newBuilder()
                .setKnown(KnownURLItem.newBuilder().setInfo(info(url)).setRefetchableFromDate(date))
                .build();
    }

    private Stats stats() {
        return frontier.getStats(QueueWithinCrawlParams.newBuilder().setCrawlID("java").build());
    }

    @Test
    public void aCrawl() throws InterruptedException {
        assertEquals(
                List.of("http://a/1 OK", "http://a/1 SKIPPED", "no key SKIPPED", "http://b/1 OK", "end"),
                put(discovered("http://a/1"), discovered("http://a/1"), discovered("no key"), discovered("http://b/1")));
        GetParams get = GetParams.newBuilder().setCrawlID("java").setMaxQueues(10).setMaxUrlsPerQueue(1).build();
        Iterator<URLInfo> urls = frontier.getURLs(get);
        URLInfo first = urls.next();
        assertEquals("http://a/1", first.getUrl());
        assertEquals("a", first.getKey());
        assertEquals(List.of("1", "2"), List.copyOf(first.getMetadataOrThrow("depth").getValuesList()));
        assertEquals("http://b/1", urls.next().getUrl());
        assertFalse(urls.hasNext());
        assertEquals(2, stats().getInProcess());

        long later = System.currentTimeMillis() / 1000 + 1000;
        assertEquals(List.of("http://a/1 OK", "http://b/1 OK", "end"), put(known("http://a/1", later), known("http://b/1", 0)));
        assertEquals(0, stats().getInProcess());
        assertEquals(1, stats().getSize());
        assertEquals(1, (long) stats().getCountsOrThrow("completed"));
        URLStatusRequest.Builder which = URLStatusRequest.newBuilder().setCrawlID("java").setUrl("http://a/1");
        assertEquals(later, frontier.getURLStatus(which.build()).getKnown().getRefetchableFromDate());
        try {
            frontier.getURLStatus(which.setUrl("http://none/").build());
            throw new AssertionError("an unknown URL has a status");
        } catch (StatusRuntimeException e) {
            assertEquals(Status.Code.NOT_FOUND, e.getStatus().getCode());
        }
        assertEquals(
                List.of("a", "b"),
                List.copyOf(frontier.listQueues(Pagination.newBuilder().setCrawlID("java").setIncludeInactive(true).build()).getValuesList()));
        assertTrue(frontier.listCrawls(Local.getDefaultInstance()).getValuesList().contains("java"));
        assertEquals(2, frontier.deleteCrawl(DeleteCrawlMessage.newBuilder().setValue("java").build()).getValue());
    }
}
