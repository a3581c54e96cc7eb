//go:build !race

package membound

const counts = true
