package critic

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Steps is a schedule of step sizes as data, for n = 1, 2, …:
//
//	c / ⌈(n + s)/block⌉^power
//
// Power 0 is a constant step, which tracks. Its text forms, for flags and
// configuration files:
//
//	1/(n+1)               c = 1, s = 1, block 1, power 1
//	0.5/ceil(n/500)       a(n) of Allerton, section IV, with c = 0.5
//	0.5/ceil(n/1000)^2/3  b(n) of Allerton; ^0.6667 is allowed as well
//	0.5,1000,2/3          the same, short: c,block,power
//	0.01                  constant
//
// The count begins at 1: at n = 0 the paper's ⌈n/500⌉ is 0, and its 1/(n+1)
// is 1, which wipes out what the recursion began with.
type Steps struct {
	Scale float64 // c, above 0
	Block int     // epochs with the same step; 1 or more
	Power float64 // 0 or more
	Shift int     // s; 0 or more
}

// Constant returns the schedule that is always c.
func Constant(c float64) Steps { return Steps{Scale: c, Block: 1} }

// Harmonic returns 1/(n+1), the running average.
func Harmonic() Steps { return Steps{Scale: 1, Block: 1, Power: 1, Shift: 1} }

// At returns the step of count n. It panics unless n is 1 or more.
func (s Steps) At(n int) float64 {
	if n < 1 {
		panic(fmt.Sprintf("learner: step of count %d; counts begin at 1", n))
	}
	return s.of(s.block(n))
}

// block returns ⌈(n + s)/block⌉.
func (s Steps) block(n int) int { return (n + s.Shift + s.Block - 1) / s.Block }

func (s Steps) of(block int) float64 {
	switch s.Power {
	case 0:
		return s.Scale
	case 1:
		return s.Scale / float64(block)
	}
	return s.Scale * math.Pow(float64(block), -s.Power)
}

// InOrder returns At for counts that follow each other: it computes the step once
// for each block.
func (s Steps) InOrder() func(n int) float64 {
	first, last, step := 1, 0, 0. // of the block
	return func(n int) float64 {
		if n < first || n > last {
			block := s.block(n)
			last = block*s.Block - s.Shift
			first, step = last-s.Block+1, s.of(block)
		}
		return step
	}
}

// Valid reports the first field of the steps of that name that is out of its range.
func (s Steps) Valid(name string) error {
	switch {
	case !(s.Scale > 0) || math.IsInf(s.Scale, 0):
		return fmt.Errorf("%s: scale c is %v; allowed is a finite number above 0", name, s.Scale)
	case s.Block < 1 || s.Block > maxCount:
		return fmt.Errorf("%s: block is %d; allowed is 1 to %d", name, s.Block, maxCount)
	case !(s.Power >= 0) || s.Power > 4:
		return fmt.Errorf("%s: power is %v; allowed is 0 to 4", name, s.Power)
	case s.Shift < 0 || s.Shift > maxCount:
		return fmt.Errorf("%s: shift is %d; allowed is 0 to %d", name, s.Shift, maxCount)
	}
	return nil
}

const maxCount = min(1<<40, math.MaxInt/2)

// String returns a text form that [ParseSteps] reads back exactly.
func (s Steps) String() string {
	c := strconv.FormatFloat(s.Scale, 'g', -1, 64)
	if s.Power == 0 && s.Block == 1 && s.Shift == 0 {
		return c
	}
	n := "n"
	if s.Shift != 0 || s.Block == 1 {
		n = strings.Replace(fmt.Sprintf("(n+%d)", s.Shift), "+0", "", 1)
	}
	if s.Block != 1 {
		n = fmt.Sprintf("ceil(%s/%d)", n, s.Block)
	}
	if s.Power == 1 {
		return c + "/" + n
	}
	for _, f := range []string{"1/2", "1/3", "2/3", "3/4"} {
		if v, _ := parseNumber(f); v == s.Power {
			return c + "/" + n + "^" + f
		}
	}
	return c + "/" + n + "^" + strconv.FormatFloat(s.Power, 'g', -1, 64)
}

// ParseSteps reads one of the text forms of [Steps].
func ParseSteps(text string) (Steps, error) {
	s, ok := parseSteps(strings.ReplaceAll(text, " ", ""))
	if !ok {
		return Steps{}, fmt.Errorf("step %q is not understood; "+
			"allowed are c/(n+shift)^power, c/ceil((n+shift)/block)^power, c,block,power and a constant, "+
			"in which shift and power may be left out", text)
	}
	if err := s.Valid(fmt.Sprintf("step %q", text)); err != nil {
		return Steps{}, err
	}
	return s, nil
}

// form is c/n, c/(n+s) or c/ceil((n+s)/block), with or without a power.
var form = func() *regexp.Regexp {
	const count = `(?:n|\(n(?:\+(\d+))?\))`
	return regexp.MustCompile(`^([^n]+)/(?:` + count + `|ceil\(` + count + `/(\d+)\))(?:\^(.+))?$`)
}()

func parseSteps(t string) (s Steps, ok bool) {
	c, shift, block, power := t, "0", "1", "0"
	if m := form.FindStringSubmatch(t); m != nil {
		c, shift, block, power = m[1], cmp.Or(m[2], m[3], shift), cmp.Or(m[4], block), cmp.Or(m[5], "1")
	} else if part := strings.Split(t, ","); len(part) == 3 {
		c, block, power = part[0], part[1], part[2]
	}
	var err [4]error
	s.Scale, err[0] = parseNumber(c)
	s.Power, err[1] = parseNumber(power)
	s.Shift, err[2] = strconv.Atoi(shift)
	s.Block, err[3] = strconv.Atoi(block)
	return s, errors.Join(err[:]...) == nil
}

// parseNumber reads a decimal number or a fraction of two.
func parseNumber(t string) (float64, error) {
	over, under, fraction := strings.Cut(t, "/")
	if !fraction {
		under = "1"
	}
	v, err := strconv.ParseFloat(over, 64)
	d, err2 := strconv.ParseFloat(under, 64)
	return v / d, errors.Join(err, err2)
}

// MarshalText returns the text form.
func (s Steps) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a text form.
func (s *Steps) UnmarshalText(b []byte) (err error) {
	*s, err = ParseSteps(string(b))
	return err
}
