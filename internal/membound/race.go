//go:build race

package membound

// counts is false under the race detector, which drops at random what is kept
// for later use in pools.
const counts = false
