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
	c := parseLayer(l.config[segment])
	if direction, ok := strings.CutSuffix(segment, "_layer"); ok && l.class == "bidirectional" {
		return l.ofDirection(direction, c)
	}
	return c
}

// ofDirection returns one of the two layers that Bidirectional makes of another one, unless
// it was given its own.
func (l *layer) ofDirection(direction string, own *layer) *layer {
	if own == nil {
		own = parseLayer(l.config["layer"])
	}
	if own != nil {
		own.name = direction + "_" + own.name
	}
	return own
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
