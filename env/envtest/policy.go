package envtest

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"ephemera/env"
)

// Policy checks that the policies that newPolicy returns, all built alike and
// for this instance, keep the contract of env.Policy and the budget. They run
// in a Poisson world that shows everything; learners are updated.
func Policy[O env.Knowledge](t *testing.T, in env.Instance, newPolicy func() env.Policy[O]) {
	t.Helper()
	policy(t, in, newPolicy, false)
}

// OverrunPolicy is Policy for policies that keep the budget on average only.
func OverrunPolicy[O env.Knowledge](t *testing.T, in env.Instance, newPolicy func() env.Policy[O]) {
	t.Helper()
	policy(t, in, newPolicy, true)
}

func policy[O env.Knowledge](t *testing.T, in env.Instance, newPolicy func() env.Policy[O], overrun bool) {
	t.Helper()
	w, err := env.NewPoisson(in, 1, env.PoissonOptions{Items: true, State: true, Overrun: overrun})
	if err != nil {
		t.Fatal(err)
	}
	// a is handed copies that are spoilt as soon as it returns, and lists that
	// hold something already; b is handed the world's own.
	a, b := newPolicy(), newPolicy()
	learnA, learns := a.(env.Learner[O])
	learnB, _ := b.(env.Learner[O])
	if _, named := reflect.TypeOf(a).MethodByName("Update"); named && !learns {
		t.Fatalf("%T has a method Update and is no learner of its level; it would never observe anything", a)
	}
	n := len(in.Sources)
	some := false
	for epoch := range Epochs {
		given := clone(w.View())
		prefix := []int{-7, n + 3, 0}[:epoch%4]
		dst := append(make([]int, 0, epoch%5*n), prefix...)
		got := a.Select(dst, level[O](given))
		if !reflect.DeepEqual(given, w.View()) {
			t.Fatalf("epoch %d: Select wrote to the view", epoch)
		}
		spoil(given)
		if len(got) < len(prefix) || !slices.Equal(got[:len(prefix)], prefix) {
			t.Fatalf("epoch %d: Select was given %v and returned %v; want what was there first", epoch, prefix, got)
		}
		crawl := slices.Clone(got[len(prefix):])
		for k := range got[:cap(got)] {
			got[:cap(got)][k] = -1
		}
		if other := b.Select(nil, level[O](w.View())); !slices.Equal(crawl, other) {
			t.Fatalf("epoch %d: policies built alike select %v and %v", epoch, crawl, other)
		}
		var sum float64
		seen := make([]bool, n)
		for _, i := range crawl {
			if i < 0 || i >= n || seen[i] {
				t.Fatalf("epoch %d: Select returned %v; want sources 0 to %d, each once", epoch, crawl, n-1)
			}
			seen[i] = true
			sum += in.Sources[i].Cost
			some = true
		}
		if !overrun && !env.Fits(sum, in.Budget) {
			t.Fatalf("epoch %d: Select returned %v, which costs %v; the budget is %v", epoch, crawl, sum, in.Budget)
		}
		brought := step(t, w, crawl)
		if learns {
			again := make([]env.Crawled, len(brought))
			for k, c := range brought {
				again[k] = c
				again[k].Items = slices.Clone(c.Items)
			}
			next := clone(w.View())
			learnA.Update(again, level[O](next))
			if !reflect.DeepEqual(next, w.View()) {
				t.Fatalf("epoch %d: Update wrote to the view", epoch)
			}
			spoil(next)
			for k := range again {
				again[k].Interest, again[k].Age, again[k].Source = math.NaN(), -1, -1
				for j := range again[k].Items {
					again[k].Items[j] = env.Item{Age: math.NaN(), Interest: math.NaN()}
				}
			}
			learnB.Update(brought, level[O](w.View()))
		}
	}
	if !some {
		t.Fatal("nothing was ever selected")
	}
}

// level returns what a level of knowledge sees of v.
func level[O env.Knowledge](v *env.Observed) *O {
	for _, o := range []any{&v.Online, &v.Model} {
		if o, ok := o.(*O); ok {
			return o
		}
	}
	return any(v).(*O)
}

func clone(v *env.Observed) *env.Observed {
	c := *v
	c.Last, c.Mean, c.State = slices.Clone(v.Last), slices.Clone(v.Mean), slices.Clone(v.State)
	return &c
}

func spoil(v *env.Observed) {
	v.Epoch = math.MinInt32
	for i := range v.Last {
		v.Last[i] = math.MinInt32
		v.Mean[i], v.State[i] = math.NaN(), math.NaN()
	}
}
