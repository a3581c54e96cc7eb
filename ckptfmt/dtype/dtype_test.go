package dtype

import (
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
)

func TestDTypeNames(t *testing.T) {
	for d, want := range map[tfpb.DataType]string{
		tfpb.DataType_DT_FLOAT: "float32", tfpb.DataType_DT_DOUBLE: "float64", tfpb.DataType_DT_HALF: "float16",
		tfpb.DataType_DT_BFLOAT16: "bfloat16", tfpb.DataType_DT_STRING: "string", tfpb.DataType_DT_FLOAT8_E4M3FN: "float8_e4m3fn",
		tfpb.DataType_DT_FLOAT_REF: "float32_ref", tfpb.DataType_DT_BOOL: "bool", tfpb.DataType_DT_QUINT8: "quint8",
	} {
		if got := Name(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
		if got, ok := Parse(want); !ok || got != d {
			t.Errorf("Parse(%q) = %v, %v", want, got, ok)
		}
	}
	if got := Name(99); got != "DataType(99)" { // of a newer TensorFlow, or damage
		t.Errorf("99 is %q", got)
	}
	if d, ok := Parse("nonsense"); ok {
		t.Errorf("nonsense is %v", d)
	}
}
