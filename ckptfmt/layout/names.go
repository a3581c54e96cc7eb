package layout

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/glob"
	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// IndexName returns the name of a bundle's index file.
func IndexName(prefix string) string { return prefix + IndexSuffix }

// DataName returns the name of a bundle's data file.
func DataName(prefix string, shard, numShards int) string {
	return fmt.Sprintf("%s.data-%05d-of-%05d", prefix, shard, numShards)
}

// V1ShardName returns the name of a file of a V1 checkpoint in several.
func V1ShardName(prefix string, shard, numShards int) string {
	return fmt.Sprintf("%s-%05d-of-%05d", prefix, shard, numShards)
}

// CutShards splits the pattern of a sharded V1 checkpoint into the prefix of the
// file names and the number of files. For any other prefix ok is false.
func CutShards(pattern string) (prefix string, numShards int, ok bool) {
	dir, base := filepath.Split(pattern)
	base, count, found := strings.Cut(base, ShardMark)
	numShards, err := strconv.Atoi(count)
	return dir + base, numShards, found && err == nil
}

// MetaName returns the name of the MetaGraphDef that a Saver writes next to a
// checkpoint. For a sharded V1 checkpoint, it has no shard number.
func MetaName(prefix string) string {
	dir, base := filepath.Split(prefix)
	base, _, _ = strings.Cut(base, ShardMark)
	return dir + base + MetaSuffix
}

// tempMark separates a name from the random number of a file that is being
// written, as TensorFlow has it.
const tempMark = ".tempstate"

// TempName returns a new name for a file that is being written. It is not too long unless the
// file's own name is.
func TempName(name string) string {
	temp := name + tempMark + strconv.FormatUint(rand.Uint64(), 10)
	if len(filepath.Base(temp)) > atomicfile.LongestName {
		return atomicfile.TempName(name)
	}
	return temp
}

var tempPattern = lazyregexp.New(`\.tempstate[0-9]+$`)

// IsTemp reports whether the last element of a path is a temporary name that
// this package, or TensorFlow, gives to a checkpoint's file during a save. If
// no writer is running, such a file was left by a crash.
func IsTemp(base string) bool {
	return atomicfile.IsTemp(base) || tempPattern().MatchString(base)
}

// Exists reports whether a checkpoint is stored under prefix: the index of a
// V2 checkpoint, or the file or files of a V1 checkpoint, whose prefix may be
// a pattern.
func Exists(prefix string) bool {
	return slices.ContainsFunc([]string{IndexName(prefix), prefix}, func(name string) bool {
		if info, err := os.Stat(name); err == nil {
			return !info.IsDir()
		}
		matches, err := MatchShards(name)
		return err == nil && len(matches) > 0
	})
}

// MatchShards returns the files that the pattern of a V1 checkpoint matches. If
// its folder exists, the folder and the part of the name before the shard numbers
// are taken literally: a folder may be called "lr=[0.1]".
func MatchShards(pattern string) ([]string, error) {
	dir, base := filepath.Split(pattern)
	if _, err := os.Stat(filepath.Clean(dir)); err != nil {
		return filepath.Glob(pattern)
	}
	if name, count, ok := strings.Cut(base, ShardMark); ok {
		base = glob.Escape(name) + ShardMark + count
	}
	return filepath.Glob(glob.Escape(dir) + base)
}

// FindV1 returns the pattern of the shards under a prefix. It fails if there
// are two sets of them.
func FindV1(prefix string) (string, error) {
	dir, base := filepath.Split(prefix)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return "", err
	}
	var found []string
	for _, e := range entries {
		m := V1Shard.FindStringSubmatch(e.Name())
		if m == nil || m[1] != base+"-" || !IsTable(dir+e.Name()) {
			continue
		}
		if pattern := dir + m[1] + "?????" + m[2]; !slices.Contains(found, pattern) {
			found = append(found, pattern)
		}
	}
	switch len(found) {
	case 0:
		return "", &fs.PathError{Op: "open checkpoint", Path: prefix, Err: fs.ErrNotExist}
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("ckptfmt: %s is the name of several sharded checkpoints: %s", prefix, strings.Join(found, ", "))
}
