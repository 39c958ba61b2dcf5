package experiments

import (
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
	if env("SLURM_ARRAY_TASK_ID") == "" {
		return Shard{}, nil
	}
	var v [5]int
	for k, name := range []string{"ID", "COUNT", "MIN", "MAX", "STEP"} {
		var err error
		if v[k], err = strconv.Atoi(env("SLURM_ARRAY_TASK_" + name)); err != nil {
			return Shard{}, fmt.Errorf("SLURM_ARRAY_TASK_%s: %w", name, err)
		}
	}
	id, count, first, last, step := v[0], v[1], v[2], v[3], max(1, v[4])
	if last != first+(count-1)*step {
		return Shard{}, fmt.Errorf("an array of %d tasks from %d to %d by %d has gaps, so that its numbers do not say which shards are meant; name the shard with -shard i/n", count, first, last, step)
	}
	return Shard{(id - first) / step, count}, nil
}
