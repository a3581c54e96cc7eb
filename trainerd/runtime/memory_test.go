package runtime_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
)

// ofBytes adds a node of so many bytes that is made in each run.
func (p *pipe) ofBytes(n int32) string {
	size := p.node("Identity", []string{p.ints(n)}, "T", tfpb.DataType_DT_INT32)
	return p.node("Fill", []string{size, p.bytes(1)}, "T", tfpb.DataType_DT_UINT8, "index_type", tfpb.DataType_DT_INT32)
}

func (p *pipe) ints(v ...int32) string {
	return p.node("Const", nil, "dtype", tfpb.DataType_DT_INT32, "value", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_INT32,
		TensorShape: &tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{Size: int64(len(v))}}}, IntVal: v})
}

func (p *pipe) scalar(v int32) string {
	return p.node("Const", nil, "dtype", tfpb.DataType_DT_INT32, "value", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_INT32, TensorShape: &tfpb.TensorShapeProto{}, IntVal: []int32{v}})
}

func (p *pipe) bytes(v int32) string {
	return p.node("Const", nil, "dtype", tfpb.DataType_DT_UINT8, "value", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_UINT8, TensorShape: &tfpb.TensorShapeProto{}, IntVal: []int32{v}})
}

func (p *pipe) variable(name string, dt tfpb.DataType, shape *tfpb.TensorShapeProto) string {
	p.def.Node = append(p.def.Node, &tfpb.NodeDef{Name: name, Op: "VariableV2", Attr: map[string]*tfpb.AttrValue{
		"dtype": typeAttr(dt), "shape": {Value: &tfpb.AttrValue_Shape{Shape: shape}}}})
	return name
}

// doubled adds a node of twice x, along an axis.
func (p *pipe) doubled(x, axis string) string {
	return p.node("ConcatV2", []string{x, x, axis}, "T", tfpb.DataType_DT_UINT8, "Tidx", tfpb.DataType_DT_INT32, "N", 2)
}

// doublings adds a loop of version 1 whose variable doubles without an end.
func (p *pipe) doublings(start string) string {
	const u8, frame = tfpb.DataType_DT_UINT8, "loop"
	enter := p.node("Enter", []string{start}, "T", u8, "frame_name", frame)
	goOn := p.node("LoopCond", []string{p.node("Enter", []string{p.flag(true)}, "T", tfpb.DataType_DT_BOOL, "frame_name", frame, "is_constant", true)})
	merge := p.node("Merge", []string{enter, "again"}, "T", u8, "N", 2)
	turn := p.node("Switch", []string{merge, goOn}, "T", u8)
	axis := p.node("Enter", []string{p.scalar(0)}, "T", tfpb.DataType_DT_INT32, "frame_name", frame, "is_constant", true)
	x := p.doubled(p.node("Identity", []string{turn + ":1"}, "T", u8), axis)
	p.def.Node = append(p.def.Node, &tfpb.NodeDef{Name: "again", Op: "NextIteration", Input: []string{x}, Attr: attrs("T", u8)})
	return p.node("Exit", []string{turn}, "T", u8)
}

// TestMemoryOfAll runs programs that hold ever more, each in a way of its own.
func TestMemoryOfAll(t *testing.T) {
	const u8, mib = tfpb.DataType_DT_UINT8, 1 << 20
	programs := map[string]func(p *pipe) (init, step string){
		"loop": func(p *pipe) (_, step string) {
			return "", p.doublings(p.ofBytes(10))
		},
		"variable": func(p *pipe) (init, step string) {
			v := p.variable("v", u8, &tfpb.TensorShapeProto{UnknownRank: true})
			assign := func(x string) string {
				return p.node("Assign", []string{v, x}, "T", u8, "validate_shape", false)
			}
			return assign(p.ofBytes(10)), assign(p.doubled(v, p.scalar(0)))
		},
		"queue": func(p *pipe) (_, step string) {
			q := p.node("FIFOQueueV2", nil, "component_types", []tfpb.DataType{u8})
			return "", p.node("QueueEnqueueV2", []string{q, p.ofBytes(mib)}, "Tcomponents", []tfpb.DataType{u8})
		},
		"queue of rows": func(p *pipe) (_, step string) {
			q := p.node("FIFOQueueV2", nil, "component_types", []tfpb.DataType{u8})
			return "", p.node("QueueEnqueueManyV2", []string{q, p.ofBytes(mib / 128)}, "Tcomponents", []tfpb.DataType{u8})
		},
		"strings": func(p *pipe) (init, step string) {
			v := p.variable("v", dtString, &tfpb.TensorShapeProto{})
			assign := func(x string) string {
				return p.node("Assign", []string{v, x}, "T", dtString)
			}
			return assign(p.text("0123456789")), assign(p.node("StringJoin", []string{v, v}, "N", 2))
		},
		"shuffle": func(p *pipe) (init, step string) {
			types, shapes := []tfpb.DataType{u8}, [][]int64{{mib}}
			row := p.node("ExpandDims", []string{p.ofBytes(mib), p.scalar(0)}, "T", u8, "Tdim", tfpb.DataType_DT_INT32)
			all := p.node("TensorSliceDataset", []string{row}, "Toutput_types", types, "output_shapes", shapes)
			all = p.node("RepeatDataset", []string{all, p.long(-1)}, "output_types", types, "output_shapes", shapes)
			all = p.node("ShuffleDataset", []string{all, p.long(1 << 40), p.long(1), p.long(2)}, "output_types", types, "output_shapes", shapes)
			it := p.node("Iterator", nil, "output_types", types, "output_shapes", shapes, "shared_name", "i", "container", "")
			return p.node("MakeIterator", []string{all, it}), p.node("IteratorGetNext", []string{it}, "output_types", types, "output_shapes", shapes)
		},
	}
	for name, program := range programs {
		t.Run(name, func(t *testing.T) {
			p := newPipe(t)
			init, step := program(p)
			s, err := runtime.New(p.def, &runtime.Options{MaxMemory: 64 << 20, MemoryOption: "the flag"})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if init != "" {
				if _, err := s.Run(t.Context(), nil, nil, []string{init}); err != nil {
					t.Fatal(err)
				}
			}
			for range 70 {
				if _, err = s.Run(context.Background(), nil, nil, []string{step}); err != nil {
					break
				}
			}
			if !errors.Is(err, exhausted) || !strings.Contains(fmt.Sprint(err), "the flag sets the limit") {
				t.Fatalf("got %v, want RESOURCE_EXHAUSTED by the flag", err)
			}
		})
	}
}

// What was taken out again does not count, however much passes.
func TestMemoryThatPasses(t *testing.T) {
	const u8, size = tfpb.DataType_DT_UINT8, 32 << 20
	p := newPipe(t)
	types := []tfpb.DataType{u8}
	q := p.node("FIFOQueueV2", nil, "component_types", types)
	push := p.node("QueueEnqueueV2", []string{q, p.ofBytes(size)}, "Tcomponents", types)
	pop := p.node("QueueDequeueV2", []string{q}, "component_types", types)
	sess, err := runtime.New(p.def, &runtime.Options{MaxMemory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer sess.Close()
	for i := range 60 {
		for _, step := range []string{push, pop} {
			if _, err := sess.Run(t.Context(), nil, nil, []string{step}); err != nil {
				t.Fatalf("element %d: %v", i, err)
			}
		}
	}
}

// A run that needed too much gives back what it had, so that others may have it.
func TestMemoryIsGivenBack(t *testing.T) {
	p := newPipe(t)
	small := p.ofBytes(40 << 20)
	exit := p.doublings(p.ofBytes(10))
	s, err := runtime.New(p.def, &runtime.Options{MaxMemory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 3 {
		if _, err := s.Run(t.Context(), nil, nil, []string{exit}); !errors.Is(err, exhausted) {
			t.Fatalf("loop %d: %v", i, err)
		}
	}
	if _, err := s.Run(t.Context(), nil, nil, []string{small}); err != nil {
		t.Error(err)
	}
}

// Widened kernels have memory of their own, which is counted once, however often the
// garbage is collected.
func TestMemoryOfWidened(t *testing.T) {
	p := newPipe(t)
	const half = tfpb.DataType_DT_HALF
	x := p.node("Placeholder", nil, "dtype", half)
	y := p.node("Softplus", []string{x}, "T", half)
	s, err := runtime.New(p.def, &runtime.Options{MaxMemory: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fed := &ckptfmt.Tensor{DType: half, Shape: []int64{1 << 19}, Data: make([]byte, 1<<20)}
	for i := range 20 {
		goruntime.GC()
		goruntime.GC()
		if _, err := s.Run(t.Context(), map[string]*ckptfmt.Tensor{x: fed}, []string{y}, nil); err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
	}
}

// The items of a list that are equal to the one before, such as the weights that the gradient of
// a loop keeps for each iteration, are in memory once.
func TestMemoryOfEqualItems(t *testing.T) {
	p := newPipe(t)
	const f32 = tfpb.DataType_DT_FLOAT
	x := p.node("Placeholder", nil, "dtype", f32)
	list := p.node("EmptyTensorList", []string{p.scalar(-1), p.scalar(-1)}, "element_dtype", f32, "shape_type", tfpb.DataType_DT_INT32)
	for range 100 {
		list = p.node("TensorListPushBack", []string{list, x}, "element_dtype", f32)
	}
	length := p.node("TensorListLength", []string{list})
	s, err := runtime.New(p.def, &runtime.Options{MaxMemory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fed := &ckptfmt.Tensor{DType: f32, Shape: []int64{1 << 20}, Data: make([]byte, 4<<20)}
	if _, err := s.Run(t.Context(), map[string]*ckptfmt.Tensor{x: fed}, []string{length}, nil); err != nil {
		t.Error(err)
	}
}
