package experiments

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Shard is one part of the work: the runs whose number leaves the remainder
// Index when divided by Count. The zero value is all of the work.
type Shard struct{ Index, Count int }

// IsAll reports whether it is all of the work.
func (s Shard) IsAll() bool { return s.Count <= 1 }

func (s Shard) has(i int) bool { return s.IsAll() || i%s.Count == s.Index }

// ParseShard reads i/n with 0 ≤ i < n.
func ParseShard(text string) (Shard, error) {
	i, n, ok := strings.Cut(text, "/")
	a, err1 := strconv.Atoi(i)
	b, err2 := strconv.Atoi(n)
	if !ok || err1 != nil || err2 != nil || b < 1 || a < 0 || a >= b {
		return Shard{}, fmt.Errorf("shard is %q; allowed is i/n with 0 ≤ i < n, such as 0/8", text)
	}
	return Shard{a, b}, nil
}

// ShardFromSlurm returns the shard that the environment of a Slurm array job
// names, and all of the work outside of one. Arrays may begin anywhere and leave
// gaps only at SLURM_ARRAY_TASK_STEP.
func ShardFromSlurm(env func(string) string) (Shard, error) {
	if env("SLURM_ARRAY_TASK_ID") == "" || env("SLURM_ARRAY_TASK_COUNT") == "" {
		return Shard{}, nil
	}
	var errs []error
	num := func(name string, otherwise int) int {
		text := env("SLURM_ARRAY_TASK_" + name)
		if text == "" {
			return otherwise
		}
		v, err := strconv.Atoi(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("SLURM_ARRAY_TASK_%s is %q; a whole number is needed", name, text))
		}
		return v
	}
	i, n, first, step := num("ID", 0), num("COUNT", 1), num("MIN", 0), num("STEP", 1)
	last := num("MAX", first+(n-1)*step)
	if errs != nil {
		return Shard{}, errors.Join(errs...)
	}
	if step < 1 || n < 1 || i < first || (i-first)%step != 0 || (i-first)/step >= n || last != first+(n-1)*step {
		return Shard{}, fmt.Errorf("task %d of an array of %d from %d to %d by %d: it has gaps, so its numbers do not say which shards are meant; name the shard with -shard i/n", i, n, first, last, step)
	}
	return Shard{(i - first) / step, n}, nil
}
