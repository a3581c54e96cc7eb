// Package checkpoint writes the checkpoints of a session and restores them: the
// Saver of TensorFlow's tf.train.
//
// A [Saver] takes a [Snapshot] of the variables between two steps and writes it
// while the training continues: data, index, MetaGraph, manifest and the
// `checkpoint` file, each durable before the next, deletions last. Once
// [Saver.Write] has returned, the checkpoint survives a crash at any later
// moment; after an error the previous one is still current. [Find] returns the
// checkpoints of a directory in the order in which a restart tries them,
// [Quarantine] moves a damaged one away, and a [WarmStart] gives a new model the
// values in another one's checkpoint. The policies of package retention decide
// which ones are kept.
//
// A Saver has a list of the checkpoints that it manages, the rotation. It is
// safe for concurrent use; saves happen one after another. Nothing here starts
// goroutines that outlive a call.
package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/ctxmutex"
	"github.com/trainerd/trainerd/internal/option"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Defaults of Saver, as in TensorFlow.
const (
	DefaultMaxToKeep      = 5
	DefaultLatestFilename = "checkpoint"
)

// Saver writes checkpoints and restores them, and deletes old ones.
//
// The zero Saver saves all variables of a session, keeps five checkpoints, and names them in the
// file `checkpoint`, relative to its directory. When its run begins, a [trainerd.Supervisor] sets
// the MetaGraph, Def and Logger of its Saver, if they are nil, to its own.
//
// The fields must not change after first use. A Saver is safe for concurrent
// use; saves happen one after another.
type Saver struct {
	// Variables maps keys in the checkpoint to names of variables; see [VariableList] for keys that
	// are the names. Nil means what the saver of MetaGraph saves, or else the graph's global
	// variables, or without a graph all variables of the session. A session that is not a
	// [session.VariableStore] saves what Def says, so Def must belong to a saver of these variables.
	Variables map[string]string
	// AllowEmpty allows a Saver with nothing to save.
	AllowEmpty bool
	// Reshape accepts on restore a tensor of another shape with the same
	// number of elements.
	Reshape bool

	// MaxToKeep is how many checkpoints are kept. Zero means DefaultMaxToKeep,
	// negative means all. The surplus is deleted after the new checkpoint is
	// durable, and never outside its directory.
	MaxToKeep int
	// KeepEvery preserves permanently one checkpoint for each such period. The
	// periods continue across restarts. Zero or less preserves none.
	KeepEvery time.Duration
	// Retention, if not empty, replaces MaxToKeep and KeepEvery: a checkpoint
	// is kept if any of the policies keeps it. See also Pin.
	Retention []retention.Policy

	// Format is the format of new checkpoints. The zero Format is V2.
	Format Format
	// Shards distributes the tensors over that many data files. Zero means one.
	Shards int

	// LatestFilename is the name of the state file. "" means "checkpoint".
	LatestFilename string
	// AbsolutePaths writes absolute paths into the state file. They make a
	// copied directory refer to the original, so they are not the default.
	AbsolutePaths bool
	// PadStep writes the step number with at least eight digits.
	PadStep bool

	// NoManifest leaves out the side file with the checkpoint's step, time,
	// metrics and checksums. KeepBest then knows no metrics after a restart.
	NoManifest bool
	// ConfigHash is recorded in the manifest, to distinguish runs of different
	// configurations.
	ConfigHash string

	// MetaGraph is written next to each checkpoint, unless nil. It is encoded once, so
	// it must not change after that.
	MetaGraph *tfpb.MetaGraphDef
	// Def names the nodes that save and restore. They are used if the session is not a
	// [session.VariableStore], or if the graph saves more than variables. Nil means the
	// first one in MetaGraph.
	Def *tfpb.SaverDef

	// FS is where checkpoints are written; nil means the operating system.
	FS ckptfmt.FS
	// Logger reports what is deleted or cannot be. Nil discards.
	Logger *slog.Logger

	writing ctxmutex.Mutex // during a write
	encoded encodedMeta
	durable string    // directory whose name was synced; guarded by writing
	sumsDue time.Time // before that, large checkpoints get no checksums; guarded by writing
	visible bool      // the last checkpoint of a session was visible from this machine; guarded by writing
	tight   bool      // the disk was full, and did not say so before; guarded by writing
	mu      sync.Mutex
	rotation
	started       bool           // lastPreserved is set
	pendingDelete []stored       // out of the rotation, to be deleted after a save, once they are not pinned
	pinning       map[string]int // calls of Pin under way, by the name that they pin
	deleting      string         // what removeUnpinned is about to delete, by the same
	last          string         // restored or saved last

	restored *Values // by the last Restore; nil if the session did it

	inherited inherited
	graphList graphVariableList
}

// VariableList returns the map for Saver.Variables in which each variable has
// its own name as key.
func VariableList(names ...string) map[string]string {
	m := make(map[string]string, len(names))
	for _, name := range names {
		m[name] = name
	}
	return m
}

// Save writes a checkpoint and returns its prefix: path, with the step number
// appended unless step is negative. It returns when the checkpoint is durable:
// after a crash at any later time it exists, and the state file names it.
//
// The prefix is "" if there was nothing to save and AllowEmpty is set.
func (s *Saver) Save(ctx context.Context, sess session.Session, path string, step int64) (string, error) {
	cut, err := s.Snapshot(ctx, sess, "")
	if err != nil {
		return "", err
	}
	return s.Write(ctx, cut, path, step)
}

// Check returns an error that would make every save of a session fail, or nil
// if none is known.
func (s *Saver) Check(ctx context.Context, sess session.Session) error {
	if err := option.NoneIsNil("Saver.Retention", s.Retention); err != nil {
		return err
	}
	store, vars, err := s.variablesOf(ctx, sess)
	if err == nil && store == nil {
		_, err = s.saverDef()
	}
	if err != nil || s.format() != FormatV1 {
		return err
	}
	for _, v := range vars {
		if !fitsV1(v.info.DType) {
			return fmt.Errorf("saver: variable %s: V1 checkpoints do not hold %s; save it as V2", v.Name, dtype.Name(v.info.DType))
		}
	}
	return nil
}

// variablesOf returns the variables to save or restore, or a nil store if the session has to do
// that itself.
func (s *Saver) variablesOf(ctx context.Context, sess session.Session) (session.VariableStore, []boundVariable, error) {
	store, ok := sess.(session.VariableStore)
	if !ok {
		return nil, nil, s.checkByOps()
	}
	if w, ok := store.(session.Wrapper); ok {
		store = w.Saved() // which may be a LazyStore
	}
	vars, err := s.bind(ctx, store)
	if errors.Is(err, graph.ErrSavedByOps) {
		return nil, nil, nil
	}
	return store, vars, err
}

// LastCheckpoints returns the prefixes of the checkpoints that the Saver
// manages, oldest first.
func (s *Saver) LastCheckpoints() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	prefixes := make([]string, len(s.kept))
	for i, k := range s.kept {
		prefixes[i] = k.prefix
	}
	return prefixes
}

// RecoverLastCheckpoints makes the Saver manage checkpoints of an earlier run,
// oldest first. Those that do not exist are left out.
func (s *Saver) RecoverLastCheckpoints(prefixes []string) {
	var kept []stored
	for _, prefix := range prefixes {
		saved, err := checkpointTime(prefix)
		if err != nil {
			continue
		}
		abs, err := filepath.Abs(prefix)
		if err != nil {
			continue
		}
		if !slices.ContainsFunc(kept, func(k stored) bool { return k.prefix == abs }) {
			step, metrics := storedMetrics(abs)
			kept = append(kept, stored{prefix: abs, step: step, saved: saved, metrics: metrics})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start()
	s.kept = kept
}

// start begins the first keep-every period, before any checkpoint is in the rotation.
// The caller holds s.mu.
func (s *Saver) start() {
	if !s.started {
		s.started = true
		s.lastPreserved = time.Now()
	}
}

// Kept is a checkpoint that is kept, and why.
type Kept struct {
	retention.Checkpoint
	Why []string
}

// Kept returns the checkpoints that the Saver manages, and those that it has
// preserved permanently, oldest first, with the reasons why they are kept.
func (s *Saver) Kept() []Kept {
	s.mu.Lock()
	stored, pending, kept := storedOf(s.kept), storedOf(s.pendingDelete), slices.Clone(s.outside)
	s.mu.Unlock()
	for i, why := range keepPinned.Keep(pending) {
		if why != "" {
			kept = append(kept, Kept{pending[i], []string{why}})
		}
	}
	policies := append([]retention.Policy{keepPinned}, s.Retention...)
	if len(s.Retention) == 0 {
		policies = append(policies, retention.Last(s.maxToKeep()))
	}
	for i, why := range Reasons(policies, stored) {
		kept = append(kept, Kept{stored[i], why})
	}
	slices.SortStableFunc(kept, func(a, b Kept) int { return a.Saved.Compare(b.Saved) })
	return kept
}

// evictFor puts a checkpoint into a rotation and returns those that leave it to be
// deleted.
func (s *Saver) evictFor(r *rotation, c stored) (evicted []stored) {
	if len(s.Retention) == 0 {
		return r.add(c, s.maxToKeep(), s.KeepEvery)
	}
	return r.retain(c, append([]retention.Policy{keepPinned}, s.Retention...))
}

// timestamps reports whether the state file has the times of the checkpoints.
func (s *Saver) timestamps() bool { return s.KeepEvery > 0 || len(s.Retention) > 0 }

func (s *Saver) maxToKeep() int {
	if s.MaxToKeep == 0 {
		return DefaultMaxToKeep
	}
	return s.MaxToKeep
}

// Writes reports whether saves of a basename write files of a name.
func (s *Saver) Writes(basename, name string) bool {
	return name == s.latestFilename() || strings.HasPrefix(name, basename+"-")
}

func (s *Saver) latestFilename() string {
	if s.LatestFilename == "" {
		return DefaultLatestFilename
	}
	return s.LatestFilename
}
