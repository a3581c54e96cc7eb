package checkpoint

import (
	"fmt"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Format is a version of the checkpoint format.
type Format int

const (
	// FormatV2 is what TensorFlow has written since version 1.0: an index and
	// data files.
	FormatV2 Format = iota
	// FormatV1 is the older one: a single file, or one for each shard.
	FormatV1
)

// fitsV1 reports whether FormatV1 can hold variables of a type.
func fitsV1(t tfpb.DataType) bool {
	switch t {
	case tfpb.DataType_DT_FLOAT, tfpb.DataType_DT_DOUBLE, tfpb.DataType_DT_HALF,
		tfpb.DataType_DT_COMPLEX64, tfpb.DataType_DT_COMPLEX128,
		tfpb.DataType_DT_INT8, tfpb.DataType_DT_INT16, tfpb.DataType_DT_INT32, tfpb.DataType_DT_INT64,
		tfpb.DataType_DT_UINT8, tfpb.DataType_DT_UINT16, tfpb.DataType_DT_BOOL, tfpb.DataType_DT_STRING,
		tfpb.DataType_DT_QINT8, tfpb.DataType_DT_QUINT8, tfpb.DataType_DT_QINT32:
		return true
	}
	return false
}

// OwnFormat reports whether a checkpoint has the format that the Saver writes.
func (s *Saver) OwnFormat(prefix string) bool { return v2(prefix) == (s.format() == FormatV2) }

// shards returns in how many files a cut is written: never more than it has
// tensors.
func (s *Saver) shards(cut *Snapshot) int {
	return max(min(s.Shards, len(cut.tensors)), 1)
}

// shardPattern returns the prefix by which a checkpoint is found: a V1
// checkpoint of several files goes by a pattern.
func (s *Saver) shardPattern(prefix string, cut *Snapshot) string {
	if n := s.shards(cut); s.format() == FormatV1 && n > 1 {
		return fmt.Sprintf("%s%s%05d", prefix, layout.ShardMark, n)
	}
	return prefix
}

// format returns the format. The graph's own saver may request one, but not for a program's Saver
// that has merely inherited it.
func (s *Saver) format() Format {
	if s.Format == FormatV2 && s.Def != s.inherited.def && s.Def.GetVersion() == tfpb.SaverDef_V1 {
		return FormatV1
	}
	return s.Format
}
