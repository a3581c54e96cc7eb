package inspect

import (
	"math"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// TestAppendText has numbers that would lose digits as a float64, or in its usual form.
func TestAppendText(t *testing.T) {
	of := func(d tfpb.DataType, data ...byte) *ckptfmt.Tensor {
		return &ckptfmt.Tensor{DType: d, Shape: []int64{1}, Data: data}
	}
	for want, x := range map[string]*ckptfmt.Tensor{
		"-9223372036854775807": ckptfmt.Scalar[int64](math.MinInt64 + 1),
		"18446744073709551615": ckptfmt.Scalar[uint64](math.MaxUint64),
		"1234567":              ckptfmt.Scalar[int32](1234567),
		"4294967295":           ckptfmt.Scalar[uint32](math.MaxUint32),
		"-128":                 ckptfmt.Scalar[int8](-128),
		"-2":                   of(tfpb.DataType_DT_INT4, 0xfe),
		"-2000000000":          of(tfpb.DataType_DT_QINT32, 0x00, 0x6c, 0xca, 0x88),
		"0.1":                  ckptfmt.Scalar[float32](0.1),
		"0.10000000149011612":  ckptfmt.Scalar(float64(float32(0.1))),
		"1.5":                  of(tfpb.DataType_DT_BFLOAT16, 0xc0, 0x3f),
		"-0.0":                 of(tfpb.DataType_DT_FLOAT8_E5M2, 0x80),
		"0 -0.0":               ckptfmt.Scalar(complex(0, math.Copysign(0, -1))),
		"0.1 -2":               ckptfmt.Scalar(complex(float32(0.1), -2)),
	} {
		numbers, err := NumbersOf(x)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range numbers.Len() {
			got = append(got, string(numbers.AppendText(nil, i)))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v: %s, want %s", x.DType, got, want)
		}
	}
}
