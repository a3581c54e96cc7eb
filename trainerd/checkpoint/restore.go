package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/internal/logging"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Restore restores the variables of a session from a checkpoint: all of them or
// none. All checksums of the restored tensors are verified before anything is
// assigned.
//
// The error is an [*Error] if the checkpoint is damaged or missing, and a
// [*MismatchError] if it is of a different model. Tensors in the checkpoint
// that the Saver does not know are ignored.
func (s *Saver) Restore(ctx context.Context, sess session.Session, prefix string) error {
	if prefix == "" {
		if s.AllowEmpty {
			return nil
		}
		return errors.New("saver: no checkpoint to restore was named")
	}
	s.mu.Lock()
	s.restored = nil
	s.mu.Unlock()
	store, vars, err := s.variablesOf(ctx, sess)
	if err != nil {
		return err
	}
	if store == nil {
		return s.restoreByOps(ctx, sess, prefix)
	}
	if len(vars) == 0 {
		return nil
	}
	values, err := s.load(ctx, prefix, vars)
	if err != nil {
		return err
	}
	restore := store.Restore
	if a, ok := store.(session.Adopter); ok {
		restore = a.Adopt
	}
	if err := restore(ctx, values); err != nil {
		return fmt.Errorf("restoring %s: %w", prefix, err)
	}
	names := make([]string, len(vars))
	for i, v := range vars {
		names[i] = v.info.Name
	}
	var restored *Values
	if len(s.tables()) == 0 { // whose changes are not noticed
		restored = valuesOf(store, names)
		restored.setHash(values[:len(vars)])
	}
	abs, err := filepath.Abs(prefix)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.restored = abs, restored
	return nil
}

// RestoredValues returns the values that the last call of Restore assigned, nil
// if it left that to the session.
func (s *Saver) RestoredValues() *Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.restored
}

// load reads the values of variables, and the session's own state, from a
// checkpoint.
func (s *Saver) load(ctx context.Context, prefix string, vars []boundVariable) ([]ckptfmt.NamedTensor, error) {
	r, err := openCheckpoint(s.FS, prefix)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	stateKeys, err := s.compare(r, prefix, vars)
	if err != nil {
		return nil, err
	}
	wanted := make([]graph.SavedVariable, 0, len(vars)+len(stateKeys))
	for _, v := range vars {
		wanted = append(wanted, v.SavedVariable)
	}
	for _, t := range s.tables() {
		if _, err := r.Info(t.Key); err == nil {
			wanted = append(wanted, graph.SavedVariable{Key: t.Key, Name: tableState(t)})
		}
	}
	for _, key := range stateKeys {
		wanted = append(wanted, graph.SavedVariable{Key: key, Name: key})
	}
	values, err := lookupAll(ctx, r, prefix, wanted)
	if err != nil {
		return nil, err
	}
	for i, v := range vars {
		if v.info.Shape != nil {
			values[i].Tensor.Shape = slices.Clone(v.info.Shape) // differs only where Reshape allowed it
		}
	}
	return values, nil
}

// lookupAll reads and verifies tensors, several at a time. Its goroutines have
// ended when it returns; the error is that of the first tensor that has one.
func lookupAll(ctx context.Context, r ckptfmt.Reader, prefix string, wanted []graph.SavedVariable) ([]ckptfmt.NamedTensor, error) {
	values := make([]ckptfmt.NamedTensor, len(wanted))
	errs := make([]error, len(wanted))
	var next atomic.Int64
	var failed atomic.Bool
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(wanted)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(wanted) && !failed.Load(); i = int(next.Add(1)) - 1 {
				values[i].Name = wanted[i].Name
				values[i].Tensor, errs[i] = lookup(ctx, r, prefix, wanted[i])
				if errs[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return values, nil
}

// compare checks that a checkpoint has every variable with the right type and
// shape. It returns the keys of the session's own state.
func (s *Saver) compare(r ckptfmt.Reader, prefix string, vars []boundVariable) (stateKeys []string, err error) {
	stateKeys, mismatch, err := s.differences(r, prefix, vars)
	if err != nil {
		return nil, err
	}
	if len(mismatch.Differences) > 0 {
		return nil, mismatch
	}
	if len(mismatch.Extra) > 0 {
		logging.OrDiscard(s.Logger).Info("checkpoint has tensors that the model does not use", "checkpoint", prefix, "tensors", mismatch.Extra)
	}
	return stateKeys, nil
}

// differences returns how a checkpoint and a model differ, or nil if they do not.
func (s *Saver) differences(r ckptfmt.Reader, prefix string, vars []boundVariable) (stateKeys []string, _ *MismatchError, err error) {
	stored := make(map[string]ckptfmt.TensorInfo)
	for t, err := range r.Tensors() {
		if err != nil {
			return nil, nil, damaged(prefix, err)
		}
		stored[t.Name] = t
	}
	mismatch := &MismatchError{Prefix: prefix}
	for _, v := range vars {
		if d := v.compare(stored); d.Missing() || d.CheckpointDType != d.ModelDType || !s.shapeFits(d) {
			mismatch.Differences = append(mismatch.Differences, d)
		}
	}
	for _, t := range s.tables() {
		if _, ok := stored[t.Key]; !ok && bySaver(t) {
			mismatch.Differences = append(mismatch.Differences, Difference{Key: t.Key, Variable: t.Table})
		}
		delete(stored, t.Key)
	}
	for _, v := range vars {
		delete(stored, v.Key)
	}
	for key := range stored {
		if strings.HasPrefix(key, session.StatePrefix) {
			stateKeys = append(stateKeys, key)
		} else {
			mismatch.Extra = append(mismatch.Extra, key)
		}
	}
	slices.Sort(stateKeys)
	slices.Sort(mismatch.Extra)
	return stateKeys, mismatch, nil
}

// compare compares a variable of the model with the checkpoint. A partitioned tensor is compared as
// a whole, because it may be stored in other parts.
func (v *boundVariable) compare(stored map[string]ckptfmt.TensorInfo) Difference {
	d := Difference{Key: v.Key, Variable: v.info.Name, ModelDType: v.info.DType, ModelShape: v.info.Shape}
	if v.Part != nil {
		d.ModelShape = v.Part.Shape
	}
	if t, ok := stored[v.Key]; ok {
		d.CheckpointDType, d.CheckpointShape = t.DType, t.Shape
	}
	return d
}

func (s *Saver) shapeFits(d Difference) bool {
	if d.ModelShape == nil || slices.Equal(d.ModelShape, d.CheckpointShape) {
		return true
	}
	if !s.Reshape {
		return false
	}
	want, err := dtype.NumElements(d.ModelShape)
	if err != nil {
		return false
	}
	got, err := dtype.NumElements(d.CheckpointShape)
	return err == nil && want == got
}

func lookup(ctx context.Context, r ckptfmt.Reader, prefix string, v graph.SavedVariable) (t *ckptfmt.Tensor, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if v.Part != nil {
		t, err = r.LookupSlice(v.Key, v.Part.Slice)
	} else {
		t, err = r.Lookup(v.Key)
	}
	if err != nil {
		return nil, damaged(prefix, fmt.Errorf("tensor %s: %w", v.Key, err))
	}
	return t, nil
}

// openCheckpoint opens a checkpoint of either version. The error for one that is
// missing or cannot be read is an *Error.
func openCheckpoint(fsys ckptfmt.FS, prefix string) (ckptfmt.Reader, error) {
	if err := missingShard(prefix); err != nil {
		return nil, damaged(prefix, err)
	}
	r, err := ckptfmt.Open(prefix, &ckptfmt.ReaderOptions{FS: fsys})
	if errors.Is(err, fs.ErrNotExist) {
		_, err = os.Stat(prefix + indexSuffix) // the name to look for
	}
	if err != nil {
		return nil, damaged(prefix, err)
	}
	return r, nil
}

// damaged makes the error for a checkpoint that cannot be read, and names the file that is the
// cause.
func damaged(prefix string, err error) error {
	e := &Error{Prefix: prefix, File: prefix + indexSuffix, Err: err}
	var corrupt *ckptfmt.CorruptError
	var path *fs.PathError
	switch {
	case errors.As(err, &corrupt) && corrupt.Name != "":
		e.File = corrupt.Name
	case errors.As(err, &path):
		e.File = path.Path
	}
	return e
}

// Recover takes over the checkpoints of the previous run, after the one named
// by found was restored. Damaged ones are no longer managed: the next save
// drops them from the state file.
func (s *Saver) Recover(found *Found, damaged []*Error, restored string) {
	if found.state == nil {
		s.RecoverLastCheckpoints([]string{restored})
		return
	}
	listed := slices.DeleteFunc(slices.Clone(found.state.GetAllModelCheckpointPaths()), func(prefix string) bool {
		return slices.ContainsFunc(damaged, func(e *Error) bool { return e.Prefix == prefix })
	})
	s.RecoverLastCheckpoints(append(slices.Clone(found.orphans), listed...))
	s.recoverTimes(found)
}

// recoverTimes takes over the times from a state file that has them, and the point in time that the
// keep-every periods had reached.
func (s *Saver) recoverTimes(found *Found) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.kept {
		if slices.Contains(found.orphans, s.kept[i].prefix) {
			s.kept[i].saved = s.lastPreserved // never preserved: it was never current
		}
	}
	paths, times := found.state.GetAllModelCheckpointPaths(), found.state.GetAllModelCheckpointTimestamps()
	if len(times) != len(paths) {
		return
	}
	for i, prefix := range paths {
		j := slices.IndexFunc(s.kept, func(k stored) bool { return k.prefix == prefix })
		if j >= 0 {
			s.kept[j].saved = fromUnixSeconds(times[i])
		}
	}
	if last := found.state.GetLastPreservedTimestamp(); last > 0 {
		s.lastPreserved = fromUnixSeconds(last)
	}
}
