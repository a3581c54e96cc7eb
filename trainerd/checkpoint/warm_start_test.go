package checkpoint

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/hdf5"
	"github.com/trainerd/trainerd/ckptfmt/mapping"
	"github.com/trainerd/trainerd/ckptfmt/names"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// oldModel saves a checkpoint to begin with.
func oldModel(t *testing.T) string {
	return save(t, new(Saver), sessiontest.SessionOf(map[string]*ckptfmt.Tensor{
		"hidden/w": sessiontest.Vector[float32](1, 2), "hidden/w/ExponentialMovingAverage": sessiontest.Vector[float32](5, 6),
		"out/w": sessiontest.Vector[float32](3), "old/b": sessiontest.Vector[float32](4), "global_step": ckptfmt.Scalar(int64(900)),
	}), filepath.Join(t.TempDir(), "m"), 900)
}

func newModel(vars ...string) *sessiontest.Session {
	all := map[string]*ckptfmt.Tensor{
		"hidden/w": sessiontest.Vector[float32](0, 0), "out/w": sessiontest.Vector[float32](0, 0, 0), "new/b": sessiontest.Vector[float32](0),
		"global_step": ckptfmt.Scalar(int64(0)), "double": sessiontest.Vector[float64](0, 0), "whole": sessiontest.Vector[int64](0, 0),
		"half": {DType: 19, Shape: []int64{1, 2}, Data: make([]byte, 4)},
	}
	chosen := map[string]*ckptfmt.Tensor{}
	for _, name := range vars {
		chosen[name] = all[name]
	}
	return sessiontest.SessionOf(chosen)
}

// What a new model takes from another one's checkpoint, and what it says of the
// rest.
func TestWarmStart(t *testing.T) {
	prefix := oldModel(t)
	rename, err := mapping.Parse("map", []byte("rest = \"keep\"\n[[rule]]\nfrom = 'old/(.*)'\nto = 'new/$1'\n"))
	sessiontest.MustNoErr(t, err)
	wrong, err := mapping.Parse("map", []byte("[[rule]]\nfrom = 'nothing'\nto = 'x'\n"))
	sessiontest.MustNoErr(t, err)
	tests := []struct {
		name     string
		w        WarmStart
		vars     []string
		restored []string
		values   map[string]float64 // the first element
		left     []string
		reshaped []string
		differ   []string
		err      string
	}{
		{name: "by name", vars: []string{"hidden/w", "out/w", "new/b", "global_step"}, restored: []string{"hidden/w"}, values: map[string]float64{"hidden/w": 1},
			left: []string{"global_step"}, differ: []string{"new/b", "out/w"}},
		{name: "renamed, with the step", w: WarmStart{Names: map[string]string{"old/b": "new/b:0", "global_step": "global_step"}}, vars: []string{"hidden/w", "new/b", "global_step"},
			restored: []string{"global_step", "hidden/w", "new/b"}, values: map[string]float64{"new/b": 4, "hidden/w": 1, "global_step": 900}},
		{name: "only some", w: WarmStart{Names: map[string]string{"old/b": "new/b"}, Only: true}, vars: []string{"hidden/w", "new/b"}, restored: []string{"new/b"}, left: []string{"hidden/w"}},
		{name: "those that are taken", w: WarmStart{Take: func(key string) bool { return strings.HasPrefix(key, "global") }}, vars: []string{"hidden/w", "global_step"},
			restored: []string{"global_step"}, left: []string{"hidden/w"}, values: map[string]float64{"global_step": 900}},
		{name: "averages", w: WarmStart{Averages: true}, vars: []string{"hidden/w"}, restored: []string{"hidden/w"}, values: map[string]float64{"hidden/w": 5}},
		{name: "by a map", w: WarmStart{Map: rename}, vars: []string{"hidden/w", "new/b"}, restored: []string{"hidden/w", "new/b"}, values: map[string]float64{"new/b": 4}},
		{name: "of another type of float", w: WarmStart{Names: map[string]string{"hidden/w": "double"}}, vars: []string{"double"}, restored: []string{"double"}, values: map[string]float64{"double": 1}},
		{name: "no float", w: WarmStart{Names: map[string]string{"hidden/w": "whole"}}, vars: []string{"whole"}, differ: []string{"whole"}, err: "has no value for any variable"},
		{name: "of another type and shape", w: WarmStart{Names: map[string]string{"hidden/w": "half"}, Reshape: true}, vars: []string{"half"}, restored: []string{"half"}, reshaped: []string{"half"}},
		{name: "of another shape", w: WarmStart{Names: map[string]string{"hidden/w": "half"}}, vars: []string{"half"}, differ: []string{"half"}, err: "has no value for any variable"},
		{name: "strict", w: WarmStart{Strict: true}, vars: []string{"hidden/w", "new/b"}, restored: []string{"hidden/w"}, differ: []string{"new/b"}, err: "has no value for 1 variables"},
		{name: "strict, and all fit", w: WarmStart{Strict: true}, vars: []string{"hidden/w"}, restored: []string{"hidden/w"}},
		{name: "by a Saver", w: WarmStart{Saver: &Saver{Variables: map[string]string{"old/b": "new/b"}}}, vars: []string{"hidden/w", "new/b"}, restored: []string{"new/b"}, values: map[string]float64{"new/b": 4}},
		{name: "by a Saver of others", w: WarmStart{Saver: &Saver{Variables: VariableList("x")}}, vars: []string{"new/b"}, err: "no variable x"},
		{name: "no such variable", w: WarmStart{Names: map[string]string{"old/b": "b"}}, vars: []string{"hidden/w"}, err: "no variable b"},
		{name: "one variable by two names", w: WarmStart{Names: map[string]string{"old/b": "new/b", "out/w": "new/b:0"}}, vars: []string{"new/b"}, err: "variable new/b has two keys, old/b and out/w"},
		{name: "no checkpoint", w: WarmStart{Checkpoint: filepath.Join(t.TempDir(), "m.keras")}, vars: []string{"hidden/w"}, err: "m.keras: file does not exist"},
		{name: "a folder without a checkpoint", w: WarmStart{Checkpoint: t.TempDir()}, vars: []string{"hidden/w"}, err: "the folder has none"},
		{name: "a map that fits nothing", w: WarmStart{Map: wrong}, vars: []string{"hidden/w"}, err: "warm start: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.w.Checkpoint == "" {
				tt.w.Checkpoint = prefix
			}
			sess := newModel(tt.vars...)
			plan, planErr := tt.w.Plan(t.Context(), sess)
			if sess.Restored != nil {
				t.Fatal("a plan has given values")
			}
			report, err := tt.w.Apply(t.Context(), sess)
			if diff := cmp.Diff(plan, report); diff != "" || (planErr == nil) != (err == nil) {
				t.Errorf("plan (-) and what was done (+): %v, %v\n%s", planErr, err, diff)
			}
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Fatalf("Apply = %v; want an error with %q", err, tt.err)
			}
			var strict *WarmStartError
			if errors.As(err, &strict) != tt.w.Strict && tt.err != "" || tt.err != "" && sess.Restored != nil {
				t.Errorf("%T after values were given: %v", err, sess.Restored)
			}
			if report == nil {
				return
			}
			var differ, assigned []string
			for _, d := range report.Different {
				differ = append(differ, d.Variable)
			}
			for _, v := range sess.Restored {
				assigned = append(assigned, v.Name)
			}
			if err == nil && !slices.Equal(assigned, tt.restored) {
				t.Errorf("assigned %v", assigned)
			}
			for what, lists := range map[string][2][]string{"restored": {report.Restored, tt.restored}, "left": {report.Left, tt.left}, "reshaped": {report.Reshaped, tt.reshaped}, "different": {differ, tt.differ}} {
				slices.Sort(lists[0])
				if diff := cmp.Diff(lists[0], lists[1], cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s (-got +want):\n%s", what, diff)
				}
			}
			for name, want := range tt.values {
				if got := first(t, sess.Get(name)); got != want {
					t.Errorf("%s begins with %v; want %v", name, got, want)
				}
			}
			for _, name := range tt.reshaped {
				if got := sess.Get(name); !slices.Equal(got.Shape, newModel(name).Get(name).Shape) || len(got.Data) != 4 {
					t.Errorf("%s has shape %v and %d bytes", name, got.Shape, len(got.Data))
				}
			}
		})
	}
}

// first returns the first element.
func first(t *testing.T, x *ckptfmt.Tensor) float64 {
	t.Helper()
	if v, err := ckptfmt.Values[float32](x); err == nil {
		return float64(v[0])
	}
	if v, err := ckptfmt.Values[float64](x); err == nil {
		return v[0]
	}
	v, err := ckptfmt.Values[int64](x)
	sessiontest.MustNoErr(t, err)
	return float64(v[0])
}

// What a program has put before the names of all tensors is taken off.
func TestWarmStartOfAWrappedModel(t *testing.T) {
	prefix := save(t, new(Saver), sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"module.w": sessiontest.Vector[float32](7)}), filepath.Join(t.TempDir(), "m"), 1)
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"w": sessiontest.Vector[float32](0)})
	report, err := (&WarmStart{Checkpoint: prefix, Strict: true}).Apply(t.Context(), sess)
	sessiontest.MustNoErr(t, err)
	if got := first(t, sess.Get("w")); got != 7 || report.Prefix != "module." {
		t.Errorf("w is %v, the prefix is %q", got, report.Prefix)
	}
}

// A file of Keras without names of layers numbers those of each class: dense is its first Dense,
// whatever the model calls so.
func TestWarmStartFromAFileWithoutNames(t *testing.T) {
	var b bytes.Buffer
	part := ckptfmt.WholePart("layers/dense/vars/0", 1, []int64{1}, func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(sessiontest.Vector[float32](7).Data)), nil
	})
	sessiontest.MustNoErr(t, hdf5.Write(t.Context(), &b, []ckptfmt.Part{part}, nil))
	file := filepath.Join(t.TempDir(), "x.weights.h5")
	sessiontest.MustNoErr(t, os.WriteFile(file, b.Bytes(), 0o600))
	named, err := mapping.Parse("map", []byte("[[rule]]\nfrom = 'dense/kernel'\nto = 'dense/kernel'\n"))
	sessiontest.MustNoErr(t, err)
	for _, m := range []*mapping.Map{nil, named} {
		sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"dense/kernel": sessiontest.Vector[float32](0)})
		_, err := (&WarmStart{Checkpoint: file, Map: m, Strict: true}).Apply(t.Context(), sess)
		if m == nil && (err == nil || !strings.Contains(err.Error(), "no names of layers")) || m != nil && (err != nil || first(t, sess.Get("dense/kernel")) != 7) {
			t.Errorf("with a map: %t: %v", m != nil, err)
		}
	}
	for _, name := range []string{"head/kernel", "dense_9/kernel"} {
		other := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{name: sessiontest.Vector[float32](0)})
		if _, err := (&WarmStart{Checkpoint: file, Strict: true}).Apply(t.Context(), other); err == nil || strings.Contains(err.Error(), "no names of layers") {
			t.Errorf("a model with a name that the file does not have, %s: %v", name, err)
		}
	}
}

// Keras numbers layers over all models of a program: dense_1 may be another layer here.
func TestWarmStartFromLayersOfOtherNumbers(t *testing.T) {
	model := func(layers ...string) *sessiontest.Session {
		vars := make(map[string]*ckptfmt.Tensor)
		for _, layer := range layers {
			vars[layer+"/kernel"] = sessiontest.Vector[float32](1)
		}
		return sessiontest.SessionOf(vars)
	}
	for _, c := range []struct {
		about, source, model string
		names                map[string]string
		want                 string
	}{
		{"the same", "dense dense_1", "dense dense_1", nil, ""},
		{"more layers", "dense dense_1", "dense dense_1 dense_2", nil, ""},
		{"a later model", "dense_1 dense_2", "dense dense_1", nil, "dense_1/kernel"},
		{"not all of them", "dense_1 dense_3", "dense_1 dense_2", nil, "dense_1/kernel"},
		{"the config says which", "dense_1 dense_2", "dense dense_1", map[string]string{"dense_1/kernel": "dense/kernel", "dense_2/kernel": "dense_1/kernel"}, ""},
		{"names of a program", "block_1 block_2", "block block_1", nil, ""},
	} {
		prefix := save(t, new(Saver), model(strings.Fields(c.source)...), filepath.Join(t.TempDir(), "m"), 1)
		report, err := (&WarmStart{Checkpoint: prefix, Names: c.names}).Plan(t.Context(), model(strings.Fields(c.model)...))
		sessiontest.MustNoErr(t, err)
		if got := strings.Join(report.Doubtful, " "); got != c.want || strings.Contains(report.String(), "of another layer: dense_1/kernel") != (c.want != "") {
			t.Errorf("%s: %q are doubtful, want %q; %v", c.about, got, c.want, report)
		}
	}
}

// In a checkpoint of tf.train.Checkpoint, any name of a tensor finds it.
func TestWarmStartByNamesOfObjects(t *testing.T) {
	prefix := filepath.Join("..", "..", "fixtures", "ckpt_v2", "object_based", "ckpt-3")
	r, err := ckptfmt.Open(prefix, nil)
	sessiontest.MustNoErr(t, err)
	defer r.Close()
	table, err := names.Of(r)
	sessiontest.MustNoErr(t, err)
	want := map[string]*ckptfmt.Tensor{}
	for info, err := range r.Tensors() {
		sessiontest.MustNoErr(t, err)
		if name := table.Name(names.Keras, info.Name); name != info.Name && info.DType == 1 {
			want[name], err = r.Lookup(info.Name)
			sessiontest.MustNoErr(t, err)
		}
	}
	empty := map[string]*ckptfmt.Tensor{}
	for name, tensor := range want {
		empty[name] = &ckptfmt.Tensor{DType: tensor.DType, Shape: tensor.Shape, Data: make([]byte, len(tensor.Data))}
	}
	sess := sessiontest.SessionOf(empty)
	_, err = (&WarmStart{Checkpoint: prefix, Strict: true}).Apply(t.Context(), sess)
	sessiontest.MustNoErr(t, err)
	for name := range want {
		if diff := cmp.Diff(sess.Get(name), want[name], cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
	if len(want) < 2 {
		t.Errorf("only %d tensors have names of their own", len(want))
	}
}

func TestWarmStartReport(t *testing.T) {
	w := WarmStart{Checkpoint: oldModel(t)}
	report, err := w.Apply(t.Context(), newModel("hidden/w", "new/b"))
	sessiontest.MustNoErr(t, err)
	want := `1 variables restored
  not restored: new/b: missing in the checkpoint; the model has float32 [1]
  only in the checkpoint: global_step
  only in the checkpoint: hidden/w/ExponentialMovingAverage
  only in the checkpoint: old/b
  only in the checkpoint: out/w`
	if diff := cmp.Diff(report.String(), want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	w.Averages = true
	report, err = w.Apply(t.Context(), newModel("hidden/w"))
	if err != nil || slices.Contains(report.Unused, "hidden/w/ExponentialMovingAverage") {
		t.Errorf("an average that was used counts as unused: %v, %v", report, err)
	}
	for n, more := range map[int]string{10: "", 11: "\n  and 1 more"} {
		err := &WarmStartError{Checkpoint: "m", Differences: make([]Difference, n)}
		if lines := strings.Count(err.Error(), "\n"); lines != n || !strings.HasSuffix(err.Error(), more) {
			t.Errorf("of %d differences: %v", n, err)
		}
	}
}

// Damage is found before anything is assigned, and so is a session without
// variables.
func TestWarmStartFails(t *testing.T) {
	prefix := oldModel(t)
	w := WarmStart{Checkpoint: prefix}
	if _, err := w.Apply(t.Context(), sessiontest.OpSession{Session: newModel("hidden/w")}); err == nil || !strings.Contains(err.Error(), "does not take values") {
		t.Errorf("a session without variables: %v", err)
	}
	if _, err := w.Apply(t.Context(), failingStore{newModel("hidden/w")}); !errors.Is(err, errStore) {
		t.Errorf("a session that takes no values: %v", err)
	}
	none := WarmStart{Checkpoint: prefix, Take: func(string) bool { return false }}
	if _, err := none.Plan(t.Context(), newModel("hidden/w")); err == nil || !strings.Contains(err.Error(), "none of the") {
		t.Errorf("no variable is to be taken: %v", err)
	}
	sess := newModel("hidden/w")
	if err := flipAll(t, prefix); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Apply(t.Context(), sess); !errors.Is(err, ckptfmt.ErrChecksum) || sess.Restored != nil {
		t.Errorf("damaged data: %v", err)
	}
	if _, err := w.Plan(t.Context(), sess); err != nil {
		t.Errorf("a plan reads values: %v", err)
	}
	sessiontest.MustNoErr(t, os.Truncate(prefix+".index", 9))
	if _, err := w.Apply(t.Context(), sess); err == nil {
		t.Error("a cut index")
	}
}

// A lost file of Keras' sharded weights hinders the variables whose values it had, or may have
// had, and no others.
func TestWarmStartWithLostShard(t *testing.T) {
	dir := t.TempDir()
	sessiontest.MustNoErr(t, errors.Join(os.CopyFS(dir, os.DirFS("../../fixtures/keras/sharded")), os.Remove(filepath.Join(dir, "m_00001.weights.h5"))))
	sess := func(names ...string) *sessiontest.Session {
		vars := map[string]*ckptfmt.Tensor{"global_step": ckptfmt.Scalar(int64(0))}
		for _, name := range names {
			vars[name] = sessiontest.Vector[float32](make([]float32, 40)...)
		}
		return sessiontest.SessionOf(vars)
	}
	whole := WarmStart{Checkpoint: filepath.Join(dir, "m.weights.json")}
	some := whole
	some.Take = func(key string) bool { return key == "body/bias" }
	for name, tc := range map[string]struct {
		w    WarmStart
		vars []string
		err  string
	}{
		"not wanted":          {whole, []string{"body/bias"}, ""},
		"left out":            {some, []string{"body/bias", "head/bias"}, ""},
		"wanted":              {whole, []string{"body/bias", "head/bias"}, "no value for head/bias: "},
		"perhaps what it had": {whole, []string{"body/bias", "other"}, "no value for other: "},
	} {
		report, err := tc.w.Apply(t.Context(), sess(tc.vars...))
		switch {
		case tc.err == "" && (err != nil || !slices.Equal(report.Restored, []string{"body/bias"})):
			t.Errorf("%s: %v, %v", name, report, err)
		case tc.err != "" && (!errors.As(err, new(*ckptfmt.CorruptError)) || !strings.Contains(err.Error(), tc.err) || !strings.Contains(err.Error(), "m_00001.weights.h5")):
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A damaged entry in the index of a checkpoint hinders the variable that it has the values of, and
// no other.
func TestWarmStartWithDamagedEntry(t *testing.T) {
	w := WarmStart{Checkpoint: "../../fixtures/ckpt_v2/damaged/entry_shape_negative/model.ckpt"}
	vars := map[string]*ckptfmt.Tensor{"dense/bias": sessiontest.Vector[float32](0, 0, 0, 0, 0)}
	report, err := w.Apply(t.Context(), sessiontest.SessionOf(vars))
	if err != nil || !slices.Equal(report.Restored, []string{"dense/bias"}) {
		t.Errorf("one that is intact: %v, %v", report, err)
	}
	vars["dense/kernel"] = sessiontest.Vector[float32](make([]float32, 20)...)
	if _, err := w.Apply(t.Context(), sessiontest.SessionOf(vars)); !errors.As(err, new(*ckptfmt.CorruptError)) || !strings.Contains(err.Error(), "dense/kernel") {
		t.Errorf("one that is damaged: %v", err)
	}
}

// flipAll damages every tensor.
func flipAll(t *testing.T, prefix string) error {
	t.Helper()
	name := prefix + ".data-00000-of-00001"
	b, err := os.ReadFile(name)
	for i := range b {
		b[i] ^= 0x55
	}
	return errors.Join(err, os.WriteFile(name, b, 0o666))
}

// A checkpoint of a newer TensorFlow asks for a newer release, not for another checkpoint.
func TestWarmStartFromNewerVersion(t *testing.T) {
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"w": sessiontest.Vector[float32](0)})
	_, err := (&WarmStart{Checkpoint: "../../fixtures/ckpt_v2/damaged/min_consumer_2/model.ckpt"}).Apply(t.Context(), sess)
	if !errors.Is(err, ckptfmt.ErrVersion) || !strings.Contains(err.Error(), "newer release") {
		t.Errorf("the error is %v", err)
	}
}
