package keras

import (
	"strconv"
	"strings"
	"unicode"
)

// layer is a layer, or a model of layers, as config.json describes it.
type layer struct {
	class    string // in snake case
	name     string
	config   map[string]any
	children map[string]*layer // by the names of their groups
}

// parseLayer reads {"class_name": ..., "config": {...}}; nil where it is something
// else.
func parseLayer(v any) *layer {
	object, _ := v.(map[string]any)
	class, ok := object["class_name"].(string)
	if !ok {
		return nil
	}
	l := &layer{class: snakeCase(class), children: make(map[string]*layer)}
	l.config, _ = object["config"].(map[string]any)
	l.name, _ = l.config["name"].(string)
	list, _ := l.config["layers"].([]any)
	used := make(map[string]int)
	for _, v := range list {
		child := parseLayer(v)
		if child == nil {
			continue
		}
		segment := child.class
		if n := used[child.class]; n > 0 {
			segment += "_" + strconv.Itoa(n)
		}
		used[child.class]++
		l.children[segment] = child
	}
	return l
}

// child returns the layer in a group. Besides the layers of a model these are those
// that a layer is made of, such as the layer of TimeDistributed.
func (l *layer) child(segment string) *layer {
	if c := l.children[segment]; c != nil {
		return c
	}
	return parseLayer(l.config[segment])
}

// snakeCase is how Keras makes names of its classes: "BatchNormalization" is
// "batch_normalization", "Conv2D" is "conv2d", "PReLU" is "p_re_lu".
func snakeCase(class string) string {
	var letters []rune
	for _, c := range class {
		if c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) {
			letters = append(letters, c)
		}
	}
	var out strings.Builder
	for i, c := range letters {
		next := i+1 < len(letters) && unicode.IsLower(letters[i+1])
		if i > 0 && unicode.IsUpper(c) && (next || unicode.IsLower(letters[i-1])) {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToLower(c))
	}
	return out.String()
}

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
	"cell":           recurrent,
	"seed_generator": {{"seed_generator_state", ""}},
	// The parts of MultiHeadAttention and GroupedQueryAttention.
	"query_dense": kernelBias, "key_dense": kernelBias, "value_dense": kernelBias, "output_dense": kernelBias,
}

// variablesOf returns the names of a class's variables if there are count of them:
// those that config has not switched off, or, where there is none, all of them, or
// those that cannot be switched off.
func variablesOf(class string, config map[string]any, count int) []string {
	var some, always []string
	for _, v := range classes[class] {
		if v.flag == "" {
			always = append(always, v.name)
		}
		if on, ok := config[v.flag].(bool); !ok || on {
			some = append(some, v.name)
		}
	}
	switch {
	case len(some) == count:
		return some
	case config == nil && len(always) == count:
		return always
	}
	return nil
}
