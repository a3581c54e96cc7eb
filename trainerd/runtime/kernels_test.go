package runtime_test

import (
	"bytes"
	"context"
	"fmt"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
)

// The recorded kernels; make_kernels.py next to them shows how.
const kernelsDir = graphsDir + "/kernels"

func loadGraph(t testing.TB, name string) (*tfpb.GraphDef, *runtime.Session) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(kernelsDir, name))
	if err != nil {
		t.Fatal(err)
	}
	g := &tfpb.GraphDef{}
	if err := proto.Unmarshal(data, g); err != nil {
		t.Fatal(err)
	}
	s, err := runtime.New(g, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return g, s
}

// tolerance allows for other orders of summation, and for TensorFlow's own
// approximations of functions.
func tolerance(op string, dt tfpb.DataType) (rtol, atol float64) {
	rtol, atol = 2e-6, 1e-6
	if dt == tfpb.DataType_DT_DOUBLE {
		rtol, atol = 1e-12, 1e-12
	}
	switch {
	case strings.HasPrefix(op, "Erfinv"), strings.HasPrefix(op, "Lgamma"):
		return 1e-5, 1e-5
	case strings.HasPrefix(op, "FusedBatchNorm"), strings.HasPrefix(op, "LRN"), strings.HasPrefix(op, "Conv2D"), strings.HasPrefix(op, "Depthwise"):
		return 1e-5, 1e-5
	}
	return rtol, atol
}

// TestOps runs each recorded op twice: on constants, where the compiler folds
// it, and on feeds, where it runs as a step; twice, to see reused memory.
func TestOps(t *testing.T) {
	g, s := loadGraph(t, "ops.pb")
	nodes := map[string]*tfpb.NodeDef{}
	for _, n := range g.GetNode() {
		nodes[n.GetName()] = n
	}
	want := map[string][]ckptfmt.NamedTensor{}
	for _, nt := range bundle(t, filepath.Join(kernelsDir, "ops")) {
		name, _, _ := strings.Cut(nt.Name, ":")
		want[name] = append(want[name], nt)
	}
	var names []string
	for name := range want {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		n := nodes[name]
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			feeds := map[string]*ckptfmt.Tensor{}
			for round := range 3 {
				got, err := runNode(s, want[name], feeds)
				if err != nil {
					t.Fatal(err)
				}
				for i, nt := range want[name] {
					rtol, atol := tolerance(n.GetOp(), nt.Tensor.DType)
					if err := compare(got[i], nt.Tensor, rtol, atol); err != nil {
						t.Fatalf("round %d, %s: %v", round, nt.Name, err)
					}
				}
				for _, in := range n.GetInput() {
					v, err := s.Run(context.Background(), nil, []string{in}, nil)
					if err != nil {
						t.Fatal(err)
					}
					feeds[in] = v[0]
				}
			}
		})
	}
}

func runNode(s *runtime.Session, want []ckptfmt.NamedTensor, feeds map[string]*ckptfmt.Tensor) ([]*ckptfmt.Tensor, error) {
	var fetches []string
	for _, nt := range want {
		fetches = append(fetches, nt.Name)
	}
	return s.Run(context.Background(), feeds, fetches, nil)
}

// ulps returns the distance of two floats in units in the last place.
func ulps(got, want *ckptfmt.Tensor, i int) float64 {
	g, w := element(got, i), element(want, i)
	if g == w {
		return 0
	}
	unit := math.Nextafter(math.Abs(w), math.Inf(1)) - math.Abs(w)
	if want.DType == tfpb.DataType_DT_FLOAT {
		w32 := float32(math.Abs(w))
		unit = float64(math.Nextafter32(w32, float32(math.Inf(1))) - w32)
	}
	return math.Abs(g-w) / unit
}

// TestRandom compares two draws in a row from seeded ops with TensorFlow's:
// equal, but for normal distributions in doubles and expected counts, whose
// logarithms and sines round differently in the last bits.
func TestRandom(t *testing.T) {
	for _, name := range []string{"random", "draws", "crops", "unigrams"} {
		t.Run(name, func(t *testing.T) { testRandom(t, name) })
	}
}

func testRandom(t *testing.T, recorded string) {
	_, s := loadGraph(t, recorded+".pb")
	want := map[string]*ckptfmt.Tensor{}
	var names []string
	for _, nt := range bundle(t, filepath.Join(kernelsDir, recorded)) {
		want[nt.Name] = nt.Tensor
		if name, ok := strings.CutPrefix(nt.Name, "0/"); ok {
			names = append(names, name)
		}
	}
	for round := range 2 {
		got, err := s.Run(context.Background(), nil, names, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range names {
			w := want[strconv.Itoa(round)+"/"+name]
			if err := sameDraw(name, got[i], w); err != nil {
				t.Errorf("run %d, %s: %v", round, name, err)
			}
		}
	}
}

func sameDraw(name string, got, want *ckptfmt.Tensor) error {
	limit := 0.0
	if strings.Contains(strings.ToLower(name), "normal") || strings.Contains(name, "truncated") {
		if want.DType == tfpb.DataType_DT_DOUBLE {
			limit = 8
		}
	}
	if strings.HasPrefix(name, "RandomGamma") && want.DType == tfpb.DataType_DT_DOUBLE {
		limit = 32 // of powers of what differs by 8
	}
	if strings.HasPrefix(name, "FixedUnigram") && strings.Contains(name, ":") {
		limit = 1 // of expected counts, functions of the library that TensorFlow has
	}
	n, _ := dtype.NumElements(want.Shape)
	m, _ := dtype.NumElements(got.Shape)
	off := int(m - n) // of large results only the tail is recorded
	if off < 0 || off > 0 && !strings.HasPrefix(name, "big") {
		return fmt.Errorf("shape %v, want %v", got.Shape, want.Shape)
	}
	tail := *got
	tail.Data = got.Data[off*int(dtype.Size(got.DType)):]
	for i := range int(n) {
		if d := ulps(&tail, want, i); d > limit {
			return fmt.Errorf("element %d is %v, want %v (%v units in the last place)", off+i, element(&tail, i), element(want, i), d)
		}
	}
	return nil
}

// TestOptimizers runs the programs of all optimizers for three steps.
func TestOptimizers(t *testing.T) {
	_, s := loadGraph(t, "train.pb")
	text, err := os.ReadFile(filepath.Join(kernelsDir, "train.txt"))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if _, err := s.Run(ctx, nil, nil, []string{"init"}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		for op := range strings.FieldsSeq(string(text)) {
			if _, err := s.Run(ctx, nil, nil, []string{op}); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := bundle(t, filepath.Join(kernelsDir, "train"))
	var names []string
	for _, nt := range want {
		names = append(names, nt.Name)
	}
	snap, err := s.Snapshot(ctx, names)
	if err != nil {
		t.Fatal(err)
	}
	for i, nt := range want {
		if err := compare(snap.Tensors[i], nt.Tensor, 1e-5, 1e-5); err != nil {
			t.Errorf("%s: %v", nt.Name, err)
		}
	}
}

// TestFlow runs branches, loops and functions, before and after a step that
// changes what they depend on.
func TestFlow(t *testing.T) {
	_, s := loadGraph(t, "flow.pb")
	ctx := context.Background()
	if _, err := s.Run(ctx, nil, nil, []string{"start"}); err != nil {
		t.Fatal(err)
	}
	want := bundle(t, filepath.Join(kernelsDir, "flow"))
	for round := range 2 {
		for _, nt := range want {
			name, ok := strings.CutPrefix(nt.Name, strconv.Itoa(round)+"/")
			if !ok {
				continue
			}
			got, err := s.Run(ctx, nil, []string{name}, nil)
			if err != nil {
				t.Errorf("round %d: %v", round, err)
				continue
			}
			if err := compare(got[0], nt.Tensor, 1e-5, 1e-6); err != nil {
				t.Errorf("round %d, %s: %v", round, name, err)
			}
		}
		if _, err := s.Run(ctx, nil, nil, []string{"step"}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestImages decodes the pictures of image summaries.
func TestImages(t *testing.T) {
	_, s := loadGraph(t, "images.pb")
	for _, nt := range bundle(t, filepath.Join(kernelsDir, "images")) {
		name, tag, _ := strings.Cut(nt.Name, "/")
		out, err := s.Run(context.Background(), nil, []string{name}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var sum tfpb.Summary
		if err := proto.Unmarshal(out[0].Strings[0], &sum); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(sum.GetValue(), func(v *tfpb.Summary_Value) bool { return v.GetTag() == tag })
		if i < 0 {
			t.Errorf("%s: no picture %q", name, tag)
			continue
		}
		if err := samePicture(sum.GetValue()[i].GetImage(), nt.Tensor); err != nil {
			t.Errorf("%s, %s: %v", name, tag, err)
		}
	}
}

func samePicture(got *tfpb.Summary_Image, want *ckptfmt.Tensor) error {
	h, w, ch := int(want.Shape[0]), int(want.Shape[1]), int(want.Shape[2])
	if int(got.GetHeight()) != h || int(got.GetWidth()) != w || int(got.GetColorspace()) != ch {
		return fmt.Errorf("%dx%d in %d channels, want %v", got.GetHeight(), got.GetWidth(), got.GetColorspace(), want.Shape)
	}
	img, err := png.Decode(bytes.NewReader(got.GetEncodedImageString()))
	if err != nil {
		return err
	}
	for y := range h {
		for x := range w {
			c := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
			pixel := []byte{c.R, c.G, c.B, c.A}
			at := (y*w + x) * ch
			if !bytes.Equal(pixel[:ch], want.Data[at:at+ch]) {
				return fmt.Errorf("pixel %d,%d is %v, want %v", x, y, pixel[:ch], want.Data[at:at+ch])
			}
		}
	}
	return nil
}
