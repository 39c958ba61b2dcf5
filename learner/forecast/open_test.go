package forecast

import (
	"testing"

	"ephemera/env"
	"ephemera/env/envtest"
)

// TestOpen: limits hold while sources come and go.
func TestOpen(t *testing.T) {
	envtest.Open(t, func(terms env.Terms) env.DynamicLearner { return newLearner(terms, nil) })
}
