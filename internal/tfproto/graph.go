package tfproto

import (
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
)

// Nearly all of a graph is nodes with a few attributes each. The generated encoder
// measures and writes such maps by reflection, and its output must be put in order
// afterwards, which together takes six times as long as the functions of this file.
// They write the same bytes as [appendMessage].

// appendMetaGraph appends the encoding of a MetaGraphDef.
func appendMetaGraph(b []byte, m *tfpb.MetaGraphDef) []byte {
	b = appendGenerated(b, &tfpb.MetaGraphDef{MetaInfoDef: m.GetMetaInfoDef()})
	if g := m.GetGraphDef(); g != nil {
		b = protowire.AppendTag(b, 2, protowire.BytesType)
		b = appendPrefixed(b, func(b []byte) []byte { return appendGraph(b, g) })
	}
	rest := &tfpb.MetaGraphDef{
		SaverDef: m.GetSaverDef(), CollectionDef: m.GetCollectionDef(), SignatureDef: m.GetSignatureDef(),
		AssetFileDef: m.GetAssetFileDef(), ObjectGraphDef: m.GetObjectGraphDef(),
	}
	rest.ProtoReflect().SetUnknown(m.ProtoReflect().GetUnknown())
	return appendGenerated(b, rest)
}

// appendGraph appends the encoding of a GraphDef.
func appendGraph(b []byte, g *tfpb.GraphDef) []byte {
	const usual = 192 // bytes of a node
	b = slices.Grow(b, usual*len(g.GetNode()))
	for _, n := range g.GetNode() {
		b = protowire.AppendTag(b, 1, protowire.BytesType)
		b = appendPrefixed(b, func(b []byte) []byte { return appendNode(b, n) })
	}
	//lint:ignore SA1019 old graphs have a version
	rest := &tfpb.GraphDef{Library: g.GetLibrary(), Version: g.GetVersion(), Versions: g.GetVersions(), DebugInfo: g.GetDebugInfo()}
	rest.ProtoReflect().SetUnknown(g.ProtoReflect().GetUnknown())
	return appendGenerated(b, rest)
}

// appendNode appends the encoding of a NodeDef.
func appendNode(b []byte, n *tfpb.NodeDef) []byte {
	b = appendNonEmpty(b, 1, n.GetName())
	b = appendNonEmpty(b, 2, n.GetOp())
	for _, in := range n.GetInput() {
		b = protowire.AppendString(protowire.AppendTag(b, 3, protowire.BytesType), in)
	}
	b = appendNonEmpty(b, 4, n.GetDevice())
	b = appendAttrs(b, n.GetAttr())
	if n.GetExperimentalDebugInfo() != nil || n.GetExperimentalType() != nil {
		b = appendGenerated(b, &tfpb.NodeDef{ExperimentalDebugInfo: n.GetExperimentalDebugInfo(), ExperimentalType: n.GetExperimentalType()})
	}
	return append(b, n.ProtoReflect().GetUnknown()...)
}

// appendNonEmpty appends a string, unless it is empty.
func appendNonEmpty(b []byte, number protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), s)
}

// appendAttrs appends the attributes of a node, field 5.
func appendAttrs(b []byte, attrs map[string]*tfpb.AttrValue) []byte {
	var few [16]string
	names := few[:0]
	for name := range attrs {
		names = append(names, name)
	}
	slices.SortFunc(names, compareTextKeys)
	for _, name := range names {
		b = protowire.AppendTag(b, 5, protowire.BytesType)
		b = appendPrefixed(b, func(b []byte) []byte {
			b = protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), name)
			b = protowire.AppendTag(b, 2, protowire.BytesType)
			return appendPrefixed(b, func(b []byte) []byte { return appendAttr(b, attrs[name]) })
		})
	}
	return b
}

// appendAttr appends the encoding of an AttrValue.
func appendAttr(b []byte, a *tfpb.AttrValue) []byte {
	switch v := a.GetValue().(type) {
	case *tfpb.AttrValue_Type:
		b = protowire.AppendVarint(protowire.AppendTag(b, 6, protowire.VarintType), uint64(v.Type))
	case *tfpb.AttrValue_S:
		b = protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), v.S)
	case *tfpb.AttrValue_I:
		b = protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.VarintType), uint64(v.I))
	case *tfpb.AttrValue_F:
		b = protowire.AppendFixed32(protowire.AppendTag(b, 4, protowire.Fixed32Type), math.Float32bits(v.F))
	case *tfpb.AttrValue_B:
		b = protowire.AppendVarint(protowire.AppendTag(b, 5, protowire.VarintType), protowire.EncodeBool(v.B))
	case *tfpb.AttrValue_Tensor:
		b = protowire.AppendTag(b, 8, protowire.BytesType)
		b = appendPrefixed(b, func(b []byte) []byte { return appendGenerated(b, v.Tensor) })
	case *tfpb.AttrValue_Shape:
		b = protowire.AppendTag(b, 7, protowire.BytesType)
		b = appendPrefixed(b, func(b []byte) []byte { return appendShape(b, v.Shape) })
	case *tfpb.AttrValue_List:
		b = protowire.AppendTag(b, 1, protowire.BytesType)
		b = appendPrefixed(b, func(b []byte) []byte { return appendAttrList(b, v.List) })
	default:
		return appendGenerated(b, a)
	}
	return append(b, a.ProtoReflect().GetUnknown()...)
}

// appendShape appends the encoding of a TensorShapeProto.
func appendShape(b []byte, s *tfpb.TensorShapeProto) []byte {
	for _, d := range s.GetDim() {
		b = protowire.AppendTag(b, 2, protowire.BytesType)
		b = appendPrefixed(b, func(b []byte) []byte {
			if size := d.GetSize(); size != 0 {
				b = protowire.AppendVarint(protowire.AppendTag(b, 1, protowire.VarintType), uint64(size))
			}
			return append(appendNonEmpty(b, 2, d.GetName()), d.ProtoReflect().GetUnknown()...)
		})
	}
	if s.GetUnknownRank() {
		b = protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.VarintType), 1)
	}
	return append(b, s.ProtoReflect().GetUnknown()...)
}

// appendAttrList appends the encoding of a list: strings, as the names in _class
// are, or shapes, as in _output_shapes, or what is rarer.
func appendAttrList(b []byte, l *tfpb.AttrValue_ListValue) []byte {
	for _, s := range l.GetS() {
		b = protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), s)
	}
	if len(l.GetI())+len(l.GetF())+len(l.GetB())+len(l.GetType()) > 0 {
		b = appendGenerated(b, &tfpb.AttrValue_ListValue{I: l.GetI(), F: l.GetF(), B: l.GetB(), Type: l.GetType()})
	}
	for _, s := range l.GetShape() {
		b = protowire.AppendTag(b, 7, protowire.BytesType)
		b = appendPrefixed(b, func(b []byte) []byte { return appendShape(b, s) })
	}
	if len(l.GetTensor())+len(l.GetFunc()) > 0 {
		b = appendGenerated(b, &tfpb.AttrValue_ListValue{Tensor: l.GetTensor(), Func: l.GetFunc()})
	}
	return append(b, l.ProtoReflect().GetUnknown()...)
}

// appendGenerated appends what the generated encoder makes of a message, in
// TensorFlow's order. Moving whole fields changes no length, so it is done in place.
func appendGenerated(b []byte, m proto.Message) []byte {
	start := len(b)
	opts := proto.MarshalOptions{AllowPartial: true}
	out, err := opts.MarshalAppend(b, m)
	if err != nil {
		// A string that is not UTF-8: TensorFlow's reader is the judge of it.
		return appendMessage(b[:start], m.ProtoReflect())
	}
	if l := layoutOf(m.ProtoReflect().Descriptor()); l != nil {
		sortFields(l, out[start:])
	}
	return out
}
