package graphrun

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

func tensor[T ckptfmt.Element](t *testing.T, shape []int64, v ...T) *ckptfmt.Tensor {
	t.Helper()
	out, err := ckptfmt.FromValues(shape, v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPrintValue(t *testing.T) {
	inf := math.Inf(1)
	for _, test := range []struct {
		name       string
		value      *ckptfmt.Tensor
		json, text string
	}{
		{"scalar", tensor(t, nil, float32(0.1)), `0.1`, `0.1`},
		{"double", tensor(t, nil, float64(float32(0.1))), `0.10000000149011612`, `0.10000000149011612`},
		{"no numbers", tensor(t, []int64{3}, math.NaN(), inf, -inf), `["NaN","Infinity","-Infinity"]`, `float64 [3] ["NaN","Infinity","-Infinity"]`},
		{"large", tensor(t, []int64{2}, float32(1e30), float32(-1e-30)), `[1e+30,-1e-30]`, `float32 [2] [1e+30,-1e-30]`},
		{"int64", tensor(t, []int64{2}, int64(math.MinInt64), math.MaxInt64), `[-9223372036854775808,9223372036854775807]`, `int64 [2] [-9223372036854775808,9223372036854775807]`},
		{"uint64", tensor(t, nil, uint64(math.MaxUint64)), `18446744073709551615`, `18446744073709551615`},
		{"int32", tensor(t, nil, int32(1234567)), `1234567`, `1234567`},
		{"int8", tensor(t, []int64{1}, int8(-128)), `[-128]`, `int8 [1] [-128]`},
		{"bools", tensor(t, []int64{2}, true, false), `[true,false]`, `bool [2] [true,false]`},
		{"half", &ckptfmt.Tensor{DType: tfpb.DataType_DT_HALF, Data: []byte{0, 0x3e}}, `1.5`, `1.5`},
		{"complex", tensor(t, []int64{1}, complex(float32(1), float32(inf))), `[[1,"Infinity"]]`, `complex64 [1] [[1,"Infinity"]]`},
		{"nested", tensor(t, []int64{2, 1, 2}, int32(1), 2, 3, 4), `[[[1,2]],[[3,4]]]`, `int32 [2,1,2] [[[1,2]],[[3,4]]]`},
		{"empty", tensor[int32](t, []int64{2, 0}), `[[],[]]`, `int32 [2,0] [[],[]]`},
		{"long", tensor(t, []int64{3, 3}, int32(1), 2, 3, 4, 5, 6, 7, 8, 9), `[[1,2,3],[4,5,6],[7,8,9]]`, `int32 [3,3] 1 2 3 4 5 6 7 8 ...`},
		{"strings", tensor(t, []int64{3}, "a\"b", "ü", "\xff\x00"), `["a\"b","ü",{"b64":"/wA="}]`, `string [3] ["a\"b","ü",{"b64":"/wA="}]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := appendJSON([]byte("> "), test.value)
			if err != nil || string(got) != "> "+test.json || !json.Valid(got[2:]) {
				t.Errorf("JSON is %s, %v; want %s", got, err, test.json)
			}
			text, err := DescribeValue(test.value)
			if err != nil || text != test.text {
				t.Errorf("text is %s, %v; want %s", text, err, test.text)
			}
		})
	}
	for name, bad := range map[string]*ckptfmt.Tensor{
		"short":    {DType: tfpb.DataType_DT_FLOAT, Shape: []int64{2}, Data: make([]byte, 4)},
		"resource": {DType: tfpb.DataType_DT_RESOURCE},
	} {
		if got, err := appendJSON(nil, bad); err == nil {
			t.Errorf("%s: JSON is %s, want an error", name, got)
		}
		if got, err := DescribeValue(bad); err == nil {
			t.Errorf("%s: text is %s, want an error", name, got)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"x", "y", "accuracy", "gradients/Mean_grad/Shape", "gradients/Sum_grad/Shape", "layer/accuracy", "train", "w/read", "b/read"}
	for unknown, want := range map[string][]string{
		"accurcy":                  {"accuracy", "layer/accuracy"},
		"Train":                    {"train"},
		"gradients/Mean_grad/Shap": {"gradients/Mean_grad/Shape"},
		"lyer/accuracy":            {"layer/accuracy", "accuracy"},
		"nothing_like_it":          nil,
	} {
		if got := nearest(unknown, names); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", unknown, got, want)
		}
	}
}
