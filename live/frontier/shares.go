package frontier

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"ephemera/learner"
	pb "ephemera/live/frontier/urlfrontier"
)

// A learned crawl has one budget on all nodes, of which each has a share: at first the same, later
// by how many learned URLs it has and by what a fetch brings there ([learner.Shares]).
//
//  1. The first node of the list asks all, every ten epochs. If one does not answer, all stays.
//  2. It tells first those whose share falls, and the others if all of these have agreed: together
//     the shares are never above the budget.
//  3. Each keeps its share on disk.

// sharesEvery is after how many epochs budgets are shared anew.
const sharesEvery = 10

// share is what a node has of the budget of a learned crawl.
type share struct {
	Of      float64 // the budget, fetches an hour
	Nodes   int     // among which it was shared
	PerHour float64
	Sources int // learned URLs that it had then; 0 where it was shared without
}

func shareName(crawl string) string { return "share of learned " + crawl }

// nodes returns among how many the budget is shared.
func (o *LearnOptions) nodes() int { return max(1, o.Nodes) }

// openShare takes up the share that was kept, if it is of this budget and so many nodes.
func (l *Learned) openShare(crawl string, c *learnedCrawl) error {
	n := c.opt.nodes()
	c.share = share{Of: c.opt.PerHour, Nodes: n, PerHour: c.opt.PerHour / float64(n)}
	var kept share
	value, err := l.store.Value(shareName(crawl))
	if err == nil && value != nil {
		err = json.Unmarshal(value, &kept)
	}
	if kept.Of == c.share.Of && kept.Nodes == n && n > 1 {
		c.share = kept
	}
	return err
}

// perHour returns the fetches an hour of this node.
func (c *learnedCrawl) perHour() float64 { return c.share.PerHour }

// report says what a node has of a learned crawl: as a part, whose budget is a share for as many
// URLs as it has now, and the least share, one fetch an epoch.
func (l *Learned) report(crawl string) (p learner.Part, least, perHour float64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.crawls[crawl]
	if c == nil {
		return p, 0, 0, fmt.Errorf("crawl %q is not learned here; give all nodes the same -learn", crawl)
	}
	p = learner.Part{Sources: c.crawler.Len(), Price: c.crawler.Price()}
	if c.share.Sources > 0 {
		p.Budget = c.share.PerHour * float64(p.Sources) / float64(c.share.Sources)
	}
	return p, 1 / c.crawler.Epoch().Hours(), c.share.PerHour, nil
}

// setShare gives this node a share.
func (l *Learned) setShare(crawl string, perHour float64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.crawls[crawl]
	if c == nil {
		return fmt.Errorf("crawl %q is not learned here", crawl)
	}
	if err := c.crawler.SetBudget(perHour * c.crawler.Epoch().Hours()); err != nil {
		return err
	}
	c.share.PerHour, c.share.Sources = perHour, c.crawler.Len()
	data, err := json.Marshal(c.share)
	if err == nil {
		err = l.store.SetValue(shareName(crawl), data)
	}
	return err
}

// shareCall is what nodes ask each other about the budget of a crawl. With per_hour it sets the
// share, and without it asks.
const shareCall = "/ephemera.Nodes/Share"

// Share answers another node.
func (s *Server) share(_ context.Context, in *structpb.Struct) (*structpb.Struct, error) {
	crawl := in.Fields["crawl"].GetStringValue()
	if set := in.Fields["per_hour"]; set != nil {
		err := s.opt.Learned.setShare(crawl, set.GetNumberValue())
		if err != nil {
			err = status.Error(codes.FailedPrecondition, err.Error())
		}
		return &structpb.Struct{}, err
	}
	p, least, perHour, err := s.opt.Learned.report(crawl)
	if err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	number := structpb.NewNumberValue
	return &structpb.Struct{Fields: map[string]*structpb.Value{
		"sources": number(float64(p.Sources)), "budget": number(p.Budget), "price": number(p.Price),
		"least": number(least), "per_hour": number(perHour),
	}}, nil
}

// RegisterNodes has a server answer what other nodes ask, apart from the calls of the protocol.
func RegisterNodes(g *grpc.Server, s *Server) {
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: "ephemera.Nodes", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Share", Handler: func(
			srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor,
		) (any, error) {
			in := &structpb.Struct{}
			if err := decode(in); err != nil {
				return nil, err
			}
			answer := func(ctx context.Context, _ any) (any, error) { return s.share(ctx, in) }
			if intercept == nil {
				return answer(ctx, in)
			}
			return intercept(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: shareCall}, answer)
		}}},
		Streams: []grpc.StreamDesc{{StreamName: "ListQueues", ServerStreams: true, Handler: func(
			_ any, stream grpc.ServerStream,
		) error {
			p := &pb.Pagination{}
			if err := stream.RecvMsg(p); err != nil {
				return err
			}
			return s.sendQueues(p, stream.SendMsg)
		}}},
	}, s)
}

// askShare asks a node, this one too.
func (s *Server) askShare(
	ctx context.Context, address, crawl string, more map[string]*structpb.Value,
) (out *structpb.Struct, err error) {
	in := &structpb.Struct{Fields: map[string]*structpb.Value{"crawl": structpb.NewStringValue(crawl)}}
	for name, v := range more {
		in.Fields[name] = v
	}
	if address == s.opt.Address {
		return s.share(ctx, in)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out = &structpb.Struct{}
	return out, ofNode(address, s.opt.Peers[address].Invoke(s.nodes.toHandOn(ctx), shareCall, in, out))
}

// ShareBudgets shares the budgets of learned crawls among the nodes anew, where it is time for
// that and this is the first of them.
func (s *Server) ShareBudgets(ctx context.Context) {
	if len(s.opt.Peers) == 0 || s.nodes.addresses[0] != s.opt.Address {
		return
	}
	now := s.now()
	for crawl, every := range s.opt.Learned.rounds() {
		if before, there := s.shared[crawl]; there && now.Sub(before) < sharesEvery*every && !now.Before(before) {
			continue
		}
		s.shared[crawl] = now
		if err := s.shareBudget(ctx, crawl); err != nil {
			s.opt.Log.Warn("the shares of the nodes stay as they are", "crawl", crawl, "error", err)
			s.failed.add(now, err)
		}
	}
}

// rounds returns the epochs of the learned crawls.
func (l *Learned) rounds() map[string]time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	rounds := map[string]time.Duration{}
	for crawl, c := range l.crawls {
		rounds[crawl] = c.crawler.Epoch()
	}
	return rounds
}

func (s *Server) shareBudget(ctx context.Context, crawl string) error {
	parts, had := make([]learner.Part, len(s.nodes.addresses)), make([]float64, len(s.nodes.addresses))
	var least float64
	for k, address := range s.nodes.addresses {
		said, err := s.askShare(ctx, address, crawl, nil)
		if err != nil {
			return err
		}
		number := func(name string) float64 { return said.Fields[name].GetNumberValue() }
		parts[k] = learner.Part{ // one without a URL gets what one of one gets
			Sources: max(1, int(number("sources"))), Budget: number("budget"), Price: number("price"),
		}
		had[k], least = number("per_hour"), max(least, number("least"))
	}
	shares := learner.Shares(parts, s.opt.Learned.budget(crawl), least, true)
	for _, rising := range []bool{false, true} {
		for k, address := range s.nodes.addresses {
			if shares[k] > had[k] != rising {
				continue
			}
			to := map[string]*structpb.Value{"per_hour": structpb.NewNumberValue(shares[k])}
			if _, err := s.askShare(ctx, address, crawl, to); err != nil {
				return err
			}
		}
	}
	return nil
}

// budget returns the fetches an hour of all nodes.
func (l *Learned) budget(crawl string) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.crawls[crawl].opt.PerHour
}
