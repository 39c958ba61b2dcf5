// Package papers measures every figure that four documents print, judges it,
// and draws the figures of TCNS.
//
//   - TCNS: Avrachenkov and Borkar, "Whittle index policy for crawling ephemeral
//     content", IEEE Transactions on Control of Network Systems 5(1), 2018
//   - CDC: the conference version, CDC 2015
//   - slides: the talk at MAS 2016, Grenoble
//   - Allerton: the same authors, "A learning algorithm for the Whittle index
//     policy for scheduling web crawlers", Allerton conference 2019
//
// From a model to a verdict:
//
//  1. readings.go plays policies. A reading is one way to fill what a document
//     leaves open, and each reading has its sample: one value, or one for each
//     seed.
//  2. figures.toml says what was printed, where, and which readings it has;
//     catalogue.go reads it.
//  3. judge.go sets the samples of all readings beside the printed figure.
//  4. write.go prints the rows, and pictures.go draws.
package papers
