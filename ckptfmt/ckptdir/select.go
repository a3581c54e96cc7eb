package ckptdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Select makes a checkpoint the current one: the state file of its directory
// then names it, and lists it last. The other paths in it do not change. A
// state file that TensorFlow could not read is replaced. o may be nil.
func Select(prefix string, o *ckptfmt.FileOptions) error {
	found, err := Find(prefix)
	if err != nil {
		return err
	}
	prefix = found.Prefix // with the pattern of V1's shards, without which TensorFlow does not find them
	dir := filepath.Dir(prefix)
	s, err := rawState(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrState) {
		s, err = &tfpb.CheckpointState{}, nil
	}
	if err != nil {
		return err
	}
	same, err := samePaths(dir, prefix)
	if err != nil {
		return err
	}
	name := filepath.Base(prefix) // relative, so that the directory may be moved
	stamps := s.AllModelCheckpointTimestamps
	stamp, stamped := 0.0, len(stamps) == len(s.AllModelCheckpointPaths)
	if i := slices.IndexFunc(s.AllModelCheckpointPaths, same); i >= 0 {
		name = s.AllModelCheckpointPaths[i]
		if stamped {
			stamp = stamps[i]
		}
	} else {
		stamped = false // its time is not known, and there must be one for each or none
	}
	dropPaths(s, same)
	s.ModelCheckpointPath = name
	s.AllModelCheckpointPaths = append(s.AllModelCheckpointPaths, name)
	if stamped {
		s.AllModelCheckpointTimestamps = append(s.AllModelCheckpointTimestamps, stamp)
	} else {
		s.AllModelCheckpointTimestamps = nil
	}
	return atomicfile.WriteFile(o.FileSystem(), statePath(dir, ""), FormatState(s))
}

// rawState reads the state file of a directory without resolving its paths.
func rawState(dir string) (*tfpb.CheckpointState, error) {
	file := statePath(dir, "")
	text, err := readLimited(nil, file)
	if err != nil {
		return nil, err
	}
	s, err := ParseState(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

// Damaged is a checkpoint that [NewestIntact] skipped, and why.
type Damaged struct {
	Prefix string
	Err    error
}

// NewestIntact reads the checkpoints of a directory, from the newest to the
// oldest, until one is intact. It returns that one, and the damaged ones that it
// skipped. If none is intact, the error matches [fs.ErrNotExist]. A checkpoint
// that cannot be read may be intact, so its error ends the search; see
// [IsUnreadable].
func NewestIntact(ctx context.Context, dir string) (Checkpoint, []Damaged, error) {
	list, err := List(dir)
	if err != nil {
		return Checkpoint{}, nil, err
	}
	var bad []Damaged
	for _, c := range slices.Backward(list) {
		err := Verify(ctx, c.Prefix)
		if err == nil {
			return c, bad, nil
		}
		if ctx.Err() != nil {
			return Checkpoint{}, bad, ctx.Err()
		}
		if IsUnreadable(err) {
			return Checkpoint{}, bad, fmt.Errorf("checkpoint %s cannot be read, and may be intact: %w", c.Prefix, err)
		}
		bad = append(bad, Damaged{c.Prefix, err})
	}
	return Checkpoint{}, bad, fmt.Errorf("%s holds no intact checkpoint: %w", dir, fs.ErrNotExist)
}
