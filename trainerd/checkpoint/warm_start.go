package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/formats"
	"github.com/trainerd/trainerd/ckptfmt/keras"
	"github.com/trainerd/trainerd/ckptfmt/mapping"
	"github.com/trainerd/trainerd/ckptfmt/names"
	"github.com/trainerd/trainerd/ckptfmt/rewrite"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/session"
)

// WarmStart says how a new model starts from the values in another one's
// checkpoint. Use it in an init function: once the new model has its own
// checkpoint, it continues from that.
type WarmStart struct {
	// Checkpoint is the prefix of the checkpoint, a folder that has one, or a file
	// of another format, such as safetensors.
	Checkpoint string
	// Names maps keys in the checkpoint to variables of the model. Variables that
	// are not in it are looked up by their own name, unless Only is set. In a
	// checkpoint of tf.train.Checkpoint, any of a tensor's names may be used.
	Names map[string]string
	// Only leaves out every variable that is not in Names.
	Only bool

	// Map changes the tensors of the checkpoint, before everything else except
	// Averages.
	Map *mapping.Map
	// Averages takes the moving averages of variables that have them, found by the
	// names of tf.train.ExponentialMovingAverage and through the object graph.
	Averages bool
	// Saver, if not nil, defines the variables and their keys. Otherwise all variables of the
	// session are used, by their names.
	Saver *Saver
	// Take, if not nil, says which variables get a value, by their keys. Those in Names always
	// do.
	Take func(key string) bool
	// Reshape accepts a tensor of another shape with the same number of elements.
	Reshape bool
	// Strict returns a [*WarmStartError] if a variable gets no value.
	Strict bool
}

// WarmStartReport says what happened to each variable.
type WarmStartReport struct {
	Prefix    string       // dropped from the checkpoint's names, because the model's names lack it: "module."
	Restored  []string     // variables that got a value from the checkpoint
	Reshaped  []string     // those of them whose shape differed
	Doubtful  []string     // those of them that may have the value of another layer of their Keras class
	Different []Difference // not in the checkpoint, or with another type or shape
	Left      []string     // variables that were not to get a value
	Unused    []string     // keys of the checkpoint that no variable used
}

func (r *WarmStartReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d variables restored", len(r.Restored))
	for _, name := range r.Doubtful {
		b.WriteString("\n  perhaps of another layer: " + name)
	}
	for _, d := range r.Different {
		b.WriteString("\n  not restored: " + d.String())
	}
	for _, key := range r.Unused {
		fmt.Fprintf(&b, "\n  only in the checkpoint: %s", key)
	}
	return b.String()
}

// WarmStartError names the variables for which a checkpoint has no value.
type WarmStartError struct {
	Checkpoint  string
	Differences []Difference
}

// Error implements error.
func (e *WarmStartError) Error() string {
	const most = 10
	var b strings.Builder
	fmt.Fprintf(&b, "warm start: %s has no value for %d variables of the model:", e.Checkpoint, len(e.Differences))
	for _, d := range e.Differences[:min(most, len(e.Differences))] {
		b.WriteString("\n  " + d.String())
	}
	if more := len(e.Differences) - most; more > 0 {
		fmt.Fprintf(&b, "\n  and %d more", more)
	}
	return b.String()
}

// Apply sets those variables of a session that have matching values in the
// checkpoint, and leaves the others unchanged. Floating-point numbers are
// converted to the variable's type. It fails if none matches. The global step is
// taken over only if Names or Take says so.
func (w *WarmStart) Apply(ctx context.Context, s session.Session) (*WarmStartReport, error) {
	return w.run(ctx, s, true)
}

// Plan returns what [WarmStart.Apply] would do. It reads no values.
func (w *WarmStart) Plan(ctx context.Context, s session.Session) (*WarmStartReport, error) {
	return w.run(ctx, s, false)
}

// run makes a plan, and with apply sets the variables accordingly.
func (w *WarmStart) run(ctx context.Context, s session.Session, apply bool) (_ *WarmStartReport, err error) {
	store, ok := s.(session.VariableStore)
	if !ok {
		return nil, errors.New("warm start: the session does not take values for its variables; use the restore op of a Saver over a subset")
	}
	vars, left, err := w.bind(ctx, store)
	if err != nil {
		return nil, err
	}
	if len(vars) == 0 {
		return nil, fmt.Errorf("warm start: none of the %d variables of the model is to get a value", len(left))
	}
	source, err := w.open()
	if err != nil {
		return nil, fmt.Errorf("warm start: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	r, err := source.prepare(w, vars)
	if err != nil {
		return nil, fmt.Errorf("warm start: %w", err)
	}
	report, matched, err := w.compare(r, vars)
	if err != nil {
		return nil, fmt.Errorf("warm start: %w", err)
	}
	report.Left, report.Prefix = left, source.prefix
	for _, v := range vars {
		if source.doubtful[v.Name] && slices.Contains(report.Restored, v.Name) {
			report.Doubtful = append(report.Doubtful, v.Name)
		}
	}
	switch {
	case w.Strict && len(report.Different) > 0:
		return report, &WarmStartError{w.Checkpoint, report.Different}
	case len(matched) == 0:
		return report, fmt.Errorf("warm start: checkpoint %s has no value for any variable of the model: %v", w.Checkpoint, report)
	case !apply:
		return report, nil
	}
	values, err := w.load(ctx, r, matched)
	if err != nil {
		return nil, fmt.Errorf("warm start: %w", err)
	}
	return report, store.Restore(ctx, values)
}

// bind returns the variables that should get a value, with their keys, and the names of the others.
func (w *WarmStart) bind(ctx context.Context, store session.VariableStore) (vars []boundVariable, left []string, err error) {
	keyOf := make(map[string]string)
	for key, name := range w.Names {
		name = graph.NodeName(name)
		if other, twice := keyOf[name]; twice {
			return nil, nil, fmt.Errorf("warm start: variable %s has two keys, %s and %s", name, min(key, other), max(key, other))
		}
		keyOf[name] = key
	}
	all, err := w.variables(ctx, store)
	if err != nil {
		return nil, nil, err
	}
	for _, v := range all {
		key, named := keyOf[v.Name]
		delete(keyOf, v.Name)
		switch {
		case named:
			v.Key = key
		case w.Only, w.Take == nil && v.Name == session.DefaultGlobalStep, w.Take != nil && !w.Take(v.Key):
			left = append(left, v.Name)
			continue
		}
		vars = append(vars, v)
	}
	for name := range keyOf {
		return nil, nil, fmt.Errorf("warm start: the model has no variable %s: %w", name, session.ErrNotFound)
	}
	return vars, left, nil
}

func (w *WarmStart) variables(ctx context.Context, store session.VariableStore) ([]boundVariable, error) {
	if w.Saver != nil {
		return w.Saver.bind(ctx, store)
	}
	infos, err := store.Variables(ctx)
	if err != nil {
		return nil, fmt.Errorf("warm start: listing the variables: %w", err)
	}
	var all []boundVariable
	for _, info := range infos {
		all = append(all, boundVariable{graph.SavedVariable{Key: info.Name, Name: info.Name}, info})
	}
	return all, nil
}

// warmSource is an open checkpoint.
type warmSource struct {
	*rewrite.Source
	path   string
	names  *names.Table // by which its tensors are found
	prefix string       // of all of them, which was taken off
	// doubtful are variables whose names may belong to other layers in the
	// checkpoint.
	doubtful map[string]bool
}

func (w *WarmStart) open() (*warmSource, error) {
	source, err := rewrite.Open(w.Checkpoint)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, w.missing(err)
	case errors.Is(err, ckptfmt.ErrVersion):
		return nil, fmt.Errorf("%w; install a newer release of trainerd", err)
	case err != nil:
		return nil, err
	}
	return &warmSource{Source: source, path: w.Checkpoint, names: source.Names()}, nil
}

// missing makes the error for a checkpoint that is missing, or lacks files. If it is missing
// entirely, it may have been meant in any format, so the error names no file of a particular one.
func (w *WarmStart) missing(err error) error {
	if _, found := formats.Find(w.Checkpoint); !errors.Is(found, fs.ErrNotExist) {
		return err // it names the file
	}
	if info, statErr := os.Stat(w.Checkpoint); statErr == nil && info.IsDir() {
		return &Error{Prefix: w.Checkpoint, File: w.Checkpoint, Err: fmt.Errorf("the folder has none: %w", fs.ErrNotExist)}
	}
	return &Error{Prefix: w.Checkpoint, File: w.Checkpoint, Err: fs.ErrNotExist}
}

// prepare returns the tensors of the checkpoint after the changes that w requests.
func (s *warmSource) prepare(w *WarmStart, vars []boundVariable) (ckptfmt.Reader, error) {
	if w.Averages {
		if _, err := s.UseAverages(rewrite.AverageName, false); err != nil {
			return nil, err
		}
	}
	if w.Map != nil {
		if _, err := s.Map(w.Map); err != nil {
			return nil, err
		}
		s.names = &names.Table{}
	}
	var err error
	if s.prefix, err = s.TakeOffPrefix(keysOf(vars)); err != nil {
		return nil, err
	}
	r, err := s.Reader()
	if err != nil {
		return nil, err
	}
	if err := s.checkNames(r, vars); err != nil {
		return nil, err
	}
	s.doubtful = s.doubtfulVariables(w, vars)
	for i, v := range vars { // the variable's name may be one of a tensor of other keys
		if _, err := r.Info(v.Key); errors.Is(err, ckptfmt.ErrNotFound) {
			vars[i].Key = s.names.Key(v.Key)
		}
	}
	return r, nil
}

// doubtfulVariables returns the variables that are found by layer names which Keras has generated,
// if the checkpoint numbers these differently and no map says what they are.
func (s *warmSource) doubtfulVariables(w *WarmStart, vars []boundVariable) map[string]bool {
	if w.Map != nil {
		return nil
	}
	byKey := make(map[string]string, len(vars))
	for _, v := range vars {
		if _, chosen := w.Names[v.Key]; !chosen {
			byKey[v.Key] = v.Name
		}
	}
	doubtful := make(map[string]bool)
	for _, key := range s.DoubtfulNames(slices.Collect(maps.Keys(byKey))) {
		doubtful[byKey[key]] = true
	}
	return doubtful
}

// checkNames refuses the names in a Keras file that does not name its layers but numbers those of
// each class, unless a map says what they are: another layer of the model may have such a name.
func (s *warmSource) checkNames(r ckptfmt.Reader, vars []boundVariable) error {
	if !s.IsUnnamed() {
		return nil
	}
	for _, v := range vars {
		if _, err := r.Info(v.Key); err == nil && keras.HasClass(v.Key) {
			return fmt.Errorf("%s has no names of layers, its dense_1 is the second Dense; a map says which tensor is %s", s.path, v.Name)
		}
	}
	return nil
}

func keysOf(vars []boundVariable) []string {
	keys := make([]string, len(vars))
	for i, v := range vars {
		keys[i] = v.Key
	}
	return keys
}

// match is a variable and the tensor that it gets.
type match struct {
	boundVariable
	reshape bool
}

// intactTensors lists the intact tensors of a checkpoint, and records what is wrong with the
// others.
type intactTensors struct {
	ckptfmt.Reader
	damage error
}

func (r *intactTensors) Tensors() iter.Seq2[ckptfmt.TensorInfo, error] {
	return func(yield func(ckptfmt.TensorInfo, error) bool) {
		for t, err := range r.Reader.Tensors() {
			if err != nil && t.Name != "" {
				r.damage = cmp.Or(r.damage, err)
			} else if !yield(t, err) {
				return
			}
		}
	}
}

// compare says which tensors fit. Damage to tensors that no variable needs is harmless; but if a
// variable finds no value, that may be in a part that is lost, which is no reason to initialise it.
func (w *WarmStart) compare(r ckptfmt.Reader, vars []boundVariable) (*WarmStartReport, []match, error) {
	saver, intact := &Saver{Reshape: w.Reshape}, &intactTensors{Reader: r}
	_, found, err := saver.differences(intact, w.Checkpoint, vars)
	if err != nil {
		return nil, nil, err
	}
	report := &WarmStartReport{Unused: found.Extra}
	different := make(map[string]Difference)
	for _, d := range found.Differences {
		if d.Missing() && intact.damage != nil {
			return nil, nil, fmt.Errorf("no value for %s: %w", d.Variable, damaged(w.Checkpoint, intact.damage))
		}
		different[d.Variable] = d
	}
	var matched []match
	for _, v := range vars {
		d, differs := different[v.Name]
		converted := dtype.IsFloat(d.ModelDType) && dtype.IsFloat(d.CheckpointDType) && saver.shapeFits(d)
		if differs && !converted {
			report.Different = append(report.Different, d)
			continue
		}
		report.Restored = append(report.Restored, v.Name)
		m := match{boundVariable: v}
		if info, err := r.Info(v.Key); err == nil && v.Part == nil && v.info.Shape != nil && !slices.Equal(info.Shape, v.info.Shape) {
			m.reshape = true
			report.Reshaped = append(report.Reshaped, v.Name)
		}
		matched = append(matched, m)
	}
	return report, matched, nil
}

func (w *WarmStart) load(ctx context.Context, r ckptfmt.Reader, matched []match) ([]ckptfmt.NamedTensor, error) {
	var values []ckptfmt.NamedTensor
	for _, m := range matched {
		t, err := lookup(ctx, r, w.Checkpoint, m.SavedVariable)
		if err != nil {
			return nil, err
		}
		if t.DType != m.info.DType {
			if t, err = rewrite.CastTensor(t, m.info.DType); err != nil {
				return nil, fmt.Errorf("tensor %s: %w", m.Key, err)
			}
		}
		if m.reshape {
			t = &ckptfmt.Tensor{DType: t.DType, Shape: slices.Clone(m.info.Shape), Data: t.Data, Strings: t.Strings}
		}
		values = append(values, ckptfmt.NamedTensor{Name: m.Name, Tensor: t})
	}
	return values, nil
}
