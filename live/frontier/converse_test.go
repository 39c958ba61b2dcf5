package frontier

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"

	pb "ephemera/live/frontier/urlfrontier"
)

// oneItem is a stream that brings an item and then nothing.
type oneItem struct {
	grpc.ServerStream
	items chan *pb.URLItem
}

func (o *oneItem) Context() context.Context   { return ctx }
func (o *oneItem) Send(*pb.AckMessage) error  { return nil }
func (o *oneItem) Recv() (*pb.URLItem, error) { return <-o.items, nil }

type toNodes = links[pb.URLItem, pb.AckMessage]

// TestConverseEndsLast: when a stream has ended nothing of it is being put, so that the store can be closed.
func TestConverseEndsLast(t *testing.T) {
	s := serve(t)
	stream := &oneItem{items: make(chan *pb.URLItem, 1)}
	stream.items <- discovered("http://h/")
	handling, handled, ended := make(chan bool), make(chan bool), make(chan bool)
	go func() {
		converse(s.server, stream, pb.URLFrontierClient.PutURLs, 1, func(*toNodes, *pb.URLItem) answer[*pb.AckMessage] {
			handling <- true
			<-handled
			return answer[*pb.AckMessage]{}
		})
		close(ended)
	}()
	<-handling
	s.server.Closing()
	select {
	case <-ended:
		t.Error("the stream has ended while an item is being put")
	case <-time.After(100 * time.Millisecond):
	}
	close(handled)
	<-ended
	stream.items <- discovered("http://h/")
	select {
	case <-handling:
		t.Error("the stream has ended, and a further item is being put")
	case <-time.After(100 * time.Millisecond):
	}
}

// TestConverseWaitsForNoNode: a stream ends while another node does not take what is handed on to it.
func TestConverseWaitsForNoNode(t *testing.T) {
	s := serve(t)
	stream := &oneItem{items: make(chan *pb.URLItem, 1)}
	stream.items <- discovered("http://h/")
	ended := make(chan error)
	go func() {
		ended <- converse(s.server, stream, pb.URLFrontierClient.PutURLs, 1,
			func(links *toNodes, _ *pb.URLItem) (a answer[*pb.AckMessage]) {
				s.server.Closing()
				<-links.ctx.Done()
				return a
			})
	}()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Error("the stream waits for the other node")
	}
}
