//go:build !unix

package ckptfmt

import "os"

func mapFile(*os.File, int64) ([]byte, error) { return nil, errNoMmap }

func unmapFile([]byte) error { return nil }
