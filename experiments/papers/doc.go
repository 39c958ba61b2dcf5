// Package papers reproduces what the papers print: every figure of four
// documents is measured and judged, and the figures of TCNS are drawn.
//
//   - TCNS: Avrachenkov and Borkar, "Whittle index policy for crawling ephemeral
//     content", IEEE Transactions on Control of Network Systems 5(1), 2018
//   - CDC: the conference version, CDC 2015
//   - slides: the talk at MAS 2016, Grenoble
//   - Allerton: the same authors, "A learning algorithm for the Whittle index
//     policy for scheduling web crawlers", Allerton conference 2019
//
// The way from a model to a verdict:
//
//  1. study.go plays policies: a few runs of the mean dynamics, and for every
//     seed the stochastic model and the learner. A reading is one way to fill
//     what a document leaves open, and each reading has its samples.
//  2. catalogue.go says what was printed, where, and which readings there are.
//  3. judge.go sets the samples of every reading beside the printed figure.
//  4. write.go prints the rows, and pictures.go draws.
package papers
