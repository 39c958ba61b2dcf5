package env_test

import (
	"fmt"
	"strings"
	"testing"

	"ephemera/env"
)

type nothing struct{}

func (nothing) Select(dst []int, _ *env.Online) []int { return dst }

type learnsNothing struct{ nothing }

func (*learnsNothing) Update([]env.Crawled, *env.Online) {}

type ofAnotherLevel struct{ nothing }

func (ofAnotherLevel) Update([]env.Crawled, *env.Model) {}

type ofItsOwn struct{ nothing }

func (ofItsOwn) Update() {}

// A policy whose Update does not make it a learner of its level would never be
// told anything, so it is refused, with the signature that is wanted.
func TestNewAgentUpdate(t *testing.T) {
	if env.NewAgent(nothing{}).Learns() || !env.NewAgent(&learnsNothing{}).Learns() {
		t.Error("a policy without Update learns, or one with it does not")
	}
	for _, p := range []env.Policy[env.Online]{ofAnotherLevel{}, &ofAnotherLevel{}, ofItsOwn{}, learnsNothing{}} {
		func() {
			defer func() {
				said := fmt.Sprint(recover())
				if !strings.Contains(said, "Update(crawls []env.Crawled, next *env.Online)") || !strings.Contains(said, fmt.Sprintf("%T", p)) {
					t.Errorf("%T: %s", p, said)
				}
			}()
			env.NewAgent(p)
		}()
	}
}
