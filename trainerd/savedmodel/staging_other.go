//go:build !unix

package savedmodel

import "os"

func lockFolder(string) (*os.File, lockState) { return nil, lockUnknown }
