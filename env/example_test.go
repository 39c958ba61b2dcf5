package env_test

import (
	"fmt"
	"log"
	"strings"

	"ephemera/env"
)

func ExampleSource() {
	for _, s := range env.Paper(1).Sources {
		fmt.Printf("source %s: α = %.4f, u = %.2f, u* = %.2f\n", s.Name, s.Factor(), s.Gain(), s.Ceiling())
	}
	// Output:
	// source 1: α = 0.4966, u = 179.79, u* = 357.14
	// source 2: α = 0.7047, u = 147.66, u* = 500.00
	// source 3: α = 0.4966, u = 35.96, u* = 71.43
	// source 4: α = 0.8106, u = 18.04, u* = 95.24
}

// The mean dynamics of the papers lose through the window from the first epoch
// on; in truth nothing is old enough to drop before the window has passed.
func ExampleSource_Harvest() {
	s := env.NewSource("news", 100, 0.2, 1)
	s.Window = 5
	for _, age := range []int{1, 2, 3, 5, 8, 20} {
		fmt.Printf("age %2d: mean dynamics %6.2f, exact %6.2f\n", age, s.MeanState(age), s.Harvest(float64(age)))
	}
	// Output:
	// age  1: mean dynamics  57.29, exact  90.63
	// age  2: mean dynamics 104.20, exact 164.84
	// age  3: mean dynamics 142.60, exact 225.59
	// age  5: mean dynamics 199.79, exact 316.06
	// age  8: mean dynamics 252.25, exact 316.06
	// age 20: mean dynamics 310.27, exact 316.06
}

func ExampleNamed() {
	for _, name := range []string{"paper", "lognormal:50:7", "mixed:20"} {
		in, err := env.Named(name, 2)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(in.ID, len(in.Sources), in.Budget)
	}
	_, err := env.Named("pareto:9", 2)
	about, _, _ := strings.Cut(err.Error(), "; allowed laws") // are those of the table
	fmt.Println(strings.NewReplacer("; ", ";\n", "wide, ", "wide,\n", "pages, ", "pages,\n").Replace(about))
	// Output:
	// paper 4 2
	// lognormal/50/7 50 2
	// mixed/20/1 20 2
	// unknown instance "pareto:9";
	// allowed are paper, FAMILY:N[:SEED] with the families drift, hosts, lognormal, mixed, pages,
	// pages-correlated, pages-pinged, quiet, wide,
	// either with :LAW at its end, and the path of a .toml file
}

func ExampleNewMean() {
	w, err := env.NewMean(env.Paper(1), false)
	if err != nil {
		log.Fatal(err)
	}
	for _, crawl := range [][]int{{0}, {1}, {0}} {
		got, err := w.Step(crawl)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("source %d, age %d: %.2f\n", got[0].Source, got[0].Age, got[0].Interest)
	}
	_, err = w.Step([]int{0, 1})
	fmt.Println(err)
	// Output:
	// source 0, age 1: 179.79
	// source 1, age 2: 251.71
	// source 0, age 2: 269.07
	// epoch 3: crawls cost 2; allowed is the budget, 1
}
