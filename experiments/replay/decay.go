package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/optimize"
	"gonum.org/v1/gonum/stat"

	"ephemera/env"
)

// form is a way in which interest is lost with age, in hours.
type form struct {
	kind
	Param []float64 // in hours, 1/hour, or pure numbers
}

// kind is a family of forms. Its parameters are all positive but for the last
// of a mixture, a share.
type kind struct {
	Name  string
	start []float64 // logarithms of the parameters
	// left is the share of an item's interest that is left at age a, in hours.
	left func(p []float64, a float64) float64
	says func(p []float64) string
}

// The forms that are compared:
//
//	exponential  e^(−ca)
//	power law    (1 + a/τ)^(−β)
//	two rates    w e^(−c₁a) + (1 − w) e^(−c₂a)
var kinds = []kind{
	{
		Name: "exponential", start: []float64{math.Log(.2)},
		left: func(p []float64, a float64) float64 { return math.Exp(-p[0] * a) },
		says: func(p []float64) string { return fmt.Sprintf("half-life %.3g h", math.Ln2/p[0]) },
	},
	{
		Name: "power law", start: []float64{math.Log(5), math.Log(2)},
		left: func(p []float64, a float64) float64 { return math.Pow(1+a/p[0], -p[1]) },
		says: func(p []float64) string { return fmt.Sprintf("τ %.3g h, β %.3g", p[0], p[1]) },
	},
	{
		Name: "two rates", start: []float64{math.Log(.5), math.Log(.05), 0},
		left: func(p []float64, a float64) float64 {
			w := p[2] / (1 + p[2])
			return w*math.Exp(-p[0]*a) + (1-w)*math.Exp(-p[1]*a)
		},
		says: func(p []float64) string {
			w := p[2] / (1 + p[2])
			return fmt.Sprintf("half-lives %.3g h (%.0f %%) and %.3g h", math.Ln2/p[0], 100*w, math.Ln2/p[1])
		},
	},
}

// exponential returns the form of the model with that half-life.
func exponential(halfLife float64) form {
	return form{kinds[0], []float64{math.Ln2 / halfLife}}
}

// Left returns the share of an item's interest that is left at an age in hours.
func (f form) Left(age float64) float64 { return f.left(f.Param, age) }

// totals returns, for so many ages apart by step hours, the interest of a stream
// of one item an hour, each worth 1 when new, without a crawl: the integral of
// what is left.
func (f form) totals(n int, step float64) []float64 {
	t := make([]float64, n)
	for k := 1; k < n; k++ {
		t[k] = t[k-1] + quad.Fixed(f.Left, float64(k-1)*step, float64(k)*step, 8, nil, 0)
	}
	return t
}

// ages is how many ages the index of a form tells apart.
const ages = 5000

// index returns Whittle's index at the ages 0, 1, … in epochs of step hours, of
// a stream like that of totals. With F(s) what waits after s epochs, which is
// concave in s, it is
//
//	γ(s) = F(s) − s (F(s+1) − F(s))
//
// and for the exponential that of Theorem 1 of TCNS.
func (f form) index(step float64) []float64 {
	total := f.totals(ages+1, step)
	index := make([]float64, ages)
	for s := 1; s < ages; s++ {
		// It rises with the age; rounding must not let it fall.
		index[s] = max(index[s-1], total[s]-float64(s)*(total[s+1]-total[s]))
	}
	return index
}

// Half returns the half-life of an exponential form.
func (f form) Half() hours { return hours(math.Ln2 / f.Param[0]) }

// fit is a form with how well it describes feedback.
type fit struct {
	form
	R2     float64 // share of the variance that the form accounts for
	Lo, Hi float64 // 95 % interval of the half-life in hours; NaN but for the exponential
}

// Feedback is how much of the response to items has come by which age.
type Feedback struct{ items [][]response }

type response struct{ age, share float64 } // hours; of the last share of the item

const maxFeedback = 10_000_000 // rows

// ReadFeedback reads CSV, or CSV compressed by gzip, with the columns
// item_age_hours and share: how much of all the feedback that an item gets (views,
// votes, clicks) has come by that age, from 0 to 1. With a column item, shares may
// be counts as well, for each item is then fitted with a total of its own.
func ReadFeedback(ctx context.Context, path string) (*Feedback, error) {
	t, err := env.OpenTable(ctx, path, []string{"item_age_hours", "share"}, "item")
	if err != nil {
		return nil, err
	}
	defer t.Close()
	fb := &Feedback{}
	number := map[string]int{} // of each item, where they are named
	for rows := 0; ; rows++ {
		row, err := t.Next()
		if err == io.EOF {
			break
		}
		if err == nil && rows%4096 == 0 {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		if rows >= maxFeedback {
			return nil, t.Errorf("there are more rows than %d", maxFeedback)
		}
		a, errA := strconv.ParseFloat(row[0], 64)
		y, errY := strconv.ParseFloat(row[1], 64)
		switch {
		case errA != nil || !(a >= 0) || a > 1e6:
			return nil, t.Errorf("item_age_hours is %.40q; allowed is 0 to 1e6", row[0])
		case errY != nil || !(y >= 0) || !t.Has(2) && y > 1 || y > 1e18:
			return nil, t.Errorf("share is %.40q; allowed is 0 to 1, or a count where there is a column item", row[1])
		}
		k, known := number[row[2]]
		if !known {
			k = len(fb.items)
			fb.items = append(fb.items, nil)
		}
		if t.Has(2) && !known {
			number[strings.Clone(row[2])] = k
		}
		fb.items[k] = append(fb.items[k], response{a, y})
	}
	if t.Has(2) {
		fb.scale()
	}
	if n := len(fb.shares()); n < 3 {
		return nil, fmt.Errorf("%s: there are %d usable rows; needed are 3 or more", path, n)
	}
	return fb, nil
}

// scale measures each item's feedback in its greatest, and leaves out items of
// a single row, which say nothing without their total.
func (fb *Feedback) scale() {
	fb.items = slices.DeleteFunc(fb.items, func(rows []response) bool {
		most := slices.MaxFunc(rows, func(a, b response) int { return cmp.Compare(a.share, b.share) }).share
		for k := range rows {
			rows[k].share /= most
		}
		return len(rows) < 2 || most == 0
	})
}

// shares returns the shares of all rows.
func (fb *Feedback) shares() (all []float64) {
	for _, r := range slices.Concat(fb.items...) {
		all = append(all, r.share)
	}
	return all
}

// misfit returns the sum of squares that a form leaves of one item's rows. An
// item with several rows has a total P of its own, which is fitted:
//
//	Σ(y − P F(a))²,   P = Σ yF/ΣF²,   F = 1 − left
func misfit(rows []response, k kind, p []float64) float64 {
	if len(rows) == 1 {
		d := rows[0].share - (1 - k.left(p, rows[0].age))
		return d * d
	}
	var yy, yf, ff float64
	for _, r := range rows {
		f := 1 - k.left(p, r.age)
		yy += r.share * r.share
		yf += r.share * f
		ff += f * f
	}
	if ff == 0 {
		return yy
	}
	return max(0, yy-yf*yf/ff)
}

// fit fits every form by least squares; the first is the exponential. Its
// interval treats items as drawn independently: the variance of ln c is Σ gᵢ²/H² with
// gᵢ the slope of an item's sum of squares and H the curvature of the whole.
func (fb *Feedback) fit() ([]fit, error) {
	all := fb.shares()
	total := stat.PopVariance(all, nil) * float64(len(all))
	if total == 0 {
		return nil, errors.New("all shares are equal; nothing can be fitted")
	}
	var fits []fit
	for _, k := range kinds {
		at := func(x []float64) []float64 {
			p := make([]float64, len(x))
			for i, v := range x {
				p[i] = math.Exp(min(max(v, -25), 25))
			}
			return p
		}
		misfits := func(x []float64) (sum float64) {
			p := at(x)
			for _, rows := range fb.items {
				sum += misfit(rows, k, p)
			}
			return sum
		}
		res, err := optimize.Minimize(optimize.Problem{Func: misfits}, k.start, &optimize.Settings{MajorIterations: 400}, &optimize.NelderMead{})
		if res == nil {
			return nil, fmt.Errorf("%s: %w", k.Name, err)
		}
		p := at(res.X)
		f := fit{form: form{k, p}, R2: 1 - res.F/total, Lo: math.NaN(), Hi: math.NaN()}
		if len(p) == 1 {
			const h = 1e-3
			var squares, curve float64
			for _, rows := range fb.items {
				up, mid, down := misfit(rows, k, []float64{p[0] * math.Exp(h)}), misfit(rows, k, p), misfit(rows, k, []float64{p[0] * math.Exp(-h)})
				g := (up - down) / (2 * h)
				squares += g * g
				curve += (up - 2*mid + down) / (h * h)
			}
			if se := math.Sqrt(squares) / curve; curve > 0 {
				f.Lo, f.Hi = math.Ln2/p[0]*math.Exp(-1.96*se), math.Ln2/p[0]*math.Exp(1.96*se)
			}
		}
		fits = append(fits, f)
	}
	return fits, nil
}
