package lspe

import (
	"testing"

	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
)

// Every learner keeps the contract and the budget, with equal costs and
// without.
func TestLearnersConform(t *testing.T) {
	for _, in := range []env.Instance{env.Paper(1), env.Paper(2), env.Mixed(12, 4.5, 2)} {
		t.Run(in.ID+"/priced", func(t *testing.T) {
			envtest.Policy(t, in, func() env.Policy[env.Model] {
				return newModel(in, nil, stream.New(1, stream.Policy))
			})
		})
	}
}
