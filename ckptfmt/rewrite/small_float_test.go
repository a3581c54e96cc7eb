package rewrite

import (
	"bytes"
	"math"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
)

// TestByteCodes has what ml_dtypes makes of numbers between, and beyond, those of a type.
func TestByteCodes(t *testing.T) {
	in := []float64{math.Copysign(0, -1), -1e-9, math.NaN(), 1.0625, 1.1875, math.Inf(-1), 1e300, 232, 248, 464, 465, -61439, 61440, 5, -7}
	for d, want := range map[tfpb.DataType][]byte{
		tfpb.DataType_DT_FLOAT8_E5M2:     {0x80, 0x80, 0x7e, 0x3c, 0x3d, 0xfc, 0x7c, 0x5b, 0x5c, 0x5f, 0x5f, 0xfb, 0x7c, 0x45, 0xc7},
		tfpb.DataType_DT_FLOAT8_E4M3FN:   {0x80, 0x80, 0x7f, 0x38, 0x3a, 0xff, 0x7f, 0x76, 0x78, 0x7e, 0x7f, 0xff, 0x7f, 0x4a, 0xce},
		tfpb.DataType_DT_FLOAT8_E4M3FNUZ: {0, 0, 0x80, 0x40, 0x42, 0x80, 0x80, 0x7e, 0x80, 0x80, 0x80, 0x80, 0x80, 0x52, 0xd6},
		tfpb.DataType_DT_FLOAT8_E5M2FNUZ: {0, 0, 0x80, 0x40, 0x41, 0x80, 0x80, 0x5f, 0x60, 0x63, 0x63, 0xff, 0x80, 0x49, 0xcb},
		tfpb.DataType_DT_FLOAT4_E2M1FN:   {8, 8, 8, 2, 2, 15, 7, 7, 7, 7, 7, 15, 7, 6, 15},
	} {
		encode, err := byteCodes(d)
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		for _, v := range in {
			got = encode(got, v)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%v: got %#x, want %#x", d, got, want)
		}
	}
}

// TestByteCodesOfAllNumbers encodes what each code is.
func TestByteCodesOfAllNumbers(t *testing.T) {
	for _, d := range []tfpb.DataType{
		tfpb.DataType_DT_FLOAT8_E5M2, tfpb.DataType_DT_FLOAT8_E4M3FN, tfpb.DataType_DT_FLOAT8_E4M3FNUZ,
		tfpb.DataType_DT_FLOAT8_E5M2FNUZ, tfpb.DataType_DT_FLOAT8_E4M3B11FNUZ,
	} {
		encode, err := byteCodes(d)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 256 {
			numbers, err := numbersOf([]byte{byte(i)}, d)
			if err != nil {
				t.Fatal(err)
			}
			v := numbers.At(0)
			if got := encode(nil, v); got[0] != byte(i) && !math.IsNaN(v) {
				t.Errorf("%v: %v is %#x, want %#x", d, v, got, i)
			}
		}
	}
}
