package checkpoint

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// tableSession is a session with one variable, b, and a table, which its op makes.
type tableSession struct {
	*sessiontest.Session
	keys, values *ckptfmt.Tensor // nil for no table yet
	makeErr      error
	restored     map[string]*ckptfmt.Tensor
}

func (s *tableSession) SavesTables() {}

func (s *tableSession) Run(ctx context.Context, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) ([]*ckptfmt.Tensor, error) {
	if slices.Contains(targets, "words") {
		if s.keys == nil {
			s.keys, s.values = sessiontest.Vector[int64](), sessiontest.Vector[float32]()
		}
		return nil, s.makeErr
	}
	return s.Session.Run(ctx, feeds, fetches, targets)
}

func (s *tableSession) Snapshot(ctx context.Context, names []string) (*session.Snapshot, error) {
	shot, err := s.Session.Snapshot(ctx, names)
	if err == nil && s.keys != nil {
		keys, values := session.TableState("words")
		shot.State = append(shot.State, ckptfmt.NamedTensor{Name: keys, Tensor: s.keys}, ckptfmt.NamedTensor{Name: values, Tensor: s.values})
	}
	return shot, err
}

func (s *tableSession) Restore(ctx context.Context, values []ckptfmt.NamedTensor) error {
	s.restored = make(map[string]*ckptfmt.Tensor)
	for _, v := range values {
		s.restored[v.Name] = v.Tensor
	}
	return nil
}

func newTableSession(keys, values *ckptfmt.Tensor) *tableSession {
	vars := map[string]*ckptfmt.Tensor{"b": sessiontest.Vector[float32](9)}
	return &tableSession{Session: sessiontest.SessionOf(vars), keys: keys, values: values}
}

// tableGraph has a table that its saver saves under names of its own, or that only TensorFlow's default
// saver would save.
func tableGraph(bySaver bool) *tfpb.MetaGraphDef {
	words := node("words", "MutableHashTableV2")
	words.Attr = map[string]*tfpb.AttrValue{"use_node_name_sharing": {Value: &tfpb.AttrValue_B{B: true}}}
	save := node("save/SaveV2", "SaveV2", "save/Const", "names", "slices", "b")
	names, slices := stringsNode("names", "b"), stringsNode("slices", "")
	if bySaver {
		save.Input = append(save.Input, "export", "export:1")
		names, slices = stringsNode("names", "b", "words/keys", "words/values"), stringsNode("slices", "", "", "")
	}
	return &tfpb.MetaGraphDef{
		SaverDef: &tfpb.SaverDef{FilenameTensorName: "save/Const:0", SaveTensorName: "save/Identity:0", RestoreOpName: "save/restore_all"},
		GraphDef: &tfpb.GraphDef{Node: []*tfpb.NodeDef{
			node("b", "VariableV2"), words, node("export", "LookupTableExportV2", "words"), node("save/Const", "PlaceholderWithDefault"),
			names, slices, save, node("save/Identity", "Identity", "save/Const", "^save/SaveV2"),
		}},
	}
}

// TestTables saves a table with the variables, in the same cut, and restores it.
func TestTables(t *testing.T) {
	stateKeys, stateValues := session.TableState("words")
	for bySaver, want := range map[bool][]string{true: {"b", "words/keys", "words/values"}, false: {"b", "words-keys", "words-values"}} {
		sess := newTableSession(sessiontest.Vector[int64](1, 2), sessiontest.Vector[float32](3, 4))
		saver := &Saver{MetaGraph: tableGraph(bySaver)}
		prefix := save(t, saver, sess, filepath.Join(t.TempDir(), "m"), 1)
		if diff := cmp.Diff(keys(t, prefix), want); diff != "" {
			t.Errorf("keys (-got +want):\n%s", diff)
		}
		r, err := ckptfmt.OpenBundle(prefix, nil)
		sessiontest.MustNoErr(t, err)
		defer r.Close()
		stored, err := r.Lookup(want[1])
		sessiontest.MustNoErr(t, err)
		if diff := cmp.Diff(stored, sess.keys); diff != "" {
			t.Errorf("%s (-got +want):\n%s", want[1], diff)
		}
		data, err := os.ReadFile(prefix + ".data-00000-of-00001")
		sessiontest.MustNoErr(t, err)
		if got := math.Float32frombits(binary.LittleEndian.Uint32(data)); got != 9 {
			t.Errorf("the data begin with %v, want b: they are in the order of the keys", got)
		}
		other := newTableSession(nil, nil)
		other.Session = sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"b": sessiontest.Vector[int64](9)})
		mismatch, is := errors.AsType[*MismatchError](saver.Restore(t.Context(), other, prefix))
		if !is || mismatch.Extra != nil {
			t.Errorf("a model whose b is of another type: %v; want that no table is left over", mismatch)
		}
		sessiontest.MustNoErr(t, saver.Restore(t.Context(), sess, prefix))
		got := map[string]*ckptfmt.Tensor{"b": sessiontest.Vector[float32](9), stateKeys: sess.keys, stateValues: sess.values}
		if diff := cmp.Diff(sess.restored, got); diff != "" {
			t.Errorf("restored (-got +want):\n%s", diff)
		}
	}
}

// TestTablesOfFirstCheckpoint: the first checkpoint comes before the first step, which makes a table.
func TestTablesOfFirstCheckpoint(t *testing.T) {
	saver, sess := &Saver{MetaGraph: tableGraph(true)}, newTableSession(nil, nil)
	sess.makeErr = errors.New("it has no memory")
	if _, err := saver.Snapshot(t.Context(), sess, ""); !errors.Is(err, sess.makeErr) {
		t.Errorf("a table that cannot be made: %v", err)
	}
	sess.keys, sess.values, sess.makeErr = nil, nil, nil
	prefix := save(t, saver, sess, filepath.Join(t.TempDir(), "m"), 0)
	if got := keys(t, prefix); !slices.Contains(got, "words/keys") || !slices.Contains(got, "words/values") {
		t.Errorf("keys %v", got)
	}
}

// TestTablesThatAreMissing: a checkpoint has to have what the graph's saver saves, and may lack the rest.
func TestTablesThatAreMissing(t *testing.T) {
	without := save(t, &Saver{}, newTableSession(nil, nil).Session, filepath.Join(t.TempDir(), "m"), 1)
	err := (&Saver{MetaGraph: tableGraph(true)}).Restore(t.Context(), newTableSession(nil, nil), without)
	if _, is := errors.AsType[*MismatchError](err); !is || !strings.Contains(err.Error(), "words/keys") {
		t.Errorf("a table of the saver is missing: %v", err)
	}
	sessiontest.MustNoErr(t, (&Saver{MetaGraph: tableGraph(false)}).Restore(t.Context(), newTableSession(nil, nil), without))

	plain := newTableSession(nil, nil).Session // which cannot save tables
	if _, _, err := (&Saver{MetaGraph: tableGraph(true)}).variablesOf(t.Context(), plain); err != nil {
		t.Errorf("a session without tables: %v; want its graph's own ops used", err)
	}
	broken := tableGraph(true)
	find(broken, "save/SaveV2").Input = nil
	if got := (&Saver{MetaGraph: broken}).tables(); got != nil {
		t.Errorf("tables %v of a graph whose saver cannot be read", got)
	}
	if _, err := (&Saver{MetaGraph: tableGraph(true)}).bind(t.Context(), plain); !errors.Is(err, graph.ErrSavedByOps) {
		t.Errorf("bind: %v", err)
	}
}
