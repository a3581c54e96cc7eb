//go:build !unix

package openfile

func mostOpen() int { return atMost }
