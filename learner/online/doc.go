// Package online holds the actor-critic with nothing known beforehand but what
// crawls bring back.
package online
