package frontier

import (
	"fmt"
	"math"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	pb "ephemera/live/frontier/urlfrontier"
)

// TestSharedBudget: three nodes spend the budget of a learned crawl together, each by how many URLs
// it has at first, and later more where fetches find more; while one does not answer all stays.
func TestSharedBudget(t *testing.T) {
	nodes := neighbours(t, 3, LearnOptions{PerHour: 60})
	a := nodes[0]
	shares := func() (all [3]float64) {
		for i, s := range nodes {
			all[i] = s.server.opt.Learned.crawls["L"].share.PerHour
		}
		return all
	}
	share := func() [3]float64 {
		t.Helper()
		a.clock.Add(time.Hour.Milliseconds() * 2) // ten epochs of 12 minutes
		for i := range nodes {
			nodes[2-i].server.ShareBudgets(ctx) // only the first does something
		}
		got := shares()
		if sum := got[0] + got[1] + got[2]; math.Abs(sum-60) > 1e-9 {
			t.Fatalf("the shares are %v, together %v, want 60", got, sum)
		}
		return got
	}
	a.want(shares(), [3]float64{20, 20, 20})
	var urls [3][]string // of each node twice as many as of the one before
	for i := 0; len(urls[2]) < 40; i++ {
		key := fmt.Sprint("h", i)
		if of := Owner(key, 3); len(urls[of]) < 10<<of {
			urls[of] = append(urls[of], "http://"+key+"/")
		}
	}
	put := func(of int, found int) {
		for i, url := range urls[of] {
			var at []time.Time
			for k := range found {
				at = append(at, nodes[of].server.now().Add(-time.Duration(k*40+i)*time.Minute))
			}
			a.want(a.put(report(url, 0, at)), url+" OK")
		}
	}
	for of := range nodes {
		put(of, 1)
	}
	byNumber := share()
	for i, m := range byNumber {
		if want := 60. * float64(int(1)<<i) / 7; math.Abs(m-want) > 1e-9 {
			t.Errorf("node %d has %v fetches an hour for %d of 70 URLs, want %v", i, m, len(urls[i]), want)
		}
	}

	// URLs of the first node publish each hour, the others nothing. Each node spends its share.
	fetches := func(hours float64) (n [3]int) {
		for at := 0.; at < hours; at += .1 {
			for of, s := range nodes {
				s.server.opt.Learned.Advance()
				for _, u := range s.infos(inCrawl("L")) {
					n[of]++
					var published []time.Time
					if of == 0 {
						published = append(published, s.server.now().Add(-3*time.Minute), s.server.now())
					}
					s.want(s.put(report(u.Url, 0, published)), u.Url+" OK")
				}
			}
			a.wait(.1 * 3600)
		}
		return n
	}
	fetches(20)
	byPrice := share()
	if byPrice[0] < 1.5*byNumber[0] || byPrice[2] > byNumber[2] {
		t.Errorf("the shares are %v where all items are the first one's, before that %v", byPrice, byNumber)
	}
	for i, n := range fetches(20) {
		if want := 20 * byPrice[i]; float64(n) > want+6 || float64(n) < .9*want-6 {
			t.Errorf("node %d makes %d fetches in 20 hours with %v an hour", i, n, byPrice[i])
		}
	}

	// The share is kept, but of another budget, or another number of nodes.
	l := nodes[1].server.opt.Learned
	for _, tt := range []struct {
		opt  LearnOptions
		want float64
	}{
		{LearnOptions{PerHour: 60, Nodes: 3}, byPrice[1]},
		{LearnOptions{PerHour: 90, Nodes: 3}, 30},
		{LearnOptions{PerHour: 60, Nodes: 2}, 30},
		{LearnOptions{PerHour: 60}, 60},
	} {
		again := must(NewLearned(nodes[1].store, l.log, map[string]LearnOptions{"L": tt.opt}))
		a.want(again.crawls["L"].share.PerHour, tt.want)
	}

	nodes[2].stop()
	before := shares()
	a.clock.Add(time.Hour.Milliseconds() * 2)
	a.server.ShareBudgets(ctx)
	a.want(shares(), before)
	_, failed := a.server.askShare(ctx, nodes[2].address, "L", nil)
	a.want(status.Code(failed), codes.Unavailable)
	_, failed = a.server.askShare(ctx, nodes[1].address, "other", nil)
	a.want(status.Code(failed), codes.FailedPrecondition)
	nodes[2].stop = func() {}
}

// TestSharesOfNone: nodes that have no learned URL yet have equal shares, and one beside others the least one; together
// they have the budget, and no more.
func TestSharesOfNone(t *testing.T) {
	nodes := neighbours(t, 3, LearnOptions{PerHour: 60})
	a := nodes[0]
	const least = 5 // a fetch in an epoch of 12 minutes
	for _, want := range [][3]float64{{20, 20, 20}, {60 - 2*least, least, least}} {
		a.server.ShareBudgets(ctx)
		for i, s := range nodes {
			if got := s.server.opt.Learned.crawls["L"].share.PerHour; math.Abs(got-want[i]) > 1e-9 {
				t.Errorf("node %d has %v fetches an hour, want %v", i, got, want)
			}
		}
		for i := range 200 {
			if key := fmt.Sprint("h", i); Owner(key, 3) == 0 {
				a.put(report("http://"+key+"/", 0, nil))
			}
		}
		a.clock.Add(time.Hour.Milliseconds() * 2) // ten epochs
	}
}

// TestShareOfOtherList: a node that has another list sets no share here and reads none, and lists no queues; nor
// does anybody of a service that is closing.
func TestShareOfOtherList(t *testing.T) {
	nodes := neighbours(t, 3, LearnOptions{PerHour: 60})
	other := nodes[1].server
	ask := func() string {
		var codes []codes.Code
		set := map[string]*structpb.Value{"per_hour": structpb.NewNumberValue(60)}
		for _, more := range []map[string]*structpb.Value{nil, set} {
			_, err := other.askShare(ctx, nodes[0].address, "L", more)
			codes = append(codes, status.Code(err))
		}
		for _, err := range other.queuesOf(ctx, nodes[0].address, &pb.Pagination{}) {
			codes = append(codes, status.Code(err))
		}
		return fmt.Sprint(codes)
	}
	right := other.nodes
	other.nodes = newNodes(other.opt.Address, map[string]grpc.ClientConnInterface{
		nodes[0].address: other.opt.Peers[nodes[0].address],
	})
	nodes[0].want(ask(), "[FailedPrecondition FailedPrecondition FailedPrecondition]")
	nodes[0].want(nodes[0].server.opt.Learned.crawls["L"].share.PerHour, 20.)
	other.nodes = right
	nodes[0].server.Close()
	nodes[0].want(ask(), "[Unavailable Unavailable Unavailable]")
}
