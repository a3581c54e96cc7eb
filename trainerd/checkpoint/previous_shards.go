package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

// missingShard returns the error of the first file that a V1 checkpoint of
// several shards lacks, and nil for any other checkpoint.
func missingShard(pattern string) error {
	prefix, shards, ok := layout.CutShards(pattern)
	if !ok {
		return nil
	}
	for i := range shards {
		if _, err := os.Lstat(layout.V1ShardName(prefix, i, shards)); err != nil {
			return err
		}
	}
	return nil
}

// keepPreviousShards is keepPrevious for a V1 checkpoint of several shards. It has no index: the
// first shard is published last, and removed first.
func (s *Saver) keepPreviousShards(prefix string, shards int) error {
	pattern := fmt.Sprintf("%s%s%05d", prefix, layout.ShardMark, shards)
	fsys, dir := atomicfile.OrOS(s.FS), filepath.Dir(prefix)
	if missingShard(pattern) == nil {
		if err := s.removePreviousShards(pattern); err != nil {
			return err
		}
		for i := range shards {
			if err := atomicfile.Link(s.FS, layout.V1ShardName(prefix, i, shards), layout.V1ShardName(prefix+previousSuffix, i, shards)); err != nil {
				return err
			}
		}
		if err := atomicfile.RemoveIfExists(fsys, manifest.Name(pattern)); err != nil {
			return err
		}
		if err := fsys.SyncDir(dir); err != nil {
			return err
		}
	}
	if err := atomicfile.RemoveIfExists(fsys, layout.V1ShardName(prefix, 0, shards)); err != nil {
		return err
	}
	return fsys.SyncDir(dir) // even if it was gone: a killed process may have had no time for it
}

// removePreviousShards is removePrevious for a V1 checkpoint of several shards.
func (s *Saver) removePreviousShards(pattern string) error {
	names, err := layout.MatchShards(previousName(pattern))
	if err != nil || len(names) == 0 {
		return err
	}
	fsys, dir := atomicfile.OrOS(s.FS), filepath.Dir(pattern)
	if err := fsys.SyncDir(dir); err != nil {
		return err
	}
	for _, name := range names {
		if err := atomicfile.RemoveIfExists(fsys, name); err != nil {
			return err
		}
	}
	return fsys.SyncDir(dir)
}
