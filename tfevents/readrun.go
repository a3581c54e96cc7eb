package tfevents

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// Purge says what happens to points that a run wrote before it was killed and
// that the run resumed from a checkpoint writes again.
type Purge int

const (
	// PurgeExact drops the points that the resumed run has overtaken. A SessionLog START at step S
	// drops every tag's points after S, and those at S as soon as the new session itself writes S:
	// some writers put the restored step there, others the next one. A session that has written no
	// summary continues in the next file. Without a START, a point in a later file drops its own
	// tag's points at its step or later in earlier files, unless it repeats the float32 with which
	// the tag began as the file's first point of the tag: Lightning writes that at each start.
	// Points of other writers stay. A writer resumes the files that had ended when it wrote its
	// first summary or START. Files that were written both before and after that moment belong to
	// other writers, and so do the files that these have resumed, and those of a host, or with a
	// suffix, that was active at the same time as the writer's own. Events that are older than their
	// own file do not belong to another writer: they repeat what a disk may have lost. Graphs and
	// other values that belong to the run as a whole stay.
	PurgeExact Purge = iota
	// PurgePython does what TensorBoard's Python loader does: each START
	// except the first drops everything at its step or later, including
	// graphs.
	PurgePython
	// PurgeDataServer does what TensorBoard's data server, the default on most machines, does: each
	// point drops its tag's earlier points at its step or later.
	PurgeDataServer
	// KeepAll drops nothing.
	KeepAll
)

// RunOptions holds the choices of [ReadRun].
type RunOptions struct {
	Purge   Purge
	MaxSize int64        // largest record accepted; 0 means [tfrecord.DefaultMaxSize]
	Limit   *MemoryLimit // of the points; nil means none

	places bool // keep of each point where it is
}

// reads reports whether the loader that the purge mode imitates reads the file.
func (o *RunOptions) reads(name string) bool {
	// A marker that the profiler leaves; only that loader knows it.
	return o.Purge != PurgePython || !strings.HasSuffix(name, ".profile-empty")
}

// eachRecordFrom calls f with the records of an open file and their offsets, from the given one on,
// as far as the loader that the purge mode imitates reads it. It returns the offset at which
// reading may continue once the file has changed, its end or the beginning of an incomplete record,
// and the damage that it has skipped, including errors of f.
func (o *RunOptions) eachRecordFrom(file fs.File, name string, from int64, f func(data []byte, at int64) error) (next int64, skipped []error, err error) {
	if err := seek(file, from); err != nil {
		return from, nil, fmt.Errorf("tfevents: %w", err)
	}
	r, thorough := o.records(file, name, from), o.thorough()
	defer r.Release()
	next = from
	for {
		at := r.Offset()
		data, err := r.Next()
		if err == io.EOF {
			return next, skipped, nil
		}
		if err == nil {
			err = f(data, at)
		}
		switch {
		case err == nil:
		case thorough && skippable(err):
			skipped = append(skipped, err)
			if lengthDamaged(err) {
				continue // no record follows, unless the next call finds one
			}
		default:
			return next, skipped, err
		}
		next = r.Offset()
	}
}

// records returns a reader for the records of a file, which is positioned at the given offset, that
// reads as the loader that the purge mode imitates.
func (o *RunOptions) records(file fs.File, name string, from int64) *tfrecord.Reader {
	r := tfrecord.NewReader(file)
	r.Name, r.MaxSize = name, o.MaxSize
	r.StartAt(from, sizeOf(file))
	r.Resync = o.thorough()
	r.SkipDataCRC = o.Purge == PurgeDataServer // it does not check it
	return r
}

// thorough reports whether reading continues after damage.
func (o *RunOptions) thorough() bool { return o.Purge == PurgeExact || o.Purge == KeepAll }

// lengthDamaged reports whether err is damage whose end had to be searched for.
func lengthDamaged(err error) bool {
	var damage *tfrecord.CorruptError
	return errors.As(err, &damage) && damage.Part == tfrecord.PartLength
}

// seek moves to an offset of a file that was just opened.
func seek(file fs.File, offset int64) error {
	if offset == 0 {
		return nil
	}
	if s, ok := file.(io.Seeker); ok {
		_, err := s.Seek(offset, io.SeekStart)
		return err
	}
	_, err := io.CopyN(io.Discard, file, offset)
	return err
}

// skippable reports whether err is damage after which reading continues.
func skippable(err error) bool {
	var damage *tfrecord.CorruptError
	return errors.As(err, &damage) && damage.Skippable()
}

// valuesOf returns the values of e that a run keeps, as they were written.
func valuesOf(e *tfpb.Event) []*tfpb.Summary_Value {
	if s := e.GetSummary(); s != nil {
		return s.GetValue()
	}
	return decode.Modern(e) // of graphs and run metadata
}

// metadataOf returns the metadata of a series that begins with v.
func metadataOf(mode Purge, v *tfpb.Summary_Value) *tfpb.SummaryMetadata {
	if m := v.GetMetadata(); mode == PurgeDataServer && m.GetDataClass() != tfpb.DataClass_DATA_CLASS_UNKNOWN {
		return m // which counts, even if an old value is of another kind
	}
	if m := decode.ModernValue(v).GetMetadata(); m != nil {
		return m
	}
	return new(tfpb.SummaryMetadata)
}

// parseVersion returns the number in a file_version, 0 if there is none.
func parseVersion(s string) float64 {
	v, err := strconv.ParseFloat(strings.TrimPrefix(s, "brain.Event:"), 64)
	if err != nil {
		return 0
	}
	return v
}
