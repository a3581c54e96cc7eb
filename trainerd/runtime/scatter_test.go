package runtime_test

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// typed gives a node its type and that of its indices.
func typed(n *tfpb.NodeDef, dt tfpb.DataType) *tfpb.NodeDef {
	n.Attr["T"], n.Attr["dtype"] = typeAttr(dt), typeAttr(dt)
	n.Attr["Tindices"] = typeAttr(tfpb.DataType_DT_INT32)
	return n
}

// runOnce feeds tensors and returns what one run fetches.
func runOnce(t *testing.T, nodes []*tfpb.NodeDef, feeds map[string]*ckptfmt.Tensor, fetch string) *ckptfmt.Tensor {
	t.Helper()
	out, err := newSession(t, nodes...).Run(context.Background(), feeds, []string{fetch}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

// TestScatterRoundsEachUpdate adds 1 twice to 2048 in half precision, where
// 2049 rounds to 2048: TensorFlow gives 2048, not the rounded sum 2050.
func TestScatterRoundsEachUpdate(t *testing.T) {
	half := tfpb.DataType_DT_HALF
	nodes := []*tfpb.NodeDef{
		feedable("x", half), feedable("rows", tfpb.DataType_DT_INT32), feedable("ones", half),
		typed(nodeDef("y", "TensorScatterAdd", "x", "rows", "ones"), half),
	}
	y := runOnce(t, nodes, map[string]*ckptfmt.Tensor{
		"x":    {DType: half, Shape: []int64{1}, Data: []byte{0x00, 0x68}},
		"rows": {DType: tfpb.DataType_DT_INT32, Shape: []int64{2, 1}, Data: make([]byte, 8)},
		"ones": {DType: half, Shape: []int64{2}, Data: []byte{0x00, 0x3c, 0x00, 0x3c}},
	}, "y")
	if got := binary.LittleEndian.Uint16(y.Data); got != 0x6800 {
		t.Errorf("the sum is %#x, want 0x6800", got)
	}
}

// TestScatteredTextIsOwned changes the memory of a text that was fed and
// scattered into a variable: it is the caller's again.
func TestScatteredTextIsOwned(t *testing.T) {
	text := tfpb.DataType_DT_STRING
	names := typed(variableDef("names", "VariableV2"), text)
	names.Attr["shape"].GetShape().Dim = []*tfpb.TensorShapeProto_Dim{{Size: 2}}
	word, row := feedable("word", text), feedable("row", tfpb.DataType_DT_INT32)
	s := newSession(t, names, word, row, typed(nodeDef("init", "Assign", "names", "word"), text),
		typed(nodeDef("put", "ScatterUpdate", "names", "row", "word"), text))
	fed := func(words ...string) *ckptfmt.Tensor {
		v := &ckptfmt.Tensor{DType: text, Shape: []int64{int64(len(words))}}
		for _, w := range words {
			v.Strings = append(v.Strings, []byte(w))
		}
		return v
	}
	rows := &ckptfmt.Tensor{DType: tfpb.DataType_DT_INT32, Shape: []int64{1}, Data: []byte{1, 0, 0, 0}}
	put := func(target string, feeds map[string]*ckptfmt.Tensor) {
		if _, err := s.Run(context.Background(), feeds, nil, []string{target}); err != nil {
			t.Fatal(err)
		}
	}
	put("init", map[string]*ckptfmt.Tensor{"word": fed("a", "b")})
	mine := fed("mine")
	put("put", map[string]*ckptfmt.Tensor{"word": mine, "row": rows})
	mine.Strings[0][0] = 'f'
	if got := snapshot(t, s, []string{"names"})[0].Strings; string(got[0]) != "a" || string(got[1]) != "mine" {
		t.Errorf("the variable has %q; want what was fed", got)
	}
}
