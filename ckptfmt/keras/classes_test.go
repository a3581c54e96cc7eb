package keras

import (
	"slices"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
)

func TestVariablesOfClasses(t *testing.T) {
	const f32, i8, u8 = tfpb.DataType_DT_FLOAT, tfpb.DataType_DT_INT8, tfpb.DataType_DT_UINT8
	mode := func(mode string) map[string]any {
		return map[string]any{"use_bias": true, "dtype": map[string]any{"config": map[string]any{"mode": mode}}}
	}
	for _, tc := range []struct {
		class  string
		config map[string]any
		types  []tfpb.DataType
		want   []string
	}{
		{"dense", nil, []tfpb.DataType{f32, f32}, []string{"kernel", "bias"}},
		{"dense", nil, []tfpb.DataType{f32}, []string{"kernel"}},
		{"dense", map[string]any{"use_bias": true}, []tfpb.DataType{f32}, nil},
		{"dense", nil, []tfpb.DataType{i8, f32}, []string{"kernel", "kernel_scale"}},
		{"dense", nil, []tfpb.DataType{i8, f32, f32}, []string{"kernel", "bias", "kernel_scale"}},
		{"dense", mode("int4/128"), []tfpb.DataType{i8, f32, f32, i8, f32}, []string{"kernel", "bias", "kernel_scale", "kernel_zero", "g_idx"}},
		{"dense", nil, []tfpb.DataType{i8, f32, f32, i8, f32}, []string{"kernel", "bias", "kernel_scale", "kernel_zero", "g_idx"}},
		{"dense", nil, []tfpb.DataType{i8, f32, i8, f32}, []string{"kernel", "kernel_scale", "kernel_zero", "g_idx"}},
		{"dense", nil, []tfpb.DataType{f32, u8, f32, u8, f32}, []string{"bias", "quantized_kernel", "kernel_scale", "kernel_zero", "g_idx"}},
		{"_query_dense", nil, []tfpb.DataType{f32, f32}, []string{"kernel", "bias"}},
		{"batch_normalization", nil, []tfpb.DataType{f32, f32, f32}, nil}, // either of two may be off
		{"batch_normalization", nil, []tfpb.DataType{f32, f32}, []string{"moving_mean", "moving_variance"}},
		{"batch_normalization", map[string]any{"scale": false, "center": true}, []tfpb.DataType{f32, f32, f32}, []string{"beta", "moving_mean", "moving_variance"}},
		{"mine", nil, []tfpb.DataType{f32}, nil},
		{"dense", nil, nil, nil},
		{"dense", map[string]any{"units": 1}, []tfpb.DataType{f32}, nil},                // which says nothing of a bias that is off
		{"dense", map[string]any{"use_bias": true}, []tfpb.DataType{i8, f32, f32}, nil}, // nor of quantisation
		{"dense", mode("gptq"), []tfpb.DataType{f32, i8, f32, f32, f32}, []string{"bias", "quantized_kernel", "kernel_scale", "kernel_zero", "g_idx"}},
		{"dense", mode("gptq"), []tfpb.DataType{i8, f32, f32, f32, f32}, []string{"bias", "quantized_kernel", "kernel_scale", "kernel_zero", "g_idx"}},
	} {
		if got := variablesOf(tc.class, tc.config, tc.types); !slices.Equal(got, tc.want) {
			t.Errorf("%s of %v, %v: %q, want %q", tc.class, tc.config, tc.types, got, tc.want)
		}
	}
	for _, tc := range []struct {
		class      string
		have, want []string
	}{
		{"batch_normalization", []string{"moving_variance", "gamma", "moving_mean"}, []string{"gamma", "moving_mean", "moving_variance"}},
		{"dense", []string{"bias", "other"}, nil},
		{"dense", []string{"other"}, nil},
		{"embedding", []string{"embeddings"}, []string{"embeddings"}},
	} {
		if got := sortedByClass(tc.class, tc.have); !slices.Equal(got, tc.want) {
			t.Errorf("%q of %s sorted: %q, want %q", tc.have, tc.class, got, tc.want)
		}
	}
}
