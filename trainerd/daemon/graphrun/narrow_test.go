package graphrun

import (
	"errors"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
)

const integers = `graph_def {
  node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "shape" value { shape { unknown_rank: true } } } }
  node { name: "same" op: "Identity" input: "x" attr { key: "T" value { type: DT_INT32 } } }
  node { name: "three" op: "Split" input: "axis" input: "x" attr { key: "T" value { type: DT_INT32 } } attr { key: "num_split" value { i: 3 } } }
  node { name: "axis" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 } } } }
  versions { producer: 987 }
}`

// TestNarrowFeeds feeds int64 to a placeholder for int32, from a bundle.
func TestNarrowFeeds(t *testing.T) {
	for name, test := range map[string]struct {
		values []int64
		out    string // or the error
		bad    bool
	}{
		"all fit":      {[]int64{1, -32768, 32767}, "{\"step\":0,\"fetches\":{\"same\":[1,-32768,32767]}}\n", false},
		"one does not": {[]int64{1, 2147483648}, "step_000/x: element 1 is 2147483648, the placeholder x:0 takes int32", true},
	} {
		t.Run(name, func(t *testing.T) {
			value, err := ckptfmt.FromValues([]int64{int64(len(test.values))}, test.values)
			if err != nil {
				t.Fatal(err)
			}
			feeds := writeFeeds(t, map[string]*ckptfmt.Tensor{"step_000/x": value}, "step_000/x")
			out, _, err := runGraph(t, t.Context(), &Options{File: writeGraph(t, integers), Feeds: feeds, Fetch: []string{"same"}, Steps: -1, JSON: true})
			if _, bad := errors.AsType[*FeedError](err); bad != test.bad || bad && !strings.Contains(err.Error(), test.out) || !bad && (err != nil || out != test.out) {
				t.Errorf("got %q, %v, want %q", out, err, test.out)
			}
		})
	}
}

// TestNoSuchOutput names an output that the node has not, before anything runs.
func TestNoSuchOutput(t *testing.T) {
	_, _, err := runGraph(t, t.Context(), &Options{File: writeGraph(t, integers), Fetch: []string{"three:7"}, Steps: 1})
	if _, bad := errors.AsType[*ArgumentError](err); !bad || !strings.Contains(err.Error(), "--fetch three:7: node three (Split) has 3 outputs, the last one three:2") {
		t.Errorf("got %T %v", err, err)
	}
}
