package keras

import (
	"slices"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
)

// A variable of a class, and the key of the configuration that switches it off.
type variable struct{ name, flag string }

var (
	kernelBias = []variable{{"kernel", ""}, {"bias", "use_bias"}}
	gammaBeta  = []variable{{"gamma", "scale"}, {"beta", "center"}}
	separable  = []variable{{"depthwise_kernel", ""}, {"pointwise_kernel", ""}, {"bias", "use_bias"}}
	recurrent  = []variable{{"kernel", ""}, {"recurrent_kernel", ""}, {"bias", "use_bias"}}
)

// classes are the variables of the layers of Keras, in the order in which it saves
// them.
var classes = map[string][]variable{
	"dense": kernelBias, "einsum_dense": kernelBias,
	"conv1d": kernelBias, "conv2d": kernelBias, "conv3d": kernelBias,
	"conv1d_transpose": kernelBias, "conv2d_transpose": kernelBias, "conv3d_transpose": kernelBias,
	"depthwise_conv1d": kernelBias, "depthwise_conv2d": kernelBias,
	"separable_conv1d": separable, "separable_conv2d": separable,
	"batch_normalization": {{"gamma", "scale"}, {"beta", "center"}, {"moving_mean", ""}, {"moving_variance", ""}},
	"layer_normalization": gammaBeta, "group_normalization": gammaBeta,
	"rms_normalization": {{"scale", ""}},
	"normalization":     {{"mean", ""}, {"variance", ""}, {"count", ""}},
	"embedding":         {{"embeddings", ""}},
	"p_re_lu":           {{"alpha", ""}},
	"lstm_cell":         recurrent, "gru_cell": recurrent, "simple_rnn_cell": recurrent, "conv_lstm_cell": recurrent,
	"cell":                   recurrent,
	"seed_generator":         {{"seed_generator_state", ""}},
	"spectral_normalization": {{"kernel", ""}, {"vector_u", ""}},
	"attention":              {{"scale", "use_scale"}},
	"additive_attention":     {{"scale", "use_scale"}},
	// The parts of MultiHeadAttention and GroupedQueryAttention.
	"query_dense": kernelBias, "key_dense": kernelBias, "value_dense": kernelBias, "output_dense": kernelBias, "gate_dense": kernelBias,
}

// spec are the variables of a class in one mode of quantisation, "" for none.
type spec struct {
	mode string
	list []variable
}

// quantised are the variables of layers that Keras has quantised. With groups int4 has
// two more.
var quantised = map[string][]spec{
	"dense": quantisedKernel, "einsum_dense": quantisedKernel,
	"embedding": {
		{"int8", []variable{{"embeddings", ""}, {"embeddings_scale", ""}}},
		{"int4", []variable{{"embeddings", ""}, {"embeddings_scale", ""}}},
		{"int4", []variable{{"embeddings", ""}, {"embeddings_scale", ""}, {"embeddings_zero", ""}, {"g_idx", ""}}},
	},
}

var quantisedKernel = []spec{
	{"int8", withKernelBias("kernel_scale")},
	{"int4", withKernelBias("kernel_scale")},
	{"int4", withKernelBias("kernel_scale", "kernel_zero", "g_idx")},
	{"float8", withKernelBias("inputs_scale", "inputs_amax_history", "kernel_scale", "kernel_amax_history", "outputs_grad_scale", "outputs_grad_amax_history")},
	{"gptq", packedKernel},
	{"awq", packedKernel},
}

var packedKernel = []variable{{"bias", "use_bias"}, {"quantized_kernel", ""}, {"kernel_scale", ""}, {"kernel_zero", ""}, {"g_idx", ""}}

func withKernelBias(more ...string) []variable {
	list := slices.Clone(kernelBias)
	for _, name := range more {
		list = append(list, variable{name, ""})
	}
	return list
}

// variablesOf returns the names of a class's variables that a file has, given their types: those
// that config has not switched off. It returns nil for an unknown class, and if several lists are
// possible.
func variablesOf(class string, config map[string]any, types []tfpb.DataType) []string {
	var found []string
	for _, s := range specs(class) {
		if told, known := modeOf(config); known && told != s.mode || !fits(s.mode, types) || !known && !mayBe(s.mode, types[0]) {
			continue
		}
		for _, c := range choices(s.list, config, len(types)) {
			if found != nil && !slices.Equal(found, c) {
				return nil
			}
			found = c
		}
	}
	return found
}

// specs are the lists of variables that a class may have.
func specs(class string) []spec {
	class = strings.TrimPrefix(class, "_") // of an attribute that is private
	list, ok := classes[class]
	if !ok {
		return nil
	}
	return append([]spec{{"", list}}, quantised[class]...)
}

// modeOf returns how a layer was quantised, "" for not at all, and whether its
// configuration says so.
func modeOf(config map[string]any) (mode string, known bool) {
	if config == nil {
		return "", false
	}
	policy, _ := config["dtype"].(map[string]any)
	inner, _ := policy["config"].(map[string]any)
	if mode, ok := inner["mode"].(string); ok {
		mode, _, _ = strings.Cut(mode, "/") // of int4/128 and such the rest is a size
		return mode, true
	}
	return "", true
}

// fits reports whether the first of a layer's variables is of a type that the mode of
// quantisation allows.
func fits(mode string, types []tfpb.DataType) bool {
	if len(types) == 0 {
		return false
	}
	first := types[0]
	whole := first == tfpb.DataType_DT_INT8 || first == tfpb.DataType_DT_UINT8 || first == tfpb.DataType_DT_INT4
	switch mode {
	case "int8", "int4":
		return whole
	case "", "float8":
		return !whole
	}
	return true
}

// mayBe reports whether a variable may be the first one in a mode that the configuration does not
// show. The packed kernels of gptq and awq are unsigned, those of int4 signed.
func mayBe(mode string, first tfpb.DataType) bool {
	return mode != "gptq" && mode != "awq" || first != tfpb.DataType_DT_INT8
}

// choices returns the lists of n names that remain of a class's when some are switched off: as
// config says, or in every possible way if it does not say.
func choices(list []variable, config map[string]any, n int) [][]string {
	if n < 0 || n > len(list) {
		return nil
	}
	if len(list) == 0 {
		return [][]string{nil}
	}
	v, rest := list[0], list[1:]
	on, told := config[v.flag].(bool)
	var out [][]string
	if on || !told {
		for _, c := range choices(rest, config, n-1) {
			out = append(out, append([]string{v.name}, c...))
		}
	}
	if v.flag != "" && (!told && config == nil || told && !on) {
		out = append(out, choices(rest, config, n)...)
	}
	return out
}
