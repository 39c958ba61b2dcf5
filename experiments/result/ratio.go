package result

import (
	"encoding/json"
	"math"
)

// Ratio is a number that may be missing, such as a share of a bound that nobody knows. The
// zero value is missing. Code computes with its Value, NaN where it is missing; JSON has
// null there or, with omitzero, nothing.
type Ratio struct {
	value float64
	known bool
}

// RatioOf returns a ratio of that value, which is missing if that is not a finite number.
func RatioOf(v float64) Ratio {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Ratio{}
	}
	return Ratio{v, true}
}

// Value returns the number, NaN if it is missing.
func (r Ratio) Value() float64 {
	if !r.known {
		return math.NaN()
	}
	return r.value
}

// IsZero reports whether the number is missing. For omitzero that is the zero value; the
// number 0 is not.
func (r Ratio) IsZero() bool { return !r.known }

// Text prints the number, or nothing if it is missing.
func (r Ratio) Text(print func(v float64) string) string {
	if !r.known {
		return ""
	}
	return print(r.value)
}

// MarshalJSON implements json.Marshaler.
func (r Ratio) MarshalJSON() ([]byte, error) {
	if !r.known {
		return []byte("null"), nil
	}
	return json.Marshal(r.value)
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Ratio) UnmarshalJSON(text []byte) error {
	var v *float64
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	if *r = (Ratio{}); v != nil {
		*r = RatioOf(*v)
	}
	return nil
}

// Share returns the share that a reward has of another. Costs are below 0, and of them it
// is the other's over the reward: less than 1 is worse there too.
func Share(reward, of float64) float64 {
	if of < 0 {
		return of / reward
	}
	return reward / of
}

// Shares returns those of many.
func Shares(rewards, of []float64) (shares []float64) {
	for k, r := range rewards {
		shares = append(shares, Share(r, of[k]))
	}
	return shares
}
