package replay

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/optimize"

	"ephemera/env"
)

// Feedback is the half-life that was estimated from how much of the response to
// items had come by which age, in hours.
type Feedback struct {
	HalfLife float64
	Lo, Hi   float64 // 95 % interval, in which items count as independent; NaN where there is none
	R2       float64 // share of the variance that the exponential accounts for
}

// response is a row of feedback: the share of the last of an item's that had come
// by that age in hours.
type response struct{ age, share float64 }

// ReadFeedback reads CSV, or CSV compressed by gzip, with the columns
// item_age_hours and share: how much of all the feedback that an item gets (views,
// votes, clicks) has come by that age, from 0 to 1. With a column item, shares may
// be counts as well, for each item is then fitted with a total of its own.
func ReadFeedback(ctx context.Context, path string) (*Feedback, error) {
	t, err := env.OpenTable(path, []string{"item_age_hours", "share"}, "item")
	if err != nil {
		return nil, err
	}
	defer t.Close()
	var items [][]response
	place := map[string]int{} // of each item among them, where they are named
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		row, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		age, errAge := strconv.ParseFloat(row[0], 64)
		share, errShare := strconv.ParseFloat(row[1], 64)
		switch {
		case errAge != nil || !(age >= 0 && age <= 1e6):
			return nil, t.Errorf("item_age_hours is %.40q; allowed is 0 to 1e6", row[0])
		case errShare != nil || !(share >= 0 && share <= 1e18) || !t.Has(2) && share > 1:
			return nil, t.Errorf("share is %.40q; allowed is 0 to 1, or a count where there is a column item", row[1])
		}
		k, seen := place[row[2]]
		if !seen {
			k = len(items)
			items = append(items, nil)
			if t.Has(2) {
				place[strings.Clone(row[2])] = k
			}
		}
		items[k] = append(items[k], response{age, share})
	}
	if t.Has(2) {
		items = inGreatest(items)
	}
	f, err := fitHalfLife(items)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// inGreatest measures each item's feedback in its greatest, and leaves out items of
// a single row, which say nothing without their total.
func inGreatest(items [][]response) [][]response {
	return slices.DeleteFunc(items, func(rows []response) bool {
		most := 0.0
		for _, r := range rows {
			most = max(most, r.share)
		}
		for k := range rows {
			rows[k].share /= most
		}
		return len(rows) < 2 || most == 0
	})
}

// misfit returns the sum of squares that decay at rate c leaves of one item's rows.
// An item with several rows has a total P of its own, which is fitted:
//
//	Σ(y − P F(a))²,   P = Σ yF/ΣF²,   F(a) = 1 − e^(−ca)
func misfit(rows []response, c float64) float64 {
	var yy, yf, ff float64
	for _, r := range rows {
		f := 1 - math.Exp(-c*r.age)
		yy += r.share * r.share
		yf += r.share * f
		ff += f * f
	}
	switch {
	case len(rows) == 1: // P = 1
		d := rows[0].share - (1 - math.Exp(-c*rows[0].age))
		return d * d
	case ff == 0:
		return yy
	}
	return max(0, yy-yf*yf/ff)
}

// fitHalfLife fits c by least squares over the logarithm of c. Its interval treats
// items as drawn independently: the variance of ln c is Σ gᵢ²/H² with gᵢ the slope
// of an item's sum of squares and H the curvature of the whole.
func fitHalfLife(items [][]response) (*Feedback, error) {
	var n, sum, squares float64
	for _, rows := range items {
		for _, r := range rows {
			n++
			sum += r.share
			squares += r.share * r.share
		}
	}
	if n < 3 {
		return nil, fmt.Errorf("there are %v usable rows; needed are 3 or more", n)
	}
	total := squares - sum*sum/n
	if total <= 1e-12*squares {
		return nil, fmt.Errorf("all shares are equal; nothing can be fitted")
	}
	misfits := func(x []float64) (sum float64) {
		for _, rows := range items {
			sum += misfit(rows, math.Exp(min(max(x[0], -25), 25)))
		}
		return sum
	}
	res, err := optimize.Minimize(optimize.Problem{Func: misfits}, []float64{math.Log(.2)}, &optimize.Settings{MajorIterations: 400}, &optimize.NelderMead{})
	if res == nil {
		return nil, err
	}
	const h = 1e-3
	var slopes, curvature float64
	for _, rows := range items {
		at := func(step float64) float64 { return misfit(rows, math.Exp(res.X[0]+step)) }
		g := (at(h) - at(-h)) / (2 * h)
		slopes += g * g
		curvature += (at(h) - 2*at(0) + at(-h)) / (h * h)
	}
	f := &Feedback{HalfLife: math.Ln2 / math.Exp(res.X[0]), R2: 1 - res.F/total, Lo: math.NaN(), Hi: math.NaN()}
	if se := math.Sqrt(slopes) / curvature; curvature > 0 {
		f.Lo, f.Hi = f.HalfLife*math.Exp(-1.96*se), f.HalfLife*math.Exp(1.96*se)
	}
	return f, nil
}
