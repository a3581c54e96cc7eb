package ckptfmt

import (
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"os"
	"path/filepath"
	"strings"
)

// openV1Shards opens the sharded V1 checkpoint under a prefix without the
// pattern of its shards, as the state file has it and TensorFlow takes it. A
// missing one matches [fs.ErrNotExist].
func openV1Shards(prefix string) (*V1Reader, error) {
	pattern, err := layout.FindV1(prefix)
	if err != nil {
		return nil, err
	}
	dir, base := filepath.Split(pattern)
	begin, end, _ := strings.Cut(base, "?????")
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), begin)
		if number, found := strings.CutSuffix(number, end); ok && found && len(number) == 5 && strings.Trim(number, "0123456789") == "" {
			names = append(names, dir+e.Name())
		}
	}
	return openV1Files(pattern, names)
}
