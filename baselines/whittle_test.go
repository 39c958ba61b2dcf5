package baselines

import (
	"testing"

	"ephemera/env"
	"ephemera/env/envtest"
)

func TestWhittlePoliciesAgree(t *testing.T) {
	for _, m := range []float64{1, 2, 3} {
		in := env.Paper(m)
		a := run(t, in, NewWhittle(in), 2000)
		b := run(t, in, NewWhittleObserved(in, false), 2000)
		envtest.Near(t, "reward", a, b, 1e-12)
	}
}
