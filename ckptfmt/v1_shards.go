package ckptfmt

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/layout"
)

// openV1Shards opens the sharded V1 checkpoint under a prefix without the pattern of its shards,
// the form that the state file has and TensorFlow accepts. If it is missing, the error matches
// [fs.ErrNotExist].
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

// missingShard returns an error for the first shard that the pattern counts and the
// checkpoint lacks, nil for none.
func (r *V1Reader) missingShard() *CorruptError {
	prefix, shards, ok := layout.CutShards(r.pattern)
	if !ok {
		return nil
	}
	for i := range shards {
		name := layout.V1ShardName(prefix, i, shards)
		if !slices.ContainsFunc(r.files, func(f *v1File) bool { return f.file.Name() == name }) {
			return lostShard(name, shards)
		}
	}
	return nil
}

// lostShard is the error for a missing file that a checkpoint has according to its other files.
func lostShard(name string, shards int) *CorruptError {
	err := fs.ErrNotExist
	if shards > 1 {
		err = fmt.Errorf("one of %d files is missing: %w", shards, err)
	}
	return &CorruptError{Name: name, Part: "shard", Err: err}
}
