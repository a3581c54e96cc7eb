package runtime_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
)

const networksDir = "../../bench/train/graphs"

// network returns a session for a network of the training races, and feeds for it.
func network(t *testing.T, name string, o *runtime.Options) (*runtime.Session, map[string]*ckptfmt.Tensor) {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join(networksDir, name+".meta.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var meta tfpb.MetaGraphDef
	if err := proto.Unmarshal(data, &meta); err != nil {
		t.Fatal(err)
	}
	sess, err := runtime.New(meta.GetGraphDef(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sess.Close() })
	text, err := os.ReadFile(filepath.Join(networksDir, "networks.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string][]struct {
		Name  string
		Shape []int64
		Limit int
		Scale float64
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	r, feeds := rand.New(rand.NewPCG(3, 4)), map[string]*ckptfmt.Tensor{}
	for _, f := range all[name] {
		n := int64(1)
		for _, d := range f.Shape {
			n *= d
		}
		v := &ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: f.Shape, Data: make([]byte, 4*n)}
		for i := range n {
			bits := math.Float32bits(float32(f.Scale * (r.Float64() - .5)))
			if f.Limit > 0 {
				v.DType, bits = tfpb.DataType_DT_INT32, uint32(r.IntN(f.Limit))
			}
			binary.LittleEndian.PutUint32(v.Data[4*i:], bits)
		}
		feeds[f.Name] = v
	}
	return sess, feeds
}

// losses trains a network for some steps with so many processors.
func losses(t *testing.T, name string, steps, processors int) []float32 {
	t.Helper()
	before := goruntime.GOMAXPROCS(processors)
	defer goruntime.GOMAXPROCS(before)
	sess, feeds := network(t, name, nil)
	ctx := context.Background()
	if _, err := sess.Run(ctx, nil, nil, []string{"init"}); err != nil {
		t.Fatal(err)
	}
	list := make([]float32, steps)
	for i := range list {
		out, err := sess.Run(ctx, feeds, []string{"loss:0"}, []string{"train"})
		if err != nil {
			t.Fatal(err)
		}
		list[i] = math.Float32frombits(binary.LittleEndian.Uint32(out[0].Data))
	}
	return list
}

// TestBitsOfThreads trains networks whose steps are shared between processors, and run
// at the same time, in every way that there is.
func TestBitsOfThreads(t *testing.T) {
	for name, steps := range map[string]int{"wide_deep": 8, "gcn": 8, "bert": 6} {
		if testing.Short() && name == "bert" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			want := losses(t, name, steps, 1)
			for _, processors := range []int{2, 4} {
				for i, got := range losses(t, name, steps, processors) {
					if got != want[i] {
						t.Fatalf("%d processors: step %d has the loss %v, with one %v", processors, i, got, want[i])
					}
				}
			}
		})
	}
}
