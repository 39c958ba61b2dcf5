// Package estimate holds what crawled items tell about their sources:
// [Estimates] of rates and decay, and a [Forecast] of what is published, by hour
// and day.
package estimate
