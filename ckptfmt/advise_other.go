//go:build !linux

package ckptfmt

// adviseHuge does nothing: these systems choose the size of pages themselves.
func adviseHuge([]byte) {}
