package tfproto

import (
	"context"
	"runtime"
	"sync/atomic"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/internal/parallel"
	tfpb "github.com/trainerd/trainerd/proto"
)

// UnmarshalMetaGraph decodes a MetaGraphDef, with the result and the errors of
// proto.Unmarshal. That one takes most of its time for the nodes, which are decoded
// here by functions of their own (decode_node.go), on all processors.
func UnmarshalMetaGraph(b []byte) (*tfpb.MetaGraphDef, error) { return unmarshalMetaGraph(b, false) }

// UnmarshalSharedMetaGraph is UnmarshalMetaGraph with equal attributes of nodes as one
// message, which must not be changed. A graph has thousands of attributes, and some
// hundred different ones: this takes a third of the memory and of the time.
func UnmarshalSharedMetaGraph(b []byte) (*tfpb.MetaGraphDef, error) {
	return unmarshalMetaGraph(b, true)
}

func unmarshalMetaGraph(b []byte, share bool) (*tfpb.MetaGraphDef, error) {
	m := &tfpb.MetaGraphDef{}
	if decodeMetaGraph(b, m, share) {
		return m, nil
	}
	m = &tfpb.MetaGraphDef{}
	return m, proto.Unmarshal(b, m)
}

// merge decodes the rest of a message into what there is of it.
var merge = proto.UnmarshalOptions{Merge: true}

// decodeMetaGraph reports whether it could decode a message. It leaves what is
// unusual, or wrong, to others.
func decodeMetaGraph(b []byte, m *tfpb.MetaGraphDef, share bool) bool {
	const graphDef = 2
	f, ok := findFields(b, graphDef)
	if !ok || len(f.values) != 1 {
		return false
	}
	g := &tfpb.GraphDef{}
	rest := func() bool { return merge.Unmarshal(b[:f.start], m) == nil && merge.Unmarshal(b[f.end:], m) == nil }
	if !decodeGraph(b[f.values[0].from:f.values[0].to], g, share, rest) {
		return false
	}
	m.GraphDef = g
	return true
}

// decodeGraph is decodeMetaGraph for a GraphDef. It calls also at the same time.
func decodeGraph(b []byte, g *tfpb.GraphDef, share bool, also func() bool) bool {
	const node = 1
	f, ok := findFields(b, node)
	if !ok || merge.Unmarshal(b[:f.start], g) != nil || merge.Unmarshal(b[f.end:], g) != nil {
		return false
	}
	nodes := make([]tfpb.NodeDef, len(f.values))
	g.Node = make([]*tfpb.NodeDef, len(nodes))
	for i := range nodes {
		g.Node[i] = &nodes[i]
	}
	// Enough parts that none of the processors waits long for another.
	parts := min(4*runtime.GOMAXPROCS(0), len(nodes))
	var failed atomic.Bool
	parallel.Each(context.Background(), parts+1, func(i int) {
		ok := false
		if i == 0 {
			ok = also()
		} else {
			from, to := (i-1)*len(nodes)/parts, i*len(nodes)/parts
			ok = decodeNodes(b, f.values[from:to], g.Node[from:to], share)
		}
		if !ok {
			failed.Store(true)
		}
	})
	return !failed.Load()
}

// fields are the occurrences of a field in a message, which follow one another from
// start to end.
type fields struct {
	values     []span
	start, end int
}

// span is a part of a message.
type span struct{ from, to int }

// findFields finds a field of messages. It gives up on one that has other fields in
// between, or is not valid.
func findFields(b []byte, number protowire.Number) (f fields, ok bool) {
	const usual = 192 // bytes of a node
	f.values = make([]span, 0, len(b)/usual+1)
	for at := 0; at < len(b); {
		n, wire, tag := protowire.ConsumeTag(b[at:])
		if tag < 0 {
			return f, false
		}
		size := protowire.ConsumeFieldValue(n, wire, b[at+tag:])
		if size < 0 {
			return f, false
		}
		if n == number {
			if wire != protowire.BytesType || len(f.values) > 0 && f.end != at {
				return f, false
			}
			if len(f.values) == 0 {
				f.start = at
			}
			f.end = at + tag + size
			value, _ := protowire.ConsumeBytes(b[at+tag:])
			f.values = append(f.values, span{f.end - len(value), f.end})
		}
		at += tag + size
	}
	return f, true
}
