// Package layout knows the names of a checkpoint's files and the order in which
// they are published. For the prefix "logdir/model.ckpt-900":
//
//	logdir/model.ckpt-900.data-00000-of-00001   DataName, published first
//	logdir/model.ckpt-900.index                 IndexName
//	logdir/model.ckpt-900.meta                  MetaName
//	logdir/model.ckpt-900.manifest.json         ManifestSuffix, published last
//
// The shards of a V1 checkpoint are "logdir/model.ckpt-900-00000-of-00004" and so
// on; their prefix has the pattern "-?????-of-00004". The package has no state.
package layout

import (
	"encoding/binary"
	"os"
	"regexp"

	"github.com/trainerd/trainerd/ckptfmt/sstable"
	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// The suffixes of a V2 checkpoint's files other than its data files.
const (
	IndexSuffix    = ".index"
	MetaSuffix     = ".meta"
	ManifestSuffix = ".manifest.json"
)

var dataSuffix = lazyregexp.New(`^\.data-[0-9]{5,}-of-[0-9]{5,}$`)

// PreviousSuffix ends the prefix under which trainerd keeps a checkpoint while
// another one is published under its name.
const PreviousSuffix = ".previous"

// ShardMark is in the name of a sharded V1 checkpoint.
const ShardMark = "-?????-of-"

// V1Shard matches the name of a shard of a V1 checkpoint.
var V1Shard = regexp.MustCompile(`^(.+-)[0-9]{5}(-of-[0-9]{5})$`)

// PublishRank orders a checkpoint's files by when they are published: data,
// index, meta, manifest. It is negative for any other file.
func PublishRank(suffix string) int {
	switch suffix {
	case IndexSuffix:
		return 1
	case MetaSuffix:
		return 2
	case ManifestSuffix:
		return 3
	}
	if dataSuffix().MatchString(suffix) {
		return 0
	}
	return -1
}

// IsTable reports whether a file ends as a table does.
func IsTable(name string) bool {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() { // to open a pipe would wait
		return false
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [8]byte
	_, err = f.ReadAt(magic[:], info.Size()-8) // fails where there are less than 8
	return err == nil && binary.LittleEndian.Uint64(magic[:]) == sstable.Magic
}
