package checkpoint

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Error says that a checkpoint is damaged or incomplete.
type Error struct {
	Prefix string
	File   string // the file concerned
	Err    error
}

func (e *Error) Error() string {
	return fmt.Sprintf("checkpoint %s: %v", e.Prefix, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// UnreadableError says that the checkpoint to restore cannot be read, for a
// reason other than damage: lack of permission or file handles, an error of
// the disk or the network. It may be intact, so no older one is used instead.
type UnreadableError struct {
	Checkpoint *Error
	State      string // the `checkpoint` file
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("%v\nit may be intact, so no older checkpoint is used instead: make %s readable, and start again; "+
		"or let %s name another checkpoint", e.Checkpoint, e.Checkpoint.File, e.State)
}

func (e *UnreadableError) Unwrap() error { return e.Checkpoint }

// NoIntactError says that a directory has checkpoints but none that can be used. Then the model is
// not initialised: training from scratch would end up deleting what might still be salvaged.
type NoIntactError struct {
	Dir   string
	State string // the `checkpoint` file
	Tried []*Error
	Newer []string // in the directory, but newer than the one that `checkpoint` names
}

func (e *NoIntactError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no usable checkpoint in %s:", e.Dir)
	for _, t := range e.Tried {
		fmt.Fprintf(&b, "\n  %s: %v", filepath.Base(t.Prefix), t.Err)
	}
	for i, prefix := range e.Newer {
		if i == 0 {
			fmt.Fprintf(&b, "\n  newer than the one that %s names, so not tried: ", filepath.Base(e.State))
		} else {
			b.WriteString(", ")
		}
		b.WriteString(filepath.Base(prefix))
	}
	if slices.ContainsFunc(e.Tried, func(t *Error) bool { return errors.Is(t, ckptfmt.ErrVersion) }) {
		b.WriteString("\ninstall a newer release of trainerd for that of a newer TensorFlow")
	}
	fmt.Fprintf(&b, "\nput the missing files back, or let %s name another checkpoint, or use another logdir to start from the beginning", e.State)
	return b.String()
}

// Unwrap returns the error of each checkpoint that was tried.
func (e *NoIntactError) Unwrap() []error {
	var errs []error
	for _, t := range e.Tried {
		errs = append(errs, t)
	}
	return errs
}

// Difference is one variable that a checkpoint cannot restore. If the
// checkpoint has nothing under the key, its type and shape are zero.
type Difference struct {
	Key      string // in the checkpoint
	Variable string // in the model

	ModelDType, CheckpointDType tfpb.DataType
	ModelShape, CheckpointShape []int64
}

// Missing reports whether the checkpoint has nothing under the key.
func (d Difference) Missing() bool { return d.CheckpointDType == tfpb.DataType_DT_INVALID }

func (d Difference) String() string {
	name := d.Variable
	if d.Key != d.Variable {
		name += " (key " + d.Key + ")"
	}
	if d.Missing() && d.ModelDType == tfpb.DataType_DT_INVALID {
		return name + ": missing in the checkpoint" // a table, whose types only the session knows
	}
	if d.Missing() {
		return fmt.Sprintf("%s: missing in the checkpoint; the model has %s", name, dtype.Text(d.ModelDType, d.ModelShape))
	}
	return fmt.Sprintf("%s: the model has %s, the checkpoint %s", name,
		dtype.Text(d.ModelDType, d.ModelShape), dtype.Text(d.CheckpointDType, d.CheckpointShape))
}

// MismatchError says that a checkpoint is of another model: it lists every
// variable that it cannot restore. Nothing was restored.
type MismatchError struct {
	Prefix      string
	Differences []Difference // ordered by variable
	// Extra lists keys of the checkpoint that the model does not use. By
	// themselves they are no reason to refuse it.
	Extra []string
	// Named says that the checkpoint was requested by name, not found in the
	// logdir of a run.
	Named bool
}

func (e *MismatchError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "checkpoint %s is of a different model:", e.Prefix)
	for _, d := range e.Differences {
		b.WriteString("\n  " + d.String())
	}
	for _, key := range e.Extra {
		fmt.Fprintf(&b, "\n  %s: only in the checkpoint", key)
	}
	if e.Named {
		b.WriteString("\nname a checkpoint of this model, or start without one")
	} else {
		b.WriteString("\nuse a new logdir for the changed model, or change the model back")
	}
	return b.String()
}
