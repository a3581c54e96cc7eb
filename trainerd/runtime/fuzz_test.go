package runtime_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// mutator makes small graphs out of recorded ops, with inputs, attributes and
// op types exchanged.
type mutator struct {
	rng    *rand.Rand
	ops    []*tfpb.NodeDef
	consts []*tfpb.NodeDef
	byName map[string]*tfpb.NodeDef
}

func newMutator(g *tfpb.GraphDef) *mutator {
	m := &mutator{byName: map[string]*tfpb.NodeDef{}}
	for _, n := range g.GetNode() {
		m.byName[n.GetName()] = n
		if n.GetOp() == "Const" {
			m.consts = append(m.consts, n)
		} else {
			m.ops = append(m.ops, n)
		}
	}
	return m
}

func pick[T any](m *mutator, list []T) T { return list[m.rng.IntN(len(list))] }

// graph returns an op under the name "victim", with what it needs.
func (m *mutator) graph() *tfpb.GraphDef {
	n := proto.Clone(pick(m, m.ops)).(*tfpb.NodeDef)
	n.Name = "victim"
	if n.Attr == nil {
		n.Attr = map[string]*tfpb.AttrValue{}
	}
	for range m.rng.IntN(4) {
		m.mutate(n)
	}
	g := &tfpb.GraphDef{Node: []*tfpb.NodeDef{n}}
	var seen []string
	for _, in := range n.GetInput() {
		if !slices.Contains(seen, in) {
			seen = append(seen, in)
			g.Node = append(g.Node, m.byName[in])
		}
	}
	return g
}

func (m *mutator) mutate(n *tfpb.NodeDef) {
	switch m.rng.IntN(6) {
	case 0: // another input
		if len(n.Input) > 0 {
			n.Input[m.rng.IntN(len(n.Input))] = pick(m, m.consts).GetName()
		}
	case 1: // one more, or one less
		if len(n.Input) > 0 && m.rng.IntN(2) == 0 {
			n.Input = n.Input[1:]
		} else {
			n.Input = append(n.Input, pick(m, m.consts).GetName())
		}
	case 2: // another op
		n.Op = pick(m, m.ops).GetOp()
	case 3: // without an attribute, or with another op's
		for key := range n.Attr {
			delete(n.Attr, key)
			break
		}
		maps.Copy(n.Attr, pick(m, m.ops).GetAttr())
	case 4: // other numbers
		for key, v := range n.Attr {
			if v, ok := v.GetValue().(*tfpb.AttrValue_I); ok {
				n.Attr[key] = &tfpb.AttrValue{Value: &tfpb.AttrValue_I{I: pick(m, []int64{-1, 0, v.I + 1, 1 << 20, 1 << 62, -1 << 63})}}
			}
		}
	case 5: // other numbers in lists
		for key, v := range n.Attr {
			if list := v.GetList(); len(list.GetI()) > 0 {
				list = proto.Clone(list).(*tfpb.AttrValue_ListValue)
				list.I[m.rng.IntN(len(list.I))] = pick(m, []int64{-1, 0, 3, 1 << 40, 1 << 62, -1 << 63})
				n.Attr[key] = &tfpb.AttrValue{Value: &tfpb.AttrValue_List{List: list}}
			}
		}
	}
}

// The recorded ops that are damaged.
var fuzzed = []string{"ops", "families", "wider", "special", "rare", "dense", "crops", "parsing", "searched", "ragged", "picked", "strings", "types", "pictures", "unigrams", "narrow", "projected", "quantized", "rescaled", "inplace", "counted"}

// FuzzGraph runs damaged graphs: whatever they hold, the answer is a value or
// an error that a check foresaw.
func FuzzGraph(f *testing.F) {
	var mutators []*mutator
	for _, name := range fuzzed {
		g, _ := loadGraph(f, name+".pb")
		mutators = append(mutators, newMutator(g))
	}
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		m := *mutators[seed%uint64(len(mutators))]
		m.rng = rand.New(rand.NewPCG(seed, 1))
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		for range 20 {
			def := m.graph()
			s, err := runtime.New(def, &runtime.Options{MaxTensorBytes: 1 << 22, Dir: t.TempDir()})
			if err != nil {
				continue
			}
			_, err = s.Run(ctx, nil, []string{"victim"}, nil)
			var op *session.OpError
			if err != nil && (!errors.As(err, &op) || op.Code == tfpb.Code_INTERNAL) {
				t.Fatalf("%v\n%v", err, def.GetNode()[0])
			}
			s.Close()
		}
	})
}

// FuzzGraphDef runs what is left of a program after bytes of it are changed.
func FuzzGraphDef(f *testing.F) {
	p := load(f, "softmax_ref")
	whole, err := proto.Marshal(p.meta.GetGraphDef())
	if err != nil {
		f.Fatal(err)
	}
	for i := range 40 {
		f.Add(uint32(i*997), byte(i), uint32(i*1777), byte(i*31))
	}
	feeds := p.feeds(f)[0]
	f.Fuzz(func(t *testing.T, at uint32, to byte, at2 uint32, to2 byte) {
		data := slices.Clone(whole)
		data[int(at)%len(data)] = to
		data[int(at2)%len(data)] = to2
		g := &tfpb.GraphDef{}
		if proto.Unmarshal(data, g) != nil {
			return
		}
		s, err := runtime.New(g, &runtime.Options{MaxTensorBytes: 1 << 22, Dir: t.TempDir()})
		if err != nil {
			return
		}
		defer s.Close()
		ctx := context.Background()
		for _, target := range []string{"init", "train"} {
			fed := feeds
			if target == "init" {
				fed = nil
			}
			_, err := s.Run(ctx, fed, nil, []string{target})
			var op *session.OpError
			if err != nil && (!errors.As(err, &op) || op.Code == tfpb.Code_INTERNAL) {
				t.Fatal(err)
			}
		}
	})
}
