package frontier

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf16"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	headers "google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "ephemera/live/frontier/urlfrontier"
	"ephemera/live/store"
)

// Several frontiers share the keys among them: each has a part, and hands what it is asked about
// others' keys on to their owners.
//
//  1. The owner of a key is found as Storm finds the task of a bolt, of which StormCrawler's
//     URLStreamGrouping makes use: |hashCode(key) mod n| is its place in the sorted list of
//     addresses, with the hash code of Java's strings.
//  2. What is handed on says so, and whoever gets it does not hand it on again. A node that has another list
//     refuses it: a key has two owners then, each of which hands out its URLs.
//  3. A node that does not answer: calls about its keys fail with UNAVAILABLE, and puts of its
//     URLs are answered FAIL. Nothing is kept for it.

// hashCode is that of Java's String.
func hashCode(s string) (h int32) {
	for _, c := range utf16.Encode([]rune(s)) {
		h = 31*h + int32(c)
	}
	return h
}

// Owner returns the place of the owner of a key among n nodes.
func Owner(key string, n int) int {
	place := int(hashCode(key) % int32(n))
	return max(place, -place)
}

// handedOn is the header of calls that another node hands on. It has a hash of that node's list, or anyList
// from earlier versions.
const (
	handedOn = "ephemera-handed-on"
	anyList  = "1"
)

func isHandedOn(ctx context.Context) bool {
	md, _ := headers.FromIncomingContext(ctx)
	return len(md.Get(handedOn)) > 0
}

func (n *nodes) toHandOn(ctx context.Context) context.Context {
	if isMove(ctx) {
		ctx = toMove(ctx)
	}
	return headers.AppendToOutgoingContext(ctx, handedOn, n.list)
}

// known refuses what a node hands on that has another list.
func (n *nodes) known(ctx context.Context) error {
	md, _ := headers.FromIncomingContext(ctx)
	for _, list := range md.Get(handedOn) {
		if list != n.list && list != anyList {
			return status.Errorf(codes.FailedPrecondition,
				"its -nodes are %s, and the node that asks it has others; needed is the same list for each",
				strings.Join(n.addresses, ","))
		}
	}
	return nil
}

// nodes are the addresses of all frontiers, sorted, and the clients of the others.
type nodes struct {
	addresses []string
	list      string // a hash of them
	peers     map[string]pb.URLFrontierClient
}

func newNodes(own string, peers map[string]grpc.ClientConnInterface) nodes {
	n := nodes{addresses: append(slices.Collect(maps.Keys(peers)), own), peers: map[string]pb.URLFrontierClient{}}
	slices.Sort(n.addresses)
	n.list = fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(n.addresses, ","))))[:16]
	for address, conn := range peers {
		n.peers[address] = pb.NewURLFrontierClient(conn)
	}
	return n
}

// placeName is the name under which the store keeps which place among how many nodes it is of, by which its
// keys are its own.
const placeName = "place"

// settle keeps the place of this node, and refuses a state of another one: it would hand out URLs of keys
// that others own, too.
func (s *Server) settle() error {
	n := len(s.nodes.addresses)
	place := fmt.Sprintf("node %d of %d", slices.Index(s.nodes.addresses, s.opt.Address)+1, n)
	kept, err := s.store.Value(placeName)
	if err != nil || string(kept) == place {
		return err
	}
	if kept != nil && len(s.store.Crawls()) > 0 {
		return fmt.Errorf("the state is of %s, and -nodes make this one %s, which owns other keys; "+
			"to change the list, begin in empty directories, and copy all URLs with -export and -import", kept, place)
	}
	if err := s.store.SetOnFullDisk(placeName, []byte(place)); !errors.Is(err, store.ErrFull) {
		return err
	}
	return nil // it is kept at the next start
}

// owner returns the node that has a key, unless it is this one.
func (n *nodes) owner(ctx context.Context, key string, local bool) (address string, peer pb.URLFrontierClient) {
	if local || len(n.peers) == 0 || key == "" || isHandedOn(ctx) {
		return "", nil
	}
	address = n.addresses[Owner(key, len(n.addresses))]
	return address, n.peers[address]
}

// call is a method of the client.
type call[In, Out any] = func(pb.URLFrontierClient, context.Context, *In, ...grpc.CallOption) (*Out, error)

// ofNode says of an error which node it is of.
func ofNode(address string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	s := status.Convert(err)
	return status.Error(s.Code(), fmt.Sprintf("node %s: %s", address, s.Message()))
}

// ask asks the owner of a key, unless that is this node: then it returns false.
func ask[In, Out any](
	ctx context.Context, n *nodes, key string, local bool, in *In, f call[In, Out],
) (out *Out, asked bool, err error) {
	address, peer := n.owner(ctx, key, local)
	if peer == nil {
		return nil, false, nil
	}
	out, err = f(peer, n.toHandOn(ctx), in)
	return out, true, ofNode(address, err)
}

// askAll asks all other nodes at once, unless the call is for this one only. The answers are in
// the order of the addresses. With an error there are those of the nodes that answered.
func askAll[In, Out any](ctx context.Context, n *nodes, local bool, in *In, f call[In, Out]) ([]*Out, error) {
	if local || isHandedOn(ctx) {
		return nil, nil
	}
	answers := make([]*Out, len(n.addresses))
	var g errgroup.Group
	for i, address := range n.addresses {
		if peer := n.peers[address]; peer != nil {
			g.Go(func() (err error) {
				// The names of crawls come in one message, however many they are.
				answers[i], err = f(peer, n.toHandOn(ctx), in, grpc.MaxCallRecvMsgSize(math.MaxInt32))
				return ofNode(address, err)
			})
		}
	}
	err := g.Wait()
	return slices.DeleteFunc(answers, func(out *Out) bool { return out == nil }), err
}

// sum adds the answers of other nodes to that of this one.
func sum(own *pb.Long, err error, others []*pb.Long, failed error) (*pb.Long, error) {
	if err = cmp.Or(err, failed); err != nil {
		return nil, err
	}
	for _, o := range others {
		own.Value += o.Value
	}
	return own, nil
}

// passOn sends what a stream of another node brings.
func passOn[T any](address string, from grpc.ServerStreamingClient[T], send func(*T) error) error {
	for {
		x, err := from.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return ofNode(address, err)
		}
		if err := send(x); err != nil {
			return err
		}
	}
}

// names is a list of queues in the order in which a node has them, which an error may end.
type names = iter.Seq2[string, error]

// namesTogether is how many names of queues a node sends in a message, which has 4 MB at most: a name has
// up to 255 bytes.
const namesTogether = 10_000

// queuesCall is by which a node asks another one for its queues, of which a stream brings any number.
const queuesCall = "/ephemera.Nodes/ListQueues"

// sendQueues answers another node.
func (s *Server) sendQueues(p *pb.Pagination, send func(any) error) error {
	part, left := &pb.QueueList{}, p.GetSize()
	for key, err := range s.ownQueues(p) {
		if err != nil {
			return err
		}
		part.Values = append(part.Values, key)
		if left--; left == 0 {
			break
		}
		if len(part.Values) == namesTogether {
			if err := send(part); err != nil {
				return err
			}
			part = &pb.QueueList{}
		}
	}
	return send(part)
}

// queuesOf returns the queues of another node.
func (s *Server) queuesOf(ctx context.Context, address string, p *pb.Pagination) names {
	return func(yield func(string, error) bool) {
		ctx := s.nodes.toHandOn(ctx)
		stream, err := s.opt.Peers[address].NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, queuesCall)
		if err == nil && stream.SendMsg(p) == nil { // RecvMsg has the error
			err = stream.CloseSend()
		}
		for err == nil {
			part := &pb.QueueList{}
			err = stream.RecvMsg(part)
			for _, key := range part.Values {
				if !yield(key, nil) {
					return
				}
			}
		}
		if err != io.EOF {
			yield("", ofNode(address, err))
		}
	}
}

// queuesOfNodes returns the queues of each node, as many as are asked for at least. They are to be read
// before the context ends.
func (s *Server) queuesOfNodes(ctx context.Context, p *pb.Pagination) (lists []names) {
	first := proto.CloneOf(p)
	first.Start = 0
	first.Size = uint32(min(uint64(p.GetStart())+uint64(cmp.Or(p.GetSize(), defaultSize)), math.MaxUint32))
	for _, address := range s.nodes.addresses {
		if address == s.opt.Address {
			lists = append(lists, s.ownQueues(first))
		} else {
			lists = append(lists, s.queuesOf(ctx, address, first))
		}
	}
	return lists
}

// merged merges lists, in the order that they have. One that is to be moved has two nodes, and is there
// once.
func merged(lists []names) names {
	type head struct {
		key  string
		next func() (string, error, bool)
	}
	return func(yield func(string, error) bool) {
		var heads []*head
		var failed error
		ended := func(h *head) bool {
			key, err, more := h.next()
			h.key, failed = key, cmp.Or(failed, err)
			return !more
		}
		for _, list := range lists {
			next, stop := iter.Pull2(list)
			defer stop()
			if h := (&head{next: next}); !ended(h) {
				heads = append(heads, h)
			}
		}
		for len(heads) > 0 && failed == nil {
			first := slices.MinFunc(heads, func(a, b *head) int {
				return cmp.Or(cmp.Compare(len(a.key), len(b.key)), cmp.Compare(a.key, b.key))
			}).key
			if !yield(first, nil) {
				return
			}
			heads = slices.DeleteFunc(heads, func(h *head) bool { return h.key == first && ended(h) })
		}
		if failed != nil {
			yield("", failed)
		}
	}
}

// links are the streams to the owners of what one stream of a client puts: one to each, so that
// the answers come in the order of the items.
type links[In, Out any] struct {
	ctx  context.Context
	open opener[In, Out]
	of   map[string]grpc.BidiStreamingClient[In, Out]
}

// opener is a method of the client that opens a stream.
type opener[In, Out any] = func(
	pb.URLFrontierClient, context.Context, ...grpc.CallOption,
) (grpc.BidiStreamingClient[In, Out], error)

func newLinks[In, Out any](ctx context.Context, n *nodes, open opener[In, Out]) *links[In, Out] {
	return &links[In, Out]{n.toHandOn(ctx), open, map[string]grpc.BidiStreamingClient[In, Out]{}}
}

var errNode = status.Error(codes.Unavailable, "the node did not answer")

// put hands an item on. The function that it returns waits for the answer; those of one link
// are to be called in the order of the items. After an error the link is opened anew.
func (l *links[In, Out]) put(address string, peer pb.URLFrontierClient, item *In) (answer func() (*Out, error)) {
	stream := l.of[address]
	if stream == nil {
		var err error
		if stream, err = l.open(peer, l.ctx); err != nil {
			return func() (*Out, error) { return nil, ofNode(address, err) }
		}
		l.of[address] = stream
	}
	if stream.Send(item) != nil { // Recv has the error
		delete(l.of, address)
	}
	return func() (*Out, error) {
		out, err := stream.Recv()
		if err == io.EOF {
			err = errNode
		}
		return out, ofNode(address, err)
	}
}
