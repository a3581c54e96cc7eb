package exec_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// builder is a graph of one node, whose builds are counted, and wait if it is told so.
type builder struct {
	*exec.Session
	builds  atomic.Int32
	waiting chan struct{} // a build waits until it is closed; nil for none
	fails   atomic.Bool   // a build panics
}

func newBuilder(t *testing.T) *builder {
	t.Helper()
	b := &builder{}
	attr := map[string]*tfpb.AttrValue{"dtype": {Value: &tfpb.AttrValue_Type{Type: exec.Float32}}, "T": {Value: &tfpb.AttrValue_Type{Type: exec.Float32}}}
	def := &tfpb.GraphDef{Node: []*tfpb.NodeDef{
		{Name: "x", Op: "Placeholder", Attr: attr}, {Name: "y", Op: "Neg", Input: []string{"x"}, Attr: attr},
	}}
	var err error
	b.Session, err = exec.New(exec.OpTable{"Neg": {Build: func(*exec.OpConstruction) (exec.Kernel, error) {
		b.builds.Add(1)
		if b.waiting != nil {
			<-b.waiting
		}
		if b.fails.Load() {
			panic("in a build")
		}
		return func(c *exec.KernelContext) error { c.Alias(0, c.In(0), c.In(0).Shape); return nil }, nil
	}}}, def, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func (b *builder) run(t *testing.T) error {
	x, err := ckptfmt.FromValues([]int64{1}, []float32{1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Run(t.Context(), map[string]*ckptfmt.Tensor{"x": x}, []string{"y"}, nil)
	return err
}

// TestPrepare runs a step that is being compiled: a node is built to be checked, and
// once more for the plan.
func TestPrepare(t *testing.T) {
	b := newBuilder(t)
	b.waiting = make(chan struct{})
	b.Prepare([]string{"x"}, []string{"y"}, nil)
	b.Prepare([]string{"x"}, []string{"y"}, nil)
	ran := make(chan error)
	go func() { ran <- b.run(t) }()
	close(b.waiting)
	if err := <-ran; err != nil {
		t.Fatal(err)
	}
	if err := b.run(t); err != nil || b.builds.Load() != 2 {
		t.Errorf("error %v after %d builds, want 2", err, b.builds.Load())
	}
}

// TestPrepareFails leaves it to Run to say what is wrong.
func TestPrepareFails(t *testing.T) {
	b := newBuilder(t)
	b.Prepare(nil, []string{"none"}, nil)
	_, err := b.Run(t.Context(), nil, []string{"none"}, nil)
	_, want := newBuilder(t).Run(t.Context(), nil, []string{"none"}, nil)
	if err == nil || err.Error() != want.Error() {
		t.Errorf("error %v, want %v", err, want)
	}
	b.fails.Store(true)
	b.Prepare([]string{"x"}, []string{"y"}, nil)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("Run does not panic where Prepare did")
			}
		}()
		b.run(t)
	}()
}

// TestPrepareEndsWithSession closes a session while a step is compiled.
func TestPrepareEndsWithSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBuilder(t)
		b.waiting = make(chan struct{})
		b.Prepare([]string{"x"}, []string{"y"}, nil)
		synctest.Wait() // until the build waits
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			b.Close()
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close does not wait for the build")
		default:
		}
		close(b.waiting)
		<-closed
		builds := b.builds.Load()
		b.Prepare([]string{"x"}, []string{"y"}, []string{"y"}) // another step
		synctest.Wait()
		if n := b.builds.Load(); builds == 0 || n != builds {
			t.Errorf("%d builds after the end of the session, and %d before", n-builds, builds)
		}
	})
}
