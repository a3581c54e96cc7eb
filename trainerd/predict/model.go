package predict

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/metagraph"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/logdir"
	"github.com/trainerd/trainerd/trainerd/model"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/savedmodel"
)

// Options says how [Open] chooses.
type Options struct {
	// Checkpoint names the checkpoint of a logdir to use: its prefix, its name
	// in the logdir or among the best, or its step. "" means the best, or else
	// the newest.
	Checkpoint string
	// Signature is the key of the signature to run; "" means serving_default.
	Signature string
	// MaxMemory limits the memory of the model, like the option of the same name in
	// package runtime, and MemoryOption is its name in errors.
	MaxMemory    int64
	MemoryOption string
	// Logger reports damaged checkpoints for which an older one is used; nil
	// discards.
	Logger *slog.Logger
}

// Model is a loaded model. Its methods are safe for concurrent use.
type Model struct {
	// Meta has the nodes that the signatures need.
	Meta *tfpb.MetaGraphDef
	// SignatureKey names Signature, which Run runs.
	SignatureKey string
	Signature    *tfpb.SignatureDef
	// Schema describes the rows that a model family takes, nil for other models.
	Schema *dataset.Schema
	// Source is the prefix of the checkpoint, or the folder of the SavedModel.
	Source string
	// Step is the number of the checkpoint, -1 if it has none.
	Step int64

	sess    *runtime.Session
	columns map[string]column // by both of their names
	others  *sync.Map         // of the Models of other signatures, by their keys
}

// Error says why a model cannot be used.
type Error struct {
	Source string
	Reason string
	Err    error // may be nil
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s: %s", e.Source, e.Reason)
	}
	return fmt.Sprintf("%s: %s: %v", e.Source, e.Reason, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Open loads the model of a logdir or of a SavedModel. The caller must close
// it.
func Open(ctx context.Context, path string, o Options) (*Model, error) {
	if savedmodel.Is(path) {
		if o.Checkpoint != "" {
			return nil, &Error{Source: path, Reason: "is a SavedModel, which has no checkpoints to choose from"}
		}
		return openSavedModel(ctx, path, o)
	}
	prefixes, err := choose(path, o.Checkpoint)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, prefix := range prefixes {
		m, err := openCheckpoint(ctx, prefix, o)
		if err == nil {
			o.passedOver(errs, prefix)
			return m, nil
		}
		errs = append(errs, err)
		var damaged *checkpoint.Error
		if !errors.As(err, &damaged) || ckptdir.IsUnreadable(err) {
			break // an older one would have the same fault, or this one may be intact
		}
	}
	return nil, errors.Join(errs...)
}

// passedOver logs the damaged checkpoints that are newer than the one used.
func (o Options) passedOver(errs []error, used string) {
	for _, err := range errs {
		if o.Logger != nil {
			o.Logger.Warn("skipping damaged checkpoint", "err", err, "used", used)
		}
	}
}

// choose returns the checkpoints of a logdir to try, the best first.
func choose(dir, name string) ([]string, error) {
	if name != "" {
		return named(dir, name)
	}
	for _, d := range []string{filepath.Join(dir, logdir.BestDir), dir} {
		found, err := checkpoint.Find(d, checkpoint.DefaultLatestFilename, "model.ckpt")
		if err == nil && !found.IsEmpty() {
			return found.Prefixes, nil
		}
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	return nil, &Error{Source: dir, Reason: "has no checkpoint and no saved_model.pb; give the logdir of a training, or a SavedModel"}
}

// named returns the checkpoint with a prefix, name or step.
func named(dir, name string) ([]string, error) {
	for _, prefix := range []string{name, filepath.Join(dir, name), filepath.Join(dir, logdir.BestDir, name)} {
		if layout.Exists(prefix) {
			return []string{prefix}, nil
		}
	}
	for _, d := range []string{dir, filepath.Join(dir, logdir.BestDir)} {
		all, err := ckptdir.List(d)
		if err != nil {
			continue
		}
		for _, c := range all {
			if fmt.Sprint(c.Step) == name {
				return []string{c.Prefix}, nil
			}
		}
	}
	return nil, &Error{Source: dir, Reason: fmt.Sprintf("has no checkpoint %q; `ckpt ls %s` lists them", name, dir)}
}

func openCheckpoint(ctx context.Context, prefix string, o Options) (*Model, error) {
	meta, err := Inference(prefix)
	if err != nil {
		return nil, err
	}
	m := &Model{Meta: meta, Source: prefix, Step: ckptdir.StepOf(prefix)}
	if err := m.start(o); err != nil {
		return nil, err
	}
	saver := &checkpoint.Saver{MetaGraph: meta, MaxToKeep: -1, Logger: slog.New(slog.DiscardHandler)}
	if err := saver.Restore(ctx, m.sess, prefix); err != nil {
		m.Close()
		return nil, err
	}
	if err := m.initialise(ctx); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// Inference returns the part of a checkpoint's MetaGraph that its signatures
// need.
func Inference(prefix string) (*tfpb.MetaGraphDef, error) {
	name := layout.MetaName(prefix)
	wire, err := metagraph.ReadSavedMessage(name)
	if err != nil {
		return nil, &checkpoint.Error{Prefix: prefix, Err: err}
	}
	meta := new(tfpb.MetaGraphDef)
	if err := proto.Unmarshal(wire, meta); err != nil {
		return nil, &checkpoint.Error{Prefix: prefix, Err: fmt.Errorf("%s: %w", filepath.Base(name), err)}
	}
	if len(meta.GetSignatureDef()) == 0 {
		return nil, &Error{Source: name, Reason: "has no signature: it is that of an exported graph, which trainerd graph run can run, " +
			"or of an older trainerd; to give it one, resume the job with `trainerd run CONFIG --set train.steps=N` for at least one more step"}
	}
	small, err := inference(meta)
	if err != nil {
		return nil, &Error{Source: name, Reason: "cannot be used for predictions", Err: err}
	}
	return small, nil
}

func inference(meta *tfpb.MetaGraphDef) (*tfpb.MetaGraphDef, error) {
	g, err := graph.Parse(meta)
	if err != nil {
		return nil, err
	}
	return g.Inference()
}

func openSavedModel(ctx context.Context, dir string, o Options) (*Model, error) {
	meta, err := savedmodel.Read(dir)
	if err != nil {
		return nil, err
	}
	m := &Model{Meta: meta, Source: dir, Step: -1}
	if err := m.start(o); err != nil {
		return nil, err
	}
	if err := m.restore(ctx, dir); err != nil {
		m.Close()
		return nil, &Error{Source: dir, Reason: "its variables cannot be restored", Err: err}
	}
	if err := m.initialise(ctx); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// start finds the signature and makes the session.
func (m *Model) start(o Options) (err error) {
	m.SignatureKey, m.others = o.Signature, new(sync.Map)
	if m.SignatureKey == "" {
		m.SignatureKey = model.ServingKey
	}
	if m.Schema, err = model.SchemaOf(m.Meta); err != nil {
		return &Error{Source: m.Source, Reason: "its schema is damaged", Err: err}
	}
	if err := m.sign(); err != nil {
		return err
	}
	if m.sess, err = runtime.New(m.Meta.GetGraphDef(), &runtime.Options{MaxMemory: o.MaxMemory, MemoryOption: o.MemoryOption}); err != nil {
		return &Error{Source: m.Source, Reason: "its graph cannot be run", Err: err}
	}
	return m.check()
}

// sign finds the signature of SignatureKey.
func (m *Model) sign() error {
	if !slices.Contains(m.Signatures(), m.SignatureKey) {
		return &Error{Source: m.Source, Reason: fmt.Sprintf("has no signature %q; its signatures are %q", m.SignatureKey, m.Signatures())}
	}
	m.Signature = m.Meta.GetSignatureDef()[m.SignatureKey]
	m.columns = columnsOf(m.Schema, m.Signature)
	return nil
}

// check makes sure that the signature can be run.
func (m *Model) check() error {
	return m.sess.Check(m.tensors(m.Signature.GetInputs()), m.tensors(m.Signature.GetOutputs()), nil)
}

// Signatures returns the keys of the signatures, sorted.
func (m *Model) Signatures() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(m.Meta.GetSignatureDef())), func(k string) bool { return strings.HasPrefix(k, "__saved_model") })
}

// With returns a Model that runs another of the signatures, "" for that of m. It is loaded once, and
// is not to be closed: it ends with m.
func (m *Model) With(signature string) (*Model, error) {
	if signature == "" || signature == m.SignatureKey {
		return m, nil
	}
	if other, ok := m.others.Load(signature); ok {
		return other.(*Model), nil
	}
	other := *m
	other.SignatureKey = signature
	if err := other.sign(); err != nil {
		return nil, err
	}
	if err := other.check(); err != nil {
		return nil, err
	}
	m.others.Store(signature, &other)
	return &other, nil
}

func (m *Model) tensors(infos map[string]*tfpb.TensorInfo) []string {
	var names []string
	for _, key := range slices.Sorted(maps.Keys(infos)) {
		names = append(names, infos[key].GetName())
	}
	return names
}

// restore runs the restore op of a SavedModel.
func (m *Model) restore(ctx context.Context, dir string) error {
	saver := m.Meta.GetSaverDef()
	if saver.GetRestoreOpName() == "" || !savedmodel.HasVariables(dir) {
		return nil // a model without variables
	}
	prefix, err := filepath.Abs(savedmodel.VariablesPrefix(dir))
	if err != nil {
		return err
	}
	feeds := map[string]*ckptfmt.Tensor{saver.GetFilenameTensorName(): ckptfmt.Scalar(prefix)}
	_, err = m.sess.Run(ctx, feeds, nil, []string{graph.NodeName(saver.GetRestoreOpName())})
	return err
}

// initialise runs the op that fills tables, whatever its name in the model.
func (m *Model) initialise(ctx context.Context) error {
	var ops []string
	if s := m.Meta.GetSignatureDef()[graph.InitOpSignature]; s != nil {
		ops = []string{graph.NodeName(s.GetOutputs()[graph.InitOpSignature].GetName())}
	}
	for _, key := range []string{"saved_model_main_op", "legacy_init_op"} {
		if len(ops) == 0 {
			ops = graph.Collections{Meta: m.Meta}.Names(key)
		}
	}
	if len(ops) == 0 {
		return nil
	}
	if _, err := m.sess.Run(ctx, nil, nil, []string{graph.NodeName(ops[0])}); err != nil {
		return &Error{Source: m.Source, Reason: "its tables cannot be initialised", Err: err}
	}
	return nil
}

// Close ends the model.
func (m *Model) Close() error { return m.sess.Close() }

// Run runs the signature: inputs and outputs are named by its keys. All inputs
// are required.
func (m *Model) Run(ctx context.Context, inputs map[string]*ckptfmt.Tensor) (map[string]*ckptfmt.Tensor, error) {
	feeds := make(map[string]*ckptfmt.Tensor, len(inputs))
	infos := m.Signature.GetInputs()
	for _, key := range slices.Sorted(maps.Keys(infos)) { // so that the same error is always the first
		info, value := infos[key], inputs[key]
		if value == nil {
			return nil, &InputError{Key: key, Reason: "is missing"}
		}
		if err := checkInput(info, value); err != "" {
			return nil, &InputError{Key: key, Reason: err}
		}
		feeds[info.GetName()] = value
	}
	for key := range inputs {
		if m.Signature.GetInputs()[key] == nil {
			return nil, &InputError{Key: key, Reason: fmt.Sprintf("is not an input; the inputs are %q", slices.Sorted(maps.Keys(m.Signature.GetInputs())))}
		}
	}
	return m.fetch(ctx, feeds)
}

// Fetch runs the graph by names of tensors, ignoring the signature.
func (m *Model) Fetch(ctx context.Context, feeds map[string]*ckptfmt.Tensor, tensors []string) ([]*ckptfmt.Tensor, error) {
	return m.sess.Run(ctx, feeds, tensors, nil)
}

// fetch returns the signature's outputs.
func (m *Model) fetch(ctx context.Context, feeds map[string]*ckptfmt.Tensor) (map[string]*ckptfmt.Tensor, error) {
	keys := slices.Sorted(maps.Keys(m.Signature.GetOutputs()))
	out, err := m.sess.Run(ctx, feeds, m.tensors(m.Signature.GetOutputs()), nil)
	if err != nil {
		return nil, err
	}
	all := make(map[string]*ckptfmt.Tensor, len(keys))
	for i, key := range keys {
		all[key] = out[i]
	}
	return all, nil
}

// InputError says what is wrong with a value for an input of a signature.
type InputError struct {
	Key    string
	Reason string
}

func (e *InputError) Error() string { return fmt.Sprintf("input %q: %s", e.Key, e.Reason) }

// checkInput says what is wrong with a value, "" for nothing.
func checkInput(info *tfpb.TensorInfo, t *ckptfmt.Tensor) string {
	if t.DType != info.GetDtype() {
		return fmt.Sprintf("is %s; want %s", dtype.Name(t.DType), dtype.Name(info.GetDtype()))
	}
	want := graph.ShapeFromProto(info.GetTensorShape())
	if want.UnknownRank {
		return ""
	}
	fits := len(want.Dims) == len(t.Shape)
	for i := 0; fits && i < len(t.Shape); i++ {
		fits = want.Dims[i] < 0 || want.Dims[i] == t.Shape[i]
	}
	if !fits {
		return fmt.Sprintf("has the shape %v; want %v", t.Shape, want)
	}
	return ""
}
