package runtime_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// tableProgram has tables that its steps fill, and a variable.
type tableProgram struct {
	*pipe
	step, find, init string
}

func newTableProgram(t *testing.T) *tableProgram {
	p := &tableProgram{pipe: newPipe(t)}
	types := []any{"key_dtype", dtInt64, "value_dtype", dtInt64, "use_node_name_sharing", true}
	words := p.node("MutableHashTableV2", nil, types...)
	dense := p.node("MutableDenseHashTableV2", []string{p.long(-1), p.long(-2)}, append(types, "initial_num_buckets", 4)...)
	w := p.variable("w", dtInt64, &tfpb.TensorShapeProto{})
	p.init = p.node("Assign", []string{w, p.long(1)}, "T", dtInt64)
	read := p.node("Identity", []string{w}, "T", dtInt64)
	added := p.node("AddV2", []string{read, p.long(1)}, "T", dtInt64)
	insert := func(table string) string {
		return p.node("LookupTableInsertV2", []string{table, read, added}, "Tin", dtInt64, "Tout", dtInt64)
	}
	p.step = p.node("Assign", []string{w, added, "^" + insert(words), "^" + insert(dense)}, "T", dtInt64)
	find := func(table string) string {
		return p.node("LookupTableFindV2", []string{table, p.node("Const", nil, "dtype", dtInt64, "value", longs(1, 2, 3, 4)), p.long(0)}, "Tin", dtInt64, "Tout", dtInt64)
	}
	p.find = p.node("AddV2", []string{find(words), find(dense)}, "T", dtInt64)
	return p
}

// found returns the sums of what the two tables have under 1, 2, 3 and 4.
func (p *tableProgram) found(t *testing.T, s *runtime.Session) string {
	t.Helper()
	out, err := s.Run(t.Context(), nil, []string{p.find + ":0"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	values, err := ckptfmt.Values[int64](out[0])
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(values)
}

// TestTablesInCheckpoints resumes a training with tables that its steps change, in sessions
// that have run nothing, and in one that has gone on. The tables have TensorFlow's keys.
func TestTablesInCheckpoints(t *testing.T) {
	p := newTableProgram(t)
	meta := &tfpb.MetaGraphDef{GraphDef: p.def}
	run := func(s *runtime.Session, ops ...string) {
		t.Helper()
		for _, op := range ops {
			if _, err := s.Run(t.Context(), nil, nil, []string{op}); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := sessionOf(t, p.def)
	run(s, p.init, p.step, p.step)
	prefix, err := (&checkpoint.Saver{MetaGraph: meta}).Save(t.Context(), s, filepath.Join(t.TempDir(), "m"), 2)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ckptfmt.Open(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var keys []string
	for info, err := range r.Tensors() {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, fmt.Sprint(info.Name, info.Shape))
	}
	want := []string{"MutableDenseHashTableV2_3-keys[4 1]", "MutableDenseHashTableV2_3-values[4 1]",
		"MutableHashTableV2_0-keys[2]", "MutableHashTableV2_0-values[2]", "w[]"}
	if !slices.Equal(keys, want) {
		t.Errorf("the checkpoint has %q; want %q", keys, want)
	}
	run(s, p.step, p.step)
	began := sessionOf(t, p.def)
	run(began, p.init, p.step)
	for name, s := range map[string]*runtime.Session{"the same": s, "new": sessionOf(t, p.def), "begun": began} {
		if err := (&checkpoint.Saver{MetaGraph: meta}).Restore(t.Context(), s, prefix); err != nil {
			t.Fatal(err)
		}
		if got := p.found(t, s); got != "[4 6 0 0]" {
			t.Errorf("%s session: found %s", name, got)
		}
		run(s, p.step)
		if got := p.found(t, s); got != "[4 6 8 0]" {
			t.Errorf("%s session, a step later: found %s", name, got)
		}
	}
}

// TestTableOfAnotherType restores nothing if a table cannot hold what a checkpoint has of it.
func TestTableOfAnotherType(t *testing.T) {
	p := newTableProgram(t)
	s := sessionOf(t, p.def)
	for _, op := range []string{p.init, p.step} {
		if _, err := s.Run(t.Context(), nil, nil, []string{op}); err != nil {
			t.Fatal(err)
		}
	}
	keys, values := session.TableState("MutableHashTableV2_0")
	text := ckptfmt.Scalar("x")
	err := s.Restore(t.Context(), []ckptfmt.NamedTensor{{Name: "w", Tensor: ckptfmt.Scalar[int64](9)}, {Name: keys, Tensor: text}, {Name: values, Tensor: text}})
	if err == nil {
		t.Error("a table of numbers took text")
	}
	if got := p.found(t, s); got != "[4 0 0 0]" {
		t.Errorf("found %s", got)
	}
}

// TestTablesBeforeTheFirstStep saves a graph whose saver saves tables, before anything has made them.
func TestTablesBeforeTheFirstStep(t *testing.T) {
	p := newPipe(t)
	types := []any{"key_dtype", dtInt64, "value_dtype", dtInt64, "use_node_name_sharing", true}
	words := p.node("MutableHashTableV2", nil, types...)
	export := p.node("LookupTableExportV2", []string{words}, "Tkeys", dtInt64, "Tvalues", dtInt64)
	w := p.variable("w", dtInt64, &tfpb.TensorShapeProto{})
	init := p.node("Assign", []string{w, p.long(1)}, "T", dtInt64)
	texts := func(all ...string) string {
		value := &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: &tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{Size: int64(len(all))}}}}
		for _, s := range all {
			value.StringVal = append(value.StringVal, []byte(s))
		}
		return p.node("Const", nil, "dtype", tfpb.DataType_DT_STRING, "value", value)
	}
	file := texts("unused")
	saved := p.node("SaveV2", []string{file, texts("w", "keys", "values"), texts("", "", ""), w, export, export + ":1"},
		"dtypes", []tfpb.DataType{dtInt64, dtInt64, dtInt64})
	name := p.node("Identity", []string{file, "^" + saved}, "T", tfpb.DataType_DT_STRING)
	s := sessionOf(t, p.def)
	if _, err := s.Run(t.Context(), nil, nil, []string{init}); err != nil {
		t.Fatal(err)
	}
	meta := &tfpb.MetaGraphDef{GraphDef: p.def, SaverDef: &tfpb.SaverDef{FilenameTensorName: file + ":0", SaveTensorName: name + ":0", RestoreOpName: init}}
	prefix, err := (&checkpoint.Saver{MetaGraph: meta}).Save(t.Context(), s, filepath.Join(t.TempDir(), "m"), 0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ckptfmt.Open(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, key := range []string{"keys", "values"} {
		if info, err := r.Info(key); err != nil || fmt.Sprint(info.Shape) != "[0]" {
			t.Errorf("%s: %v, %v", key, info.Shape, err)
		}
	}
}
