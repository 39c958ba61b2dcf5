package frontier

import (
	"fmt"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "ephemera/live/frontier/urlfrontier"
)

// TestCloseDuringCalls: the state is closed during each kind of call, as where calls do not end in time: each gets
// what it wants or the error.
func TestCloseDuringCalls(t *testing.T) {
	drain := func(stream interface{ RecvMsg(any) error }, err error, m any) error {
		for err == nil {
			err = stream.RecvMsg(m)
		}
		if err.Error() == "EOF" {
			return nil
		}
		return err
	}
	s := serve(t, LearnOptions{PerHour: 1000})
	page := s.server.HTTP()
	for k := range 2000 {
		found := report(fmt.Sprintf("http://h%d/%d", k%10, k), 0, []time.Time{s.server.now()})
		s.put(found, discovered(fmt.Sprint("http://d/", k)))
	}
	calls := map[string]func(n int) error{
		"BlockQueueUntil": func(int) error {
			_, err := s.BlockQueueUntil(ctx, &pb.BlockQueueParams{Key: "d"})
			return err
		},
		"CountURLs": func(int) error { _, err := s.CountURLs(ctx, &pb.CountUrlParams{CrawlID: "L"}); return err },
		"DeleteQueue": func(int) error {
			_, err := s.DeleteQueue(ctx, &pb.QueueWithinCrawlParams{Key: "h1", CrawlID: "L"})
			return err
		},
		"GetStats": func(int) error { _, err := s.GetStats(ctx, &pb.QueueWithinCrawlParams{}); return err },
		"GetURLs": func(int) error {
			stream, err := s.GetURLs(ctx, anyCrawl)
			return drain(stream, err, &pb.URLInfo{})
		},
		"GetURLStatus": func(n int) error {
			url := fmt.Sprint("http://d/", n%2000)
			_, err := s.GetURLStatus(ctx, &pb.URLStatusRequest{Url: url})
			if status.Code(err) == codes.NotFound {
				err = nil
			}
			return err
		},
		"ListQueues": func(int) error { _, err := s.ListQueues(ctx, &pb.Pagination{}); return err },
		"ListURLs": func(int) error {
			stream, err := s.ListURLs(ctx, &pb.ListUrlParams{CrawlID: "L", Size: 1000})
			return drain(stream, err, &pb.URLItem{})
		},
		"PurgeURLs": func(int) error { _, err := s.PurgeURLs(ctx, &pb.PurgeUrlParams{CrawlID: "L"}); return err },
		"PutURLs": func(n int) error {
			puts, err := s.PutURLs(ctx)
			if err == nil {
				puts.Send(report(fmt.Sprint("http://h/", n), 0, []time.Time{s.server.now()}))
				puts.CloseSend()
			}
			return drain(puts, err, &pb.AckMessage{})
		},
		"SetDelay": func(int) error { _, err := s.SetDelay(ctx, &pb.QueueDelayParams{}); return err },
	}
	for _, path := range []string{"/", "/metrics"} {
		calls[path] = func(int) error {
			page.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
			return nil
		}
	}
	calls["Advance"] = func(int) error { s.server.opt.Learned.Advance(); return nil }
	var wg sync.WaitGroup
	closed := make(chan bool)
	for name, call := range calls {
		wg.Go(func() {
			for n, after := 0, 0; after < 3; n++ { // calls that begin when it is closed
				select {
				case <-closed:
					after++
				default:
				}
				if err := call(n); err != nil && status.Convert(err).Message() != "store: closed" {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	time.Sleep(300 * time.Millisecond)
	s.stop = s.server.Closing
	if err := s.store.Close(); err != nil {
		t.Error(err)
	}
	close(closed)
	wg.Wait()
}
