package torch_test

import (
	"archive/zip"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
)

// object is an object of a class that was made of some values, with a state.
func object(class, state string, args ...string) string {
	return global(class) + tuple(args...) + "\x81" + state + "b"
}

// module is an object of a class of modules, as torch.save(model) has it.
func module(class, parameters, buffers, unsaved, modules string, more ...string) string {
	return object(class, dict(text("training")+"\x88", text("_parameters")+dict(parameters), text("_buffers")+dict(buffers),
		text("_non_persistent_buffers_set")+call("builtins.set", list(unsaved)), text("_backward_hooks")+ordered,
		text("_modules")+ordered+"("+modules+"u", strings.Join(more, "")))
}

// TestObjectsOfPrograms has what programs save of their own classes with their tensors, and the names
// of what is in it.
func TestObjectsOfPrograms(t *testing.T) {
	attributes := dict(text("w")+scalar, text("lr")+"K\x02")
	array := call("numpy.core.multiarray.scalar", "N", bytesOf("1234"))
	sparse := call("torch._utils._rebuild_sparse_tensor", "N")
	nested := func(n int, value string) string { return strings.Repeat("](", n) + value + strings.Repeat("e", n) }
	linear := module("torch.nn.modules.linear.Linear", text("weight")+scalar+text("bias")+"N", "", "", "", text("in_features")+"K\x03")
	for name, c := range map[string]struct {
		value    string
		tensors  []string
		metadata map[string]string
	}{
		"a dataclass":              {dict(text("cfg") + object("__main__.Config", attributes)), []string{"cfg.w"}, map[string]string{"cfg.lr": "2"}},
		"one with slots":           {object("net.Config", tuple("N", attributes)), []string{"w"}, map[string]string{"lr": "2"}},
		"slots and others":         {object("net.Config", tuple(dict(text("x")+"K\x01"), attributes)), []string{"w"}, map[string]string{"x": "1", "lr": "2"}},
		"a state of two dicts":     {object("net.Config", tuple(dict(text("x")+"K\x01"), "N")), []string{}, map[string]string{"0.x": "1"}},
		"a state of three":         {object("net.Config", tuple("N", attributes, "N")), []string{"1.w"}, map[string]string{"1.lr": "2"}},
		"a number and a dict":      {object("net.Config", tuple("K\x01", attributes)), []string{"1.w"}, map[string]string{"0": "1", "1.lr": "2"}},
		"a state of no dict":       {object("net.Config", list(scalar, "K\x01")), []string{"0"}, map[string]string{"1": "1"}},
		"a named tuple":            {dict(text("p") + global("__main__.Point") + tuple("K\x01", scalar) + "\x81"), []string{"p.1"}, map[string]string{"p.0": "1"}},
		"a pair of dicts":          {dict(text("p") + call("net.Pair", dict(), attributes)), []string{"p.1.w"}, map[string]string{"p.1.lr": "2"}},
		"an enumeration":           {dict(text("c") + call("__main__.Color", "K\x01")), []string{}, map[string]string{"c": "1"}},
		"a text of one's own":      {dict(text("v") + global("torch.torch_version.TorchVersion") + tuple(text("2.15")) + "\x81"), []string{}, map[string]string{"v": "2.15"}},
		"a dict of one's own":      {global("easydict.EasyDict") + ")\x81" + "(" + text("w") + scalar + text("n") + "K\x01u" + dict(text("frozen")+"\x89") + "b", []string{"w"}, map[string]string{"n": "1", "frozen": "false"}},
		"one in small letters":     {global("net.dotdict") + ")\x81" + text("w") + scalar + "s", []string{"w"}, nil},
		"one of an OrderedDict":    {call("net.odict") + text("w") + scalar + "s", []string{"w"}, nil},
		"one of two values":        {call("net.odict", "K\x02", scalar) + text("w") + scalar + "s", []string{"1", "w"}, map[string]string{"0": "2"}},
		"a class in small letters": {object("net.config", attributes), []string{"w"}, map[string]string{"lr": "2"}},
		"a private class":          {call("net._Config", attributes), []string{"w"}, map[string]string{"lr": "2"}},
		"an OrderedDict of one's":  {call("net.Weights") + "(" + text("w") + scalar + "u", []string{"w"}, nil},
		"a list of one's own":      {global("net.List") + ")\x81(" + scalar + "K\x01e", []string{"0"}, map[string]string{"1": "1"}},
		"a name alone":             {dict(text("f")+global("torch.nn.functional.relu"), text("g")+global("os.system"), text("w")+scalar), []string{"w"}, nil},
		"a function's":             {dict(text("f")+call("numpy.ma.core._mareconstruct", scalar)+tuple("K\x01")+"b", text("w")+scalar), []string{"f object", "w"}, nil},
		"a function's of a tensor": {call("model.make", scalar), []string{"tensor object"}, nil},
		"of an array":              {dict(text("f") + call("model.make", list(array))), []string{"f object"}, nil},
		"of what has a tensor":     {dict(text("f") + call("model.make", object("net.Config", dict(text("w")+scalar)))), []string{"f object"}, nil},
		"of one that was made":     {dict(text("f") + call("model.make", global("net.dotdict")+")\x81"+text("w")+scalar+"s")), []string{"f object"}, nil},
		"with a tensor in it":      {dict(text("f") + call("model.make") + tuple("K\x01", list(dict(text("w")+sparse))) + "b"), []string{"f object"}, nil},
		"far in it":                {dict(text("f") + call("model.make", nested(5, scalar))), []string{"f object"}, nil},
		"too far in it":            {dict(text("f") + call("model.make", nested(6, scalar))), []string{}, nil},
		"a function's of words":    {dict(text("f")+call("pandas._unpickle_timestamp", "K\x01", text("UTC")), text("w")+scalar), []string{"w"}, nil},
		"a function's alone":       {call("model.make"), []string{}, nil},
		"a function's of torch":    {call("torch.make"), []string{"tensor object"}, nil},
		"a new kind of tensors":    {dict(text("p")+call("torch._utils._rebuild_parameter", call("torch.nested._internal._rebuild_njt", scalar), "\x88", ordered), text("w")+scalar), []string{"p object", "w"}, nil},
		"a tensor of a class": {
			call("torch._tensor._rebuild_from_type_v2", global(v2), global("torchvision.tv_tensors.Image"), tuple(stored, "K\x00", ")", ")", "\x89", ordered), dict()), []string{"tensor"}, nil,
		},
		"a class of NumPy elsewhere": {dict(text("d") + call("numpy.FloatDType", "K\x01")), []string{}, map[string]string{"d": "1"}},
		"a model": {
			module("__main__.Net", "", text("mean")+scalar+text("mask")+scalar, text("mask"), text("fc")+linear, text("names")+list(scalar)),
			[]string{"mean", "fc.weight", "names.0"}, map[string]string{"training": "true", "fc.training": "true", "fc.in_features": "3"},
		},
		"a model of an old file": {
			tuple(text("module"), global("model.Net"), text("model.py"), text("class Net: ...")) + "Q)\x81" + dict(text("_parameters")+dict(text("w")+scalar), text("_modules")+dict()) + "b",
			[]string{"w"}, nil,
		},
		"buffers of all kinds": {
			module("model.Net", "", "K\x01"+scalar+tuple(text("a"))+scalar, tuple(text("a"))+"K\x01", ""), []string{"1", "(a)"}, map[string]string{"training": "true"},
		},
		"no buffers":          {object("model.Net", dict(text("_parameters")+dict(), text("_buffers")+"N", text("_modules")+dict())), []string{}, nil},
		"no modules":          {object("model.Net", dict(text("_parameters")+dict(text("w")+scalar))), []string{"_parameters.w"}, nil},
		"no parameters":       {object("model.Net", dict(text("_modules")+dict(text("w")+scalar))), []string{"_modules.w"}, nil},
		"a part of its owner": {"cnet\nNode\n)\x81q\x05" + dict(text("up")+"h\x05", text("w")+scalar) + "b", []string{"w"}, nil},
	} {
		r, err := open(archive(t, zip.Store, "\x80\x03"+c.value+"."))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := named(r); !slices.Equal(got, c.tensors) || !maps.Equal(r.Metadata(), c.metadata) {
			t.Errorf("%s: got %q, %q; want %q, %q", name, got, r.Metadata(), c.tensors, c.metadata)
		}
	}
}

// TestUnreadableObject says what would have had to be executed.
func TestUnreadableObject(t *testing.T) {
	r, err := open(archive(t, zip.Store, "\x80\x03"+dict(text("f")+call("net.load", scalar))+"."))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Part(0).Err; !errors.Is(err, ckptfmt.ErrType) || !strings.Contains(err.Error(), `"f": ckptfmt: wrong data type: it is made by net.load, which is not executed`) {
		t.Errorf("got %v", err)
	}
}

// TestKeys has keys of dicts that are not texts.
func TestKeys(t *testing.T) {
	number := func(typ, order, elements string) string {
		return call("numpy.core.multiarray.scalar", call("numpy.dtype", text(typ))+tuple("K\x03", text(order))+"b", bytesOf(elements))
	}
	long := strings.Repeat("a", 1021)
	doubled := "K\x01" + strings.Repeat("q\x01h\x01\x86", 60)
	for name, c := range map[string]struct{ key, want string }{
		"a word of NumPy":      {number("U1", "<", "a\x00\x00\x00"), "a"},
		"a whole number":       {number("i4", "<", "\xfe\xff\xff\xff"), "-2"},
		"a big-endian one":     {number("i2", ">", "\x01\x02"), "258"},
		"a large one":          {number("u8", "<", "\xff\xff\xff\xff\xff\xff\xff\xff"), "18446744073709551615"},
		"a byte":               {number("u1", "|", "\xff"), "255"},
		"another number":       {number("f4", "<", "\x00\x00\x80\x3f"), "numpy.core.multiarray.scalar"},
		"the least":            {number("i4", "<", "\x00\x00\x00\x80"), "-2147483648"},
		"cut off":              {number("i4", "<", "\x01"), "numpy.core.multiarray.scalar"},
		"a part of a long one": {tuple(text(long), text("b")), "(" + long + ", b)"},
		"after a long one":     {tuple(text(long+"a"), text("b")), "(" + long + "a,...)"},
		"an array": {
			call("numpy.core.multiarray._reconstruct", "N") + tuple("K\x01", tuple("K\x01"), call("numpy.dtype", text("u1"))+tuple("K\x03", text("|"))+"b", "\x89", bytesOf("a")) + "b",
			"numpy.core.multiarray._reconstruct",
		},
		"not a number":           {number("f4", "<", "\x00"), "numpy.core.multiarray.scalar"},
		"an enumeration":         {call("__main__.Color", "K\x01"), "__main__.Color(1)"},
		"an object of a class":   {call("__main__.Color"), "__main__.Color"},
		"of a function":          {call("net.key", "K\x01"), "net.key(1)"},
		"of Python":              {call("uuid.UUID", "K\x01"), "uuid.UUID"},
		"a tuple of tuples":      {tuple("N", tuple(text("a"), "\x88")), "(None, (a, True))"},
		"a tuple with a list":    {tuple(list()), "(...)"},
		"a tuple with a dict":    {tuple(dict()), "(...)"},
		"a tuple of very many":   {doubled, ""},
		"an object of very many": {call("__main__.Color", doubled), ""},
	} {
		r, err := open(archive(t, zip.Store, "\x80\x03"+dict(c.key+scalar)+"."))
		if err != nil || r.Len() != 1 || c.want != "" && r.Name(0) != c.want || len(r.Name(0)) > 4096 {
			t.Errorf("%s: %v, %v, want %q", name, err, r, c.want)
		}
	}
}
