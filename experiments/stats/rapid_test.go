package stats

import (
	"flag"
	"os"

	_ "pgregory.net/rapid" // defines the flag
)

// Where CI decides over a change, the random cases are always the same ones;
// everywhere else each run draws new ones.
func init() {
	if os.Getenv("CI") == "true" {
		if err := flag.Set("rapid.seed", "1"); err != nil {
			panic(err)
		}
	}
}
