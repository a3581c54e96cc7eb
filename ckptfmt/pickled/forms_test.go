package pickled

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func text(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

func number(n int64) string {
	return "\x8a\x08" + string(binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

func data(s string) string { return "C" + string([]byte{byte(len(s))}) + s }

func tuple(items ...string) string { return "(" + strings.Join(items, "") + "t" }
func list(items ...string) string  { return "](" + strings.Join(items, "") + "e" }
func dict(items ...string) string  { return "}(" + strings.Join(items, "") + "u" }

// made is the call of a function of a module, with a state where that is not "".
func made(name, state string, args ...string) string {
	at := strings.LastIndexByte(name, '.')
	text := "c" + name[:at] + "\n" + name[at+1:] + "\n" + tuple(args...) + "R"
	if state != "" {
		text += state + "b"
	}
	return text
}

func typ(code, order string) string {
	return made("numpy.dtype", tuple(number(3), text(order), "N"), text(code), "\x89", "\x88")
}

// nested is a value in so many others.
func nested(n int, in func(inner string) string, inner string) string {
	for range n {
		inner = in(inner)
	}
	return inner
}

func TestForms(t *testing.T) {
	const f8 = "\x00\x00\x00\x00\x00\x00\xf0?"
	scalar := "numpy.core.multiarray.scalar"
	for name, c := range map[string]struct {
		value string
		want  map[string]any
	}{
		"an empty dict":   {dict(text("a")+"}", text("b")+"}"), map[string]any{"a": "{}", "b": "{}"}},
		"a dict of one":   {dict(text("a") + number(1)), map[string]any{"a": 1.0}},
		"an empty list":   {list("]", ")"), map[string]any{"0": "[]", "1": "[]"}},
		"a tuple":         {tuple(text("x"), number(2)), map[string]any{"0": "x", "1": 2.0}},
		"a large number":  {number(1<<53 + 1), map[string]any{"": int64(1<<53 + 1)}},
		"a number":        {made(scalar, "", typ("f8", "<"), data(f8)), map[string]any{"": Array{Type: "<f8", Data: f8}}},
		"of protocol 2":   {made(scalar, "", typ("f8", "<"), text("abc")), map[string]any{"": Array{Type: "<f8", Data: "abc"}}},
		"a named type":    {made(scalar, "", text("f8"), data(f8)), map[string]any{"": Array{Type: "f8", Data: f8}}},
		"a type of order": {made(scalar, "", made("numpy.dtype", tuple(number(3)), text("f8")), data("x")), map[string]any{"": Array{Type: "f8", Data: "x"}}},
		"no type":         {made(scalar, "", "N", data("x")), map[string]any{"": Array{Type: "<nil>", Data: "x"}}},
		"a scalar of three": {
			made(scalar, "", text("f8"), data("x"), number(1)),
			map[string]any{"scalar/0": "f8", "scalar/1": bytesOf("x"), "scalar/2": 1.0},
		},
		"a scalar of an object": {made(scalar, "", text("O"), list(number(1))), map[string]any{"scalar/0": "O", "scalar/1/0": 1.0}},
		"a buffer":              {made("numpy.core.numeric._frombuffer", "", data("ab"), typ("i1", "|"), tuple(number(2)), text("C")), map[string]any{"": Array{"|i1", "[2]", "ab"}}},
		"a buffer in Fortran's order": {
			made("numpy.core.numeric._frombuffer", "", data("ab"), typ("i1", "|"), tuple(number(2)), text("F")),
			map[string]any{"": Array{"|i1", "[2] in Fortran's order", "ab"}},
		},
		"a buffer of three": {
			made("numpy.core.numeric._frombuffer", "", data("ab"), text("i1"), tuple(number(2))),
			map[string]any{"_frombuffer/0": bytesOf("ab"), "_frombuffer/1": "i1", "_frombuffer/2/0": 2.0},
		},
		"another of four": {
			made("a.b.Four", "", data("ab"), text("i1"), text("x"), text("C")),
			map[string]any{"Four/0": bytesOf("ab"), "Four/1": "i1", "Four/2": "x", "Four/3": "C"},
		},
		"another of two": {made("a.b.Pair", "", text("x"), text("y")), map[string]any{"Pair/0": "x", "Pair/1": "y"}},
		"another of a state of five": {
			made("a.b.Five", tuple(number(1), text("s"), text("t"), "\x89", text("d"))),
			map[string]any{"Five": "[]", "Five/0": 1.0, "Five/1": "s", "Five/2": "t", "Five/3": false, "Five/4": "d"},
		},
		"an array of a state of four": {
			made("numpy.core.multiarray._reconstruct", tuple(number(1), text("s"), text("t"), "\x89")),
			map[string]any{"_reconstruct": "[]", "_reconstruct/0": 1.0, "_reconstruct/1": "s", "_reconstruct/2": "t", "_reconstruct/3": false},
		},
		"no state":            {made("a.b.None", "", number(1)), map[string]any{"None/0": 1.0}},
		"nothing":             {list(made("a.b.None", "")), map[string]any{"0/None": "[]"}},
		"arguments and state": {made("a.b.Both", dict(text("k")+number(2)), number(1)), map[string]any{"Both/0": 1.0, "Both/k": 2.0}},
		"encoded":             {made("_codecs.encode", "", text("x")), map[string]any{"": "x"}},
		"encoded, of nothing": {made("_codecs.encode", ""), map[string]any{"encode": "[]"}},
		"a storage":           {list(number(1), text("id")+"Q"), map[string]any{"0": 1.0}},
		"a tensor":            {list(number(1), made("torch._utils._rebuild_tensor_v2", "", text("id")+"Q", number(7))), map[string]any{"0": 1.0}},
	} {
		got, err := Leaves([]byte("\x80\x03" + c.value + "."))
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// bytesOf are the bytes of a pickle as a leaf.
func bytesOf(s string) any {
	leaves, err := Leaves([]byte("\x80\x03" + data(s) + "."))
	if err != nil {
		panic(err)
	}
	return leaves[""]
}

// TestDepth bounds how deep values may be, whatever they are in.
func TestDepth(t *testing.T) {
	for name, in := range map[string]func(inner string) string{
		"lists":     func(inner string) string { return list(inner) },
		"tuples":    func(inner string) string { return tuple(inner) },
		"dicts":     func(inner string) string { return dict(text("k") + inner) },
		"arguments": func(inner string) string { return made("a.b.C", "", inner) },
		"states":    func(inner string) string { return made("a.b.C", dict(text("k")+inner)) },
		"objects":   func(inner string) string { return "ca.b\nC\n)R" + inner + "b" },
	} {
		most := maxDepth
		if name == "states" {
			most /= 2 // each has a dict
		}
		if _, err := Leaves([]byte("\x80\x03" + nested(most, in, "K\x01") + ".")); err != nil {
			t.Errorf("%d %s: %v", most, name, err)
		}
		if _, err := Leaves([]byte("\x80\x03" + nested(most+1, in, "K\x01") + ".")); err != errTooMuch {
			t.Errorf("one of the %s more: %v", name, err)
		}
	}
}

// joblib is an array as joblib has it, with what follows it.
func joblib(state, elements string) string {
	return made(wrapper, state) + elements
}

func arrayState(typ, shape string, more ...string) string {
	return dict(append([]string{text("dtype") + typ, text("shape") + shape, text("order") + text("C")}, more...)...)
}

func TestFormsOfJoblib(t *testing.T) {
	bytes2 := arrayState(typ("i1", "|"), tuple(number(2)))
	for name, c := range map[string]struct {
		value, want string // want begins the error, "" where it is the array [2] of "ab"
	}{
		"not aligned":        {joblib(bytes2, "ab"), ""},
		"a text for a state": {joblib(text("x"), "ab"), errArray.Error()},
		"a type of no name":  {joblib(arrayState(typ("", "<"), tuple(number(2))), "ab"), errArray.Error()},
		"a type of no size":  {joblib(arrayState(typ("fx", "<"), tuple(number(2))), "ab"), errArray.Error()},
		"no shape":           {joblib(arrayState(typ("i1", "|"), number(2)), "ab"), errArray.Error()},
		"a text for a dim":   {joblib(arrayState(typ("i1", "|"), tuple(text("2"))), "ab"), errArray.Error() + ": its shape is"},
		"a negative dim":     {joblib(arrayState(typ("i1", "|"), tuple(number(-2))), "ab"), errArray.Error() + ": its shape is"},
		"no int64 counts it": {joblib(arrayState(typ("i1", "|"), tuple(number(1<<40), number(1<<40))), "ab"), errArray.Error() + ": its shape is"},
		"too much":           {joblib(arrayState(typ("f8", "|"), tuple(number(1<<59+1))), "ab"), errArray.Error() + ": its shape is"},
		"just not":           {joblib(arrayState(typ("f8", "|"), tuple(number(1<<59))), "ab"), "it ends within an opcode"},
		"elements cut off":   {joblib(arrayState(typ("i1", "|"), tuple(number(2))), ""), "it ends within an opcode"},
		"damage in objects":  {joblib(arrayState(typ("O8", "|"), tuple(number(2))), "0K\x01"), "the stack"},
	} {
		got, err := Leaves([]byte("\x80\x03" + c.value + "."))
		if want := (Array{"|i1", "[2]", "ab"}); c.want == "" && (err != nil || got[""] != want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// TestDepthOfJoblib bounds how deep arrays of objects may be before what they hold is read.
func TestDepthOfJoblib(t *testing.T) {
	objects := arrayState(typ("O8", "|"), tuple(number(1)))
	for n, isTooMuch := range map[int]bool{maxDepth + 1: false, maxDepth + 2: true} {
		text := nested(n, func(inner string) string { return joblib(objects, "\x80\x03"+inner+".") }, "\xff")
		_, err := Leaves([]byte("\x80\x03" + text + "."))
		if err == nil || strings.Contains(err.Error(), errTooMuch.Error()) != isTooMuch {
			t.Errorf("%d arrays: %v", n, err)
		}
	}
}

func TestIs(t *testing.T) {
	for text, want := range map[string]bool{
		"\x80\x02.": true, "\x80\x05N.": true, "\x80\x00.": true,
		"": false, "\x80": false, "\x80.": false, "\x80\x02": false, "\x80\x06.": false, "K\x02.": false, "\x80\x02.x": false, ".": false,
	} {
		if got := Is([]byte(text)); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
