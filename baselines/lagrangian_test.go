package baselines

import (
	"testing"

	"ephemera/env"
	"ephemera/env/envtest"
)

func TestLagrangianOnTableI(t *testing.T) {
	for _, m := range []float64{1, 2, 3} {
		in := env.Paper(m)
		envtest.Near(t, "reward over 1000 epochs", run(t, in, NewLagrangian(in), 1000), run(t, in, NewWhittle(in), 1000), 1e-12)
		envtest.Near(t, "reward in the long run", longRun(t, in, NewLagrangian(in), 7000, 7000), longRun(t, in, NewWhittle(in), 7000, 7000), 1e-12)
	}
}
