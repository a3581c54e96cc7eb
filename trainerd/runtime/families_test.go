package runtime_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// TestFamilies compares the rarer ops with what TensorFlow recorded, on
// constants (folded when the graph is compiled) and on feeds (run as steps).
func TestFamilies(t *testing.T) {
	for _, name := range []string{"families", "wider", "special", "rare", "dense", "parsing", "searched", "ragged", "picked", "strings", "types", "pictures", "jpegs", "truncated", "media", "sounds", "others", "former", "projected", "lanczos", "complexes", "unicode"} {
		t.Run(name, func(t *testing.T) { testFamilies(t, name) })
	}
}

// TestHalves compares arithmetic of 16 bits.
func TestHalves(t *testing.T) { eachRecorded(t, "halves", compareSums) }

// compareSums compares sums of 16 bits. TensorFlow's kernels round partial
// sums and steps within a function to 16 bits, where ours round once: two units in the
// last place of numbers around one.
func compareSums(name string, got, want *ckptfmt.Tensor) error {
	unit := map[tfpb.DataType]float64{tfpb.DataType_DT_HALF: 1. / 1024, tfpb.DataType_DT_BFLOAT16: 1. / 128, tfpb.DataType_DT_FLOAT: 1e-6}[want.DType]
	if strings.HasPrefix(name, "Conv2DBackprop") || strings.HasPrefix(name, "Depthwise") {
		unit *= 6 // sums of up to 72 products
	}
	if got.DType != want.DType {
		return fmt.Errorf("type %v, want %v", got.DType, want.DType)
	}
	return compare(got, want, 2*unit, 2*unit)
}

// addingOps are those of the recording "narrow" that add up numbers of 16 bits.
var addingOps = []string{"BatchMatMulV3", "CropAndResizeGradImage", "DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropFilter",
	"DepthwiseConv2dNativeBackpropInput", "Einsum", "EuclideanNorm", "MirrorPadGrad", "ResizeArea", "ResizeNearestNeighborGrad"}

// TestNarrow compares types of 16 bits and short integers where an op does more than
// look at each element: to the last bit, unless it adds.
func TestNarrow(t *testing.T) {
	eachRecorded(t, "narrow", func(name string, got, want *ckptfmt.Tensor) error {
		if op, _, _ := strings.Cut(name, "_"); slices.Contains(addingOps, op) {
			return compareSums(name, got, want)
		}
		return compareHalves(got, want, 1e-6, 0)
	})
}

// TestExact compares to the last bit ops whose arithmetic is in one order, without operations
// that TensorFlow fuses.
func TestExact(t *testing.T) {
	for _, name := range []string{"quantized", "rescaled", "inplace", "counted", "colors"} {
		t.Run(name, func(t *testing.T) {
			eachRecorded(t, name, func(_ string, got, want *ckptfmt.Tensor) error { return compareHalves(got, want, 0, 0) })
		})
	}
}

// widened returns a tensor of 16 bits as float32, another as it is.
func widened(t *ckptfmt.Tensor) *ckptfmt.Tensor {
	if t.DType != tfpb.DataType_DT_HALF && t.DType != tfpb.DataType_DT_BFLOAT16 {
		return t
	}
	wide := &ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: t.Shape}
	for i := 0; i < len(t.Data); i += 2 {
		bits := binary.LittleEndian.Uint16(t.Data[i:])
		v := math.Float32frombits(uint32(bits) << 16)
		if t.DType == tfpb.DataType_DT_HALF {
			v = halfValue(bits)
		}
		wide.Data = binary.LittleEndian.AppendUint32(wide.Data, math.Float32bits(v))
	}
	return wide
}

func halfValue(bits uint16) float32 {
	sign, e, fraction := 1-2*float64(bits>>15), int(bits>>10&31), float64(bits&1023)
	switch e {
	case 0:
		return float32(sign * math.Ldexp(fraction, -24))
	case 31:
		if fraction > 0 {
			return float32(math.NaN())
		}
		return float32(math.Inf(int(sign)))
	}
	return float32(sign * math.Ldexp(1024+fraction, e-25))
}

func testFamilies(t *testing.T, recorded string) {
	eachRecorded(t, recorded, func(name string, got, want *ckptfmt.Tensor) error {
		rtol, atol := familyTolerance(want.DType)
		if strings.HasPrefix(name, "CTCLoss_") || strings.HasPrefix(name, "CTCBeamSearchDecoder_") { // TensorFlow adds probabilities in single precision
			rtol, atol = familyTolerance(tfpb.DataType_DT_FLOAT)
		}
		return compareHalves(got, want, rtol, atol)
	})
}

// eachRecorded runs recorded nodes, and compares their outputs.
func eachRecorded(t *testing.T, recorded string, same func(name string, got, want *ckptfmt.Tensor) error) {
	g, s := loadGraph(t, recorded+".pb")
	inputs := map[string][]string{}
	for _, n := range g.GetNode() {
		inputs[n.GetName()] = n.GetInput()
	}
	want := map[string][]ckptfmt.NamedTensor{}
	for _, nt := range bundle(t, filepath.Join(kernelsDir, recorded)) {
		name, _, _ := strings.Cut(nt.Name, ":")
		want[name] = append(want[name], nt)
	}
	names := make([]string, 0, len(want))
	for name := range want {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			for _, feeds := range []map[string]*ckptfmt.Tensor{nil, valuesOf(t, s, inputs[name])} {
				got, err := runNode(s, want[name], feeds)
				if err != nil {
					t.Fatal(err)
				}
				for i, nt := range want[name] {
					if err := same(name, got[i], nt.Tensor); err != nil {
						t.Errorf("%s: %v", nt.Name, err)
					}
				}
			}
		})
	}
}

// valuesOf fetches the inputs of a node, to feed them to it.
func valuesOf(t *testing.T, s *runtime.Session, names []string) map[string]*ckptfmt.Tensor {
	t.Helper()
	feeds := map[string]*ckptfmt.Tensor{}
	for _, name := range names {
		v, err := s.Run(context.Background(), nil, []string{name}, nil)
		if err != nil {
			t.Fatal(err)
		}
		feeds[name] = v[0]
	}
	return feeds
}

func familyTolerance(dt tfpb.DataType) (rtol, atol float64) {
	if dt == tfpb.DataType_DT_DOUBLE || dt == tfpb.DataType_DT_COMPLEX128 {
		return 1e-11, 1e-12
	}
	return 1e-5, 2e-6
}

// compareHalves compares tensors; those of 16-bit floats bit by bit.
func compareHalves(got, want *ckptfmt.Tensor, rtol, atol float64) error {
	if want.DType == tfpb.DataType_DT_HALF || want.DType == tfpb.DataType_DT_BFLOAT16 {
		a, b := *got, *want
		if a.DType == b.DType {
			a.DType, b.DType = tfpb.DataType_DT_UINT16, tfpb.DataType_DT_UINT16
		}
		return compare(&a, &b, 0, 0)
	}
	return compare(parts(got), parts(want), rtol, atol)
}

// parts returns a complex tensor as one of real numbers, another as it is.
func parts(t *ckptfmt.Tensor) *ckptfmt.Tensor {
	part := map[tfpb.DataType]tfpb.DataType{tfpb.DataType_DT_COMPLEX64: tfpb.DataType_DT_FLOAT, tfpb.DataType_DT_COMPLEX128: tfpb.DataType_DT_DOUBLE}[t.DType]
	if part == tfpb.DataType_DT_INVALID {
		return t
	}
	return &ckptfmt.Tensor{DType: part, Shape: append(slices.Clone(t.Shape), 2), Data: t.Data}
}

// FuzzFamilies runs damaged graphs of the rarer ops, as FuzzGraph does.
func FuzzFamilies(f *testing.F) {
	families, _ := loadGraph(f, "families.pb")
	special, _ := loadGraph(f, "special.pb")
	rare, _ := loadGraph(f, "rare.pb")
	for seed := range uint64(150) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		m := newMutator([]*tfpb.GraphDef{families, special, rare}[seed%3])
		m.rng = rand.New(rand.NewPCG(seed, 1))
		for range 20 {
			def := m.graph()
			s, err := runtime.New(def, &runtime.Options{MaxTensorBytes: 1 << 22})
			if err != nil {
				continue
			}
			_, err = s.Run(t.Context(), nil, []string{"victim"}, nil)
			var op *session.OpError
			if err != nil && (!errors.As(err, &op) || op.Code == tfpb.Code_INTERNAL) {
				t.Fatalf("%v\n%v", err, def.GetNode()[0])
			}
			s.Close()
		}
	})
}
