package critic

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"ephemera/env/stream"
)

// TestBankAgainstSlow holds a bank against the recursion with dense matrices and
// direct solves, and against Critic, transition by transition.
func TestBankAgainstSlow(t *testing.T) {
	for l := 1; l <= 4; l++ {
		const n, epsilon, gamma = 3, .3, .4
		first := make([]float64, l)
		for j := range first {
			first[j] = epsilon
		}
		k := NewBank(n, 2, first, gamma)
		slow := make([]*slowLSPE, n)
		critics := make([]*Critic, n)
		for i := range slow {
			slow[i] = newSlowLSPE(l, gamma, epsilon)
			set := Settings{Gamma: gamma, Step: Constant(.01 * float64(i+1)), Inverse: DefaultInverseSettings()}
			set.Inverse.Epsilon = epsilon
			var err error
			if critics[i], err = New(l, set); err != nil {
				t.Fatal(err)
			}
		}
		r := stream.New(uint64(l), stream.Test)
		phi, next, d := make([]float64, l), make([]float64, l), make([]float64, l)
		for e := range 3000 {
			i := r.Intn(n)
			for j := range phi {
				phi[j], next[j] = r.Float64()-.3, r.Float64()-.3
				d[j] = next[j] - phi[j]
			}
			reward, b := r.Float64(), .01*float64(i+1)
			rho := reward - slow[i].eta
			if err := slow[i].step(phi, next, reward, b); err != nil {
				t.Fatal(err)
			}
			critics[i].Step(phi, next, reward)
			k.Begin(i, b)
			k.Square(1, phi)
			k.Change(1, phi, d)
			k.Reward(0, rho, phi)
			k.Reward(1, 2*rho, phi)
			if !k.Solve(1) {
				t.Fatalf("ℓ = %d, step %d, problem %d: B⁻¹ was not trusted", l, e, i)
			}
			x, y := k.Weights(i, 0), k.Weights(i, 1)
			for j := range l {
				want := slow[i].r.AtVec(j)
				if !close(x[j], want) || !close(y[j], 2*want) || !close(critics[i].Weights()[j], want) {
					t.Fatalf("ℓ = %d, step %d, problem %d: r(%d) = %v, %v; of Critic %v; direct solve gives %v", l, e, i, j, x[j], y[j], critics[i].Weights()[j], want)
				}
			}
		}
	}
}

func close(got, want float64) bool { return math.Abs(got-want) <= 1e-8*(1+math.Abs(want)) }

// TestBankSteps: so many steps by doubling are so many single steps.
func TestBankSteps(t *testing.T) {
	for _, steps := range []int{1, 2, 3, 7, 64, 1000} {
		batch := func(steps, times int) []float64 {
			k := NewBank(1, 1, []float64{1, 2}, .2)
			k.Begin(0, .5)
			k.Square(1, []float64{1, .5})
			k.Change(1, []float64{1, .5}, []float64{-.2, .1})
			k.Reward(0, 3, []float64{1, .5})
			for range times {
				k.Solve(steps)
			}
			return k.Weights(0, 0)
		}
		got, want := batch(steps, 1), batch(1, steps)
		if !close(got[0], want[0]) || !close(got[1], want[1]) {
			t.Errorf("%d steps: r = %v; one by one %v", steps, got, want)
		}
	}
}

// TestBankFallback: a batch whose features lie on a line, of very different
// sizes, and a feature that fades away: the fallback is taken and counted, and
// B⁻¹ is right again after it.
func TestBankFallback(t *testing.T) {
	k := NewBank(2, 1, []float64{1e8, 1e-4}, .2)
	r := stream.New(1, stream.Test)
	for range 20000 {
		v := 1e4 * r.Float64()
		k.Begin(1, .2)
		k.Square(1, []float64{v, 1e-6 * v})
		k.Change(1, []float64{v, 1e-6 * v}, []float64{-v, -1e-6 * v})
		k.Reward(0, 5, []float64{v, 1e-6 * v})
		if !k.Solve(3) {
			var product mat.Dense
			product.Mul(mat.NewSymDense(2, k.b), mat.NewDense(2, 2, k.p))
			if e := math.Abs(product.At(0, 0)-1) + math.Abs(product.At(1, 1)-1) + math.Abs(product.At(0, 1))*1e-6; e > 1e-6 {
				t.Fatalf("after a fallback B B⁻¹ is %v", mat.Formatted(&product))
			}
		}
	}
	if k.Fallbacks() == 0 {
		t.Error("no fallback")
	}
	fell := k.Fallbacks()
	for n := range 20000 { // the second feature fades, and the first must not notice
		k.Begin(0, .2)
		k.Square(1, []float64{1, 0})
		k.Change(1, []float64{1, 0}, []float64{-1, 0})
		k.Reward(0, 5, []float64{1, 0})
		k.Solve(1)
		if v := k.b[0]; n > 200 && math.Abs(v-1) > .01 {
			t.Fatalf("batch %d: the mean square of a feature that is always 1 is %v", n, v)
		}
		if v := k.p[3]; !(v < 2/(bankFaded*k.first[1])) {
			t.Fatalf("batch %d: B⁻¹ of a feature that has faded is %v", n, v)
		}
	}
	if k.Fallbacks() == fell || k.Fallbacks() > fell+200 {
		t.Errorf("%d fallbacks while a feature faded", k.Fallbacks()-fell)
	}
	if r := k.Weights(0, 0); !close(r[0], 5) || r[1] != 0 {
		t.Errorf("r = %v; want 5, 0", r)
	}
}

// TestBankTrust: B⁻¹ is trusted up to an error of 10⁻⁶ of the units of the
// features, whichever entry it is in. Trusted or not, the step of r is γB⁻¹b̄.
func TestBankTrust(t *testing.T) {
	for place := range 4 {
		for _, c := range []struct {
			wrong float64
			want  bool
		}{{.5e-6, true}, {3e-6, false}, {math.NaN(), false}} {
			first := []float64{1e8, 1e-4}
			k := NewBank(1, 1, first, .2)
			k.Begin(0, .5)
			k.Reward(0, 1, []float64{1e4, 1e-2})
			k.p[place] += c.wrong / math.Sqrt(first[place/2]*first[place%2])
			if k.Solve(1) != c.want {
				t.Errorf("entry %d of B⁻¹ wrong by %v: trusted is %v", place, c.wrong, !c.want)
			}
			for j, r := range k.Weights(0, 0) {
				if want := .2 / math.Sqrt(first[j]); math.Abs(r-want) > 1e-5*want {
					t.Errorf("entry %d of B⁻¹ wrong by %v: r(%d) is %v; want %v", place, c.wrong, j, r, want)
				}
			}
			if !c.want && !k.Solve(1) {
				t.Errorf("entry %d of B⁻¹ wrong by %v: not trusted after a fallback", place, c.wrong)
			}
		}
	}
}

// TestBankCopies: what is rescaled goes on as if its reward had always been that
// much greater; a clone goes on alike and by itself.
func TestBankCopies(t *testing.T) {
	work := func(k *Bank, reward float64) {
		k.Begin(0, .3)
		k.Square(1, []float64{1, .5})
		k.Change(1, []float64{1, .5}, []float64{-.2, .1})
		k.Reward(0, reward, []float64{1, .5})
		k.Reward(1, 1, []float64{1, .5})
		k.Solve(2)
	}
	k, want := NewBank(1, 2, []float64{1, 2}, .2), NewBank(1, 2, []float64{1, 2}, .2)
	work(k, 2)
	work(want, 8)
	k.Rescale(0, 0, 4)
	work(k, 8)
	work(want, 8)
	if !slices.Equal(k.data, want.data) {
		t.Errorf("after Rescale %v; want %v", k.data, want.data)
	}
	k.p[0] = math.NaN()
	work(k, 8)
	c := k.Clone()
	if c.Fallbacks() != 1 || !slices.Equal(c.data, k.data) {
		t.Errorf("the clone has %d fallbacks and %v; want 1 and %v", c.Fallbacks(), c.data, k.data)
	}
	work(c, 8)
	if slices.Equal(c.data, k.data) {
		t.Error("the clone shares its numbers")
	}
}

func TestBankState(t *testing.T) {
	k := NewBank(2, 2, []float64{1, 2}, .2)
	work := func(k *Bank) {
		k.Begin(1, .5)
		k.Square(1, []float64{1, .5})
		k.Change(1, []float64{1, .5}, []float64{-.2, .1})
		k.Reward(1, 3, []float64{1, .5})
		k.Solve(2)
	}
	work(k)
	s := k.State()
	c := NewBank(2, 2, []float64{5, 5}, .2)
	if err := c.SetState(s); err != nil {
		t.Fatal(err)
	}
	work(k)
	work(c)
	for j, v := range k.data {
		if c.data[j] != v {
			t.Fatalf("number %d is %v after SetState; want %v", j, c.data[j], v)
		}
	}
	for want, change := range map[string]func(*BankState){
		"fallbacks is -1":               func(s *BankState) { s.Fallbacks = -1 },
		"a has 0 entries; allowed are ": func(s *BankState) { s.A = nil },
		"inverse has NaN at place 3":    func(s *BankState) { s.Inverse[3] = math.NaN() },
	} {
		s := k.State()
		change(&s)
		if err := c.SetState(s); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v; want %q", err, want)
		}
	}
}

// BenchmarkBank is a batch of so many transitions, ℓ features and two rewards.
func BenchmarkBank(b *testing.B) {
	for _, c := range []struct{ l, batch int }{{2, 1}, {2, 4}, {3, 1}, {8, 1}} {
		b.Run(fmt.Sprintf("l=%d/batch=%d", c.l, c.batch), func(b *testing.B) {
			first := make([]float64, c.l)
			for j := range first {
				first[j] = 1
			}
			k := NewBank(1, 2, first, .2)
			const m = 64
			x := make([]float64, (m+1)*c.l)
			for i := range x {
				x[i] = float64((i*7919)%101) / 101
			}
			d := make([]float64, c.l)
			at := 0
			share := 1 / float64(c.batch)
			turn := func() {
				for range 100 {
					k.Begin(0, .05)
					for range c.batch {
						phi, next := x[at*c.l:][:c.l], x[(at+1)*c.l:][:c.l]
						for j := range d {
							d[j] = next[j] - phi[j]
						}
						k.Square(share, phi)
						k.Change(share, phi, d)
						k.Reward(0, share, phi)
						k.Reward(1, -share, phi)
						at = (at + 1) % m
					}
					k.Solve(c.batch)
				}
			}
			best := time.Hour
			b.ReportAllocs()
			for b.Loop() {
				began := time.Now()
				turn()
				best = min(best, time.Since(began))
			}
			b.ReportMetric(float64(best.Nanoseconds())/100, "ns/step")
			b.ReportMetric(0, "ns/op")
		})
	}
}
