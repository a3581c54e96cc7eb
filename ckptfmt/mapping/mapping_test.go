package mapping

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/dtype"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// counted is a tensor whose elements are their own places, in 2 bytes each.
func counted(shape ...int64) *ckptfmt.Tensor {
	n, _ := dtype.NumElements(shape)
	t := &ckptfmt.Tensor{DType: tfpb.DataType_DT_INT16, Shape: shape}
	for i := range n {
		t.Data = binary.LittleEndian.AppendUint16(t.Data, uint16(i))
	}
	return t
}

func elements(t *ckptfmt.Tensor) (list []int) {
	for i := 0; i < len(t.Data); i += 2 {
		list = append(list, int(binary.LittleEndian.Uint16(t.Data[i:])))
	}
	return list
}

// run applies a map to tensors that are counted, and describes the results.
func run(t *testing.T, text string, shapes map[string][]int64) string {
	t.Helper()
	m, err := Parse("test.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var list []Tensor
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range shapes {
			if !yield(name) {
				return
			}
		}
	}) {
		list = append(list, Tensor{Name: name, DType: tfpb.DataType_DT_INT16, Shape: shapes[name]})
	}
	r, err := m.Plan(list)
	if err != nil {
		return err.Error()
	}
	if err := r.Err(m); err != nil {
		return err.Error()
	}
	var out []string
	for _, o := range r.Outputs {
		var in []*ckptfmt.Tensor
		for _, name := range o.Inputs {
			in = append(in, counted(shapes[name]...))
		}
		made := in[0]
		if !o.Plain {
			made = o.Make(in)
		}
		if err := made.Validate(); err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s%v%v", o.Name, made.Shape, elements(made)))
	}
	for _, name := range r.Dropped {
		out = append(out, "-"+name)
	}
	return strings.Join(out, "; ")
}

func TestRules(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		shapes map[string][]int64
		want   string
	}{
		"rename":    {`separator = ["/", "."]` + "\n[[rule]]\nfrom = '(.*)/kernel'\nto = '$1/weight'", map[string][]int64{"a/b/kernel": {2}}, "a.b.weight[2][0 1]"},
		"transpose": {"[[rule]]\nfrom='x'\nto='y'\nperm=[1,0]", map[string][]int64{"x": {2, 3}}, "y[3 2][0 3 1 4 2 5]"},
		"json":      {`{"rest":"keep","rule":[{"from":"x","to":["y"],"perm":[1,0],"shape":["d0*d1"]}]}`, map[string][]int64{"x": {2, 2}, "z": {1}}, "y[4][0 2 1 3]; z[1][0]"},
		"rank":      {"[[rule]]\nfrom='.*'\nto='y'\nperm=[1,0]\n[[rule]]\nfrom='.*'\nto='z'", map[string][]int64{"x": {2}}, "z[2][0 1]"},
		"drop":      {"[[rule]]\nfrom='a.*'\ndrop=true\n[[rule]]\nfrom='(.*)'\nto='$1'", map[string][]int64{"ab": {1}, "b": {1}}, "b[1][0]; -ab"},
		"reorder":   {"[[rule]]\nfrom='x'\nto='x'\nreorder={axis=1,order=[1,0,2]}", map[string][]int64{"x": {2, 6}}, "x[2 6][2 3 0 1 4 5 8 9 6 7 10 11]"},
		"split":     {"[[rule]]\nfrom='(.*)x'\nto=['$1q','$1k']\nsplit=1", map[string][]int64{"x": {2, 4}}, "q[2 2][0 1 4 5]; k[2 2][2 3 6 7]"},
		"sizes":     {"[[rule]]\nfrom='x'\nto=['a','b']\nsplit=0\nsizes=[1,-1]", map[string][]int64{"x": {3, 1}}, "a[1 1][0]; b[2 1][1 2]"},
		"squeeze":   {"[[rule]]\nfrom='x'\nto=['a','b']\nsplit=0\nsqueeze=true", map[string][]int64{"x": {2, 2}}, "a[2][0 1]; b[2][2 3]"},
		"join":      {"[[rule]]\nfrom=['(.*)/q','$1/k']\nto='$1/qk'\njoin=1", map[string][]int64{"m/q": {2, 1}, "m/k": {2, 2}}, "m/qk[2 3][0 0 1 1 2 3]"},
		"zeros":     {"[[rule]]\nfrom='b'\nto='ih'\nzeros='hh'", map[string][]int64{"b": {2}}, "ih[2][0 1]; hh[2][0 0]"},
		"if":        {"[[rule]]\nfrom='(.*)b'\nto='beta'\nif={name='$1w',rank=1}\n[[rule]]\nfrom='(.)'\nto='$1'", map[string][]int64{"b": {1}, "w": {1}}, "beta[1][0]; w[1][0]"},
		"ratio":     {"[[rule]]\nfrom='x'\nto='lstm'\nif={ratio=4}\n[[rule]]\nfrom='x'\nto='gru'\nif={ratio=3}", map[string][]int64{"x": {3, 1}}, "gru[3 1][0 1 2]"},
		"shape":     {"[[rule]]\nfrom='x'\nto='y'\nif={shape=[-1,1]}\n[[rule]]\nfrom='(.)'\nto='$1'\nif={name='x',shape=[2,-1]}", map[string][]int64{"x": {2, 1}, "z": {1, 2}}, "y[2 1][0 1]; z[1 2][0 1]"},
		"no such":   {"[[rule]]\nfrom='x'\nto='y'\nif={shape=[-1,1]}\n[[rule]]\nfrom='x'\nto='w'\nif={shape=[2]}", map[string][]int64{"x": {2, 2}}, "map test.toml: no rule matches x"},
		"left":      {"[[rule]]\nfrom='x'\nto='y'", map[string][]int64{"x": {1}, "z": {1}}, "map test.toml: no rule matches z"},
		"twice":     {"[[rule]]\nfrom='.*'\nto='y'", map[string][]int64{"x": {1}, "z": {1}}, `map test.toml: "x" and "z" would both be "y"`},
		"no part":   {"[[rule]]\nfrom=['(.*)q','$1k']\nto='y'\njoin=0", map[string][]int64{"q": {1}}, `map test.toml: rule 1: "q": it is joined with "k", which does not exist`},
		"uneven":    {"[[rule]]\nfrom='x'\nto=['a','b']\nsplit=0", map[string][]int64{"x": {3}}, `map test.toml: rule 1: "x": split: 3 rows do not make 2 parts of one size`},
		"no shape":  {"[[rule]]\nfrom='x'\nto='a'\nshape=[2,-1]", map[string][]int64{"x": {3}}, `map test.toml: rule 1: "x": shape [3] has 3 elements; [2 1] has another number`},
		"overflow":  {"[[rule]]\nfrom='x'\nto='a'\nshape=['d0*d0*9223372036854775807'   , 3]", map[string][]int64{"x": {3}}, `shape: "d0*d0*9223372036854775807" is no product`},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "overflow" {
				if _, err := Parse("x", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v", err)
				}
				return
			}
			if got := run(t, c.text, c.shapes); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// What is wrong with a document is said, with the rule.
func TestDocuments(t *testing.T) {
	for text, want := range map[string]string{
		"":                                         "no [[rule]]",
		"[[rule]]\nto='x'":                         "rule 1: from is missing",
		"[[rule]]\nfrom='x'":                       "rule 1: to is missing",
		"[[rule]]\nfrom='('\nto='y'":               "rule 1: from: error parsing regexp",
		"[[rule]]\nfrom='x'\nto='y'\nperm=[0,2]":   "perm [0 2]",
		"[[rule]]\nfrom='x'\nto=['y','z']":         "split = 0",
		"[[rule]]\nfrom=['x','y']\nto='z'":         "join = 0",
		"[[rule]]\nfrom='x'\nto='y'\nform=1":       `unknown key "rule.form"`,
		"rest='some'\n[[rule]]\nfrom='x'\nto='y'":  `rest is "some"`,
		"[[rule]]\nfrom='x'\nto='y'\ndtype='int8'": `dtype is "int8"`,
		"[[rule]":                           "line 1",
		`{"rule":[{"from":"x","too":"y"}]}`: `line 1: unknown field "too"`,
		"{\"rule\":\n[{\"from\":\"x\",\n\"too\":1}]}":  `line 3: unknown field "too"`,
		"{\n\"rule\":\n[{]}":                           "line 3: invalid character",
		"{\n\"rule\":\n5}":                             "line 3: cannot unmarshal number",
		"{\n\"rule\":":                                 "line 2: unexpected EOF",
		`{"rule":[{"from":"x","to":"y"}]} {}`:          "more after",
		"[[rule]]\nfrom='x'\nto='y'\nsteps=[{}]":       "a step has one of",
		"[[rule]]\nfrom='x'\ndrop=true\nto='y'":        "drop is all",
		"[[rule]]\nfrom='x'\nto=['y']\nsizes=[1]":      "about split",
		"names='other'\n[[rule]]\nfrom='x'\nto='y'":    `names is "other"`,
		"separator=['.']\n[[rule]]\nfrom='x'\nto='y'":  "separator",
		"[[rule]]\nfrom=['x','y']\nto='z'\njoin='sum'": `must be an axis or "add"`,
		"[[rule]]\nfrom='(x)'\nto='$2'":                "$2: from has no such group",
		"[[rule]]\nfrom='x'\nto='z'\nshape=['2+d0']":   "no product",
	} {
		_, err := Parse("m", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q in it", text, err, want)
		}
	}
}

// A permutation and its inverse are nothing, and each is what its definition says.
func TestPermutations(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		rank := 1 + rng.IntN(4)
		shape := make([]int64, rank)
		for i := range shape {
			shape[i] = int64(rng.IntN(5))
		}
		perm := rng.Perm(rank)
		inverse := make([]int, rank)
		for i, p := range perm {
			inverse[p] = i
		}
		x := counted(shape...)
		y := permute(x.Data, shape, perm, 2)
		moved, _ := Step{Perm: perm}.shape(shape)
		if back := permute(y, moved, inverse, 2); !slices.Equal(back, x.Data) {
			t.Fatalf("shape %v by %v and back: %v", shape, perm, back)
		}
		at := make([]int64, rank) // place in y
		for i := 0; i < len(y); i += 2 {
			from := int64(0)
			for d := range shape {
				from = from*shape[d] + at[inverse[d]]
			}
			if got := int64(binary.LittleEndian.Uint16(y[i:])); got != from {
				t.Fatalf("shape %v by %v: element %v is %d, want %d", shape, perm, at, got, from)
			}
			for d := rank - 1; d >= 0; d-- {
				if at[d]++; at[d] < moved[d] {
					break
				}
				at[d] = 0
			}
		}
	}
}

// Every ready map is one, and what one does to a Keras model the other undoes.
func TestReadyMaps(t *testing.T) {
	list, err := ReadyNames()
	if err != nil || len(list) < 2 {
		t.Fatal(list, err)
	}
	for _, m := range list {
		if _, err := Open(m[0]); err != nil || m[1] == "" {
			t.Errorf("%s: %v, about %q", m[0], err, m[1])
		}
	}
	keras := map[string][]int64{
		"d/kernel": {3, 4}, "d/bias": {4}, "bn/gamma": {4}, "bn/beta": {4}, "bn/moving_mean": {4}, "bn/moving_variance": {4}, "c/kernel": {3, 2, 5, 6},
		"c1/kernel": {3, 5, 6}, "c3/kernel": {2, 3, 2, 5, 6}, "emb/embeddings": {9, 4}, "l/lstm_cell/kernel": {5, 8}, "l/lstm_cell/recurrent_kernel": {2, 8},
		"g/gru_cell/kernel": {5, 6}, "g/gru_cell/recurrent_kernel": {2, 6}, "g/gru_cell/bias": {2, 6}, "depthwise_1/kernel": {3, 3, 4, 1},
		"depthwise_2/kernel": {3, 4, 1}, "s1/depthwise_kernel": {3, 4, 1}, "s1/pointwise_kernel": {1, 4, 6}, "s1/bias": {6},
		"s2/depthwise_kernel": {3, 3, 4, 1}, "s2/pointwise_kernel": {1, 1, 4, 6}, "s2/bias": {6}, "p_re_lu_1/alpha": {4}, "rms_norm/scale": {4},
	}
	values := make(map[string]*ckptfmt.Tensor)
	for name, shape := range keras {
		values[name] = counted(shape...)
	}
	back := apply(t, "torch-to-keras", apply(t, "keras-to-torch", values))
	if diff := cmp.Diff(keras, shapesOf(back)); diff != "" {
		t.Error(diff)
	}
	for name, x := range values {
		if got := back[name]; got == nil || !slices.Equal(got.Data, x.Data) {
			t.Errorf("%s came back as %v", name, got)
		}
	}
}

// A depthwise convolution is known by its path in a file of Keras, else by the name of its layer.
func TestDepthwise(t *testing.T) {
	m, err := Open("keras-to-torch")
	if err != nil {
		t.Fatal(err)
	}
	depthwise, plain := []int64{8, 1, 3, 5}, []int64{2, 4, 3, 5}
	for _, c := range []struct {
		layer, path string
		want        []int64
	}{
		{"a", "layers/depthwise_conv2d/vars/0", depthwise},
		{"a", "depthwise_conv2d_1/vars/0", depthwise},
		{"dw", "layers/conv2d/vars/0", plain},
		{"expanded_conv_depthwise", "", depthwise},
		{"net/conv_dw_12", "", depthwise},
		{"dw1", "", depthwise},
		{"block1a_dwconv", "", depthwise},
		{"a", "", plain},
		{"adwx", "", plain},
	} {
		r, err := m.Plan([]Tensor{{Name: c.layer + "/kernel", Path: c.path, DType: tfpb.DataType_DT_FLOAT, Shape: []int64{3, 5, 4, 2}}})
		if err != nil || len(r.Outputs) != 1 || !slices.Equal(r.Outputs[0].Shape, c.want) {
			t.Errorf("%s at %q: got %+v, %v, want %v", c.layer, c.path, r, err, c.want)
		}
	}
}

// What people save next to a model is left out: an optimizer of torch and states of random numbers.
func TestTorchToKerasLeavesOut(t *testing.T) {
	values := map[string]*ckptfmt.Tensor{"state.0.weight": counted(2, 3), "model.optics.weight": counted(2, 3), "model.optics.state.bias": counted(2), "model.opt.0.weight": counted(3)}
	for _, name := range []string{
		"optimizer.state.0.step", "optimizer_state_dict.state.12.exp_avg", "optimizer_states.0.state.3.exp_avg_sq", "optim.state.layer.weight.step",
		"state.0.momentum_buffer", "optimizers.1.state.0.exp_avg", "opt.state.0.step", "opt.param_groups.0.lr", "optimizer.base.state.0.step",
		"rng_state", "rng.torch", "states.cuda_rng_states.0", "random_states.torch_manual_seed", "model.bn.num_batches_tracked",
	} {
		values[name] = counted(2)
	}
	want := map[string][]int64{"state/0/kernel": {3, 2}, "model/optics/kernel": {3, 2}, "model/optics/state/bias": {2}, "model/opt/0/gamma": {3}}
	if diff := cmp.Diff(want, shapesOf(apply(t, "torch-to-keras", values))); diff != "" {
		t.Error(diff)
	}
}

// Keras 2 calls the kernel of a depthwise convolution as one of a separable one.
func TestDepthwiseOfKeras2(t *testing.T) {
	got := apply(t, "keras-to-torch", map[string]*ckptfmt.Tensor{
		"a/depthwise_kernel": counted(3, 5, 4, 2), "a/bias": counted(8), "b/depthwise_kernel": counted(3, 4, 2),
		"s/depthwise_kernel": counted(3, 5, 4, 1), "s/pointwise_kernel": counted(1, 1, 4, 6), "s/bias": counted(6),
	})
	want := map[string][]int64{
		"a.weight": {8, 1, 3, 5}, "a.bias": {8}, "b.weight": {8, 1, 3},
		"s.depthwise.weight": {4, 1, 3, 5}, "s.pointwise.weight": {6, 4, 1, 1}, "s.pointwise.bias": {6},
	}
	if diff := cmp.Diff(want, shapesOf(got)); diff != "" {
		t.Error(diff)
	}
}

// What TensorFlow 1 keeps for the training is left out, and numbers of PReLU for a channel lose their other axes.
func TestKerasToTorchLeavesOut(t *testing.T) {
	got := apply(t, "keras-to-torch", map[string]*ckptfmt.Tensor{
		"d/bias": counted(4), "act/alpha": counted(1, 1, 4), "global_step": counted(), "beta1_power": counted(), "d/bias/Adam_1": counted(4),
		"d/bias/ExponentialMovingAverage": counted(4),
	})
	if diff := cmp.Diff(map[string][]int64{"d.bias": {4}, "act.weight": {4}}, shapesOf(got)); diff != "" {
		t.Error(diff)
	}
}

// A name is a hint only: what a layer has tells more, and a layer with a name like
// that of another kind is none.
func TestTorchToKerasGoesByWhatLayersHave(t *testing.T) {
	for _, c := range []struct{ torch, keras map[string][]int64 }{
		{map[string][]int64{"emb_out.weight": {2, 3}, "emb_out.bias": {2}}, map[string][]int64{"emb_out/kernel": {3, 2}, "emb_out/bias": {2}}},
		{map[string][]int64{"emb.weight": {2, 3}}, map[string][]int64{"emb/embeddings": {2, 3}}},
		{map[string][]int64{"prelu_bn.weight": {2}, "prelu_bn.bias": {2}}, map[string][]int64{"prelu_bn/gamma": {2}, "prelu_bn/beta": {2}}},
		{map[string][]int64{"rmsnorm.weight": {2}, "rmsnorm.bias": {2}}, map[string][]int64{"rmsnorm/gamma": {2}, "rmsnorm/beta": {2}}},
		{map[string][]int64{"dw1.weight": {4, 4, 3, 5}}, map[string][]int64{"dw1/kernel": {3, 5, 4, 4}}},
		{map[string][]int64{"dw1.weight": {4, 4, 3}}, map[string][]int64{"dw1/kernel": {3, 4, 4}}},
		{map[string][]int64{"dw1.weight": {4, 1, 3, 5}}, map[string][]int64{"dw1/kernel": {3, 5, 4, 1}}},
		{
			map[string][]int64{"a.q_proj.weight": {4, 4}, "a.out_proj.weight": {4, 2}, "a.out_proj.bias": {4}},
			map[string][]int64{"a/q_proj/kernel": {4, 4}, "a/out_proj/kernel": {2, 4}, "a/out_proj/bias": {4}},
		},
	} {
		values := make(map[string]*ckptfmt.Tensor)
		for name, shape := range c.torch {
			values[name] = counted(shape...)
		}
		got := apply(t, "torch-to-keras", values)
		if diff := cmp.Diff(c.keras, shapesOf(got)); diff != "" {
			t.Error(diff)
		}
	}
	// Of equal dimensions the order shows in the elements: the last two change places.
	w := counted(2, 2, 1, 1)
	size := len(w.Data) / 4
	got := apply(t, "torch-to-keras", map[string]*ckptfmt.Tensor{"dw.weight": w})["dw/kernel"]
	if second := got.Data[size : 2*size]; !slices.Equal(second, w.Data[2*size:3*size]) {
		t.Errorf("the second element is % x", second)
	}
}

func shapesOf(values map[string]*ckptfmt.Tensor) map[string][]int64 {
	out := make(map[string][]int64)
	for name, x := range values {
		out[name] = x.Shape
	}
	return out
}

func apply(t *testing.T, ready string, values map[string]*ckptfmt.Tensor) map[string]*ckptfmt.Tensor {
	t.Helper()
	m, err := Open(ready)
	if err != nil {
		t.Fatal(err)
	}
	var list []Tensor
	for name, x := range values {
		list = append(list, Tensor{Name: name, DType: x.DType, Shape: x.Shape})
	}
	r, err := m.Plan(list)
	if err == nil {
		err = r.Err(m)
	}
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]*ckptfmt.Tensor)
	for _, o := range r.Outputs {
		var in []*ckptfmt.Tensor
		for _, name := range o.Inputs {
			in = append(in, values[name])
		}
		if out[o.Name] = in[0]; !o.Plain {
			out[o.Name] = o.Make(in)
		}
	}
	return out
}

// No document makes the package panic, and what it plans it makes.
func FuzzMap(f *testing.F) {
	for _, name := range []string{"keras-to-torch", "torch-to-keras"} {
		b, _ := Ready(name)
		f.Add(b)
	}
	f.Add([]byte("[[rule]]\nfrom=['(.*)x','$1y']\nto=['a$1','b']\njoin=1\nshape=['d0*d1',-1]\nsplit=0\nsizes=[1,-1]\nzeros='z'\nrest='keep'"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Parse("fuzz", text)
		if err != nil {
			return
		}
		in := map[string]*ckptfmt.Tensor{"ax": counted(2, 3), "ay": counted(2, 3), "x": counted(0, 4), "a/kernel": counted(2, 3), "s": counted()}
		var list []Tensor
		for name, x := range in {
			list = append(list, Tensor{Name: name, DType: x.DType, Shape: x.Shape})
		}
		r, err := m.Plan(list)
		if err != nil {
			return
		}
		for _, o := range r.Outputs {
			if o.Plain || o.Adds() {
				continue
			}
			var from []*ckptfmt.Tensor
			for _, name := range o.Inputs {
				from = append(from, in[name])
			}
			if err := o.Make(from).Validate(); err != nil {
				t.Fatalf("%s of %v: %v", o.Name, o.Inputs, err)
			}
		}
	})
}

func TestHeads(t *testing.T) {
	const rule = "[[rule]]\nfrom = 'w'\nto = ['q', 'k']\nshape = [\"d0\", 2, \"heads\", -1]\nsplit = 1\nsqueeze = true\n"
	shapes := map[string][]int64{"w": {1, 8}}
	if got, want := run(t, "heads = 2\n"+rule, shapes), "q[1 2 2][0 1 2 3]; k[1 2 2][4 5 6 7]"; got != want {
		t.Errorf("2 heads give %s, want %s", got, want)
	}
	if got, want := run(t, rule, shapes), "set heads in the map, or --heads"; !strings.Contains(got, want) {
		t.Errorf("no heads give %s, want %q", got, want)
	}
	if got, want := run(t, "heads = 3\n"+rule, shapes), "has another number"; !strings.Contains(got, want) {
		t.Errorf("3 heads give %s, want %q", got, want)
	}
	if _, err := Parse("test.toml", []byte("heads = -1\n"+rule)); err == nil {
		t.Error("a negative number of heads is taken")
	}
}

func TestGRUWithoutResetAfterHasNoCounterpart(t *testing.T) {
	m, err := Open("keras-to-torch")
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Plan([]Tensor{{Name: "g/gru_cell/bias", DType: tfpb.DataType_DT_FLOAT, Shape: []int64{6}}})
	var failed *RuleError
	if !errors.As(err, &failed) {
		t.Errorf("the error is %v", err)
	}
}
