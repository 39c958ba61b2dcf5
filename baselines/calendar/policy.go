package calendar

import (
	"fmt"

	"ephemera/env"
)

// Policy crawls what a calendar chooses.
type Policy struct {
	cal    *Calendar
	chosen []int
}

// NewPolicy returns the policy that crawls by decreasing index within the
// budget of t. The function of returns the parameters of each source.
func NewPolicy(t env.Terms, ix Index, of func(i int) Params) *Policy {
	return &Policy{cal: empty(t.Costs, t.Budget, ix, of)}
}

// NewWhittle returns the exact Whittle index policy on the mean state, which
// follows from the age, with the parameters of the sources known.
func NewWhittle(in env.Instance) *Policy {
	return NewPolicy(in.Terms(), Whittle{}, func(i int) Params { return Whittle{}.Of(in.Sources[i]) })
}

// Calendar returns the calendar, to tell it of changes.
func (p *Policy) Calendar() *Calendar { return p.cal }

// Select implements env.Policy. Where o does not continue the epoch of the last
// call with the crawls that it chose, the calendar is built anew from o.
func (p *Policy) Select(dst []int, o *env.Online) []int {
	if len(o.Last) != p.cal.Len() {
		panic(fmt.Sprintf("calendar: %d last crawls for %d sources", len(o.Last), p.cal.Len()))
	}
	if !p.continues(o) {
		p.cal.Reset(o.Epoch, o.Last)
	}
	p.chosen = p.cal.Next(p.chosen[:0])
	return append(dst, p.chosen...)
}

func (p *Policy) continues(o *env.Online) bool {
	if o.Epoch != p.cal.Epoch() || o.Epoch == 0 {
		return false
	}
	for _, i := range p.chosen {
		if o.Last[i] != o.Epoch-1 {
			return false
		}
	}
	return true
}

var _ env.Policy[env.Online] = (*Policy)(nil)
