package torch_test

import (
	"archive/zip"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
)

// numpyArray is what pickle.dumps({"w": array}, protocol=2) writes: typ is the first
// argument of the array's dtype, order its byte order.
func numpyArray(shape, typ, order, fortran, elements string) string {
	latin1 := "X" + string([]byte{byte(len(utf8Of(elements))), 0, 0, 0}) + utf8Of(elements)
	return "\x80\x02}q\x00X\x01\x00\x00\x00wq\x01cnumpy._core.multiarray\n_reconstruct\nq\x02cnumpy\nndarray\nq\x03K\x00\x85q\x04" +
		"c_codecs\nencode\nq\x05X\x01\x00\x00\x00bq\x06X\x06\x00\x00\x00latin1q\x07\x86q\x08Rq\x09\x87q\x0aRq\x0b(K\x01" + shape +
		"q\x0ccnumpy\ndtype\nq\x0d" + typ + "q\x0e\x89\x88\x87q\x0fRq\x10(K\x03X\x01\x00\x00\x00" + order +
		"q\x11NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x12b" + fortran + "h\x05" + latin1 + "q\x13h\x07\x86q\x14Rq\x15tq\x16bs."
}

// bufferArray is what pickle.dumps({"w": array}, protocol=5) writes of six int8 that have
// their memory in one piece; order is the order of the axes, and what follows it.
func bufferArray(order string) string {
	return "\x80\x05\x95\x88\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01w\x94\x8c\x13numpy._core.numeric\x94\x8c\x0b_frombuffer\x94\x93\x94(" +
		"\x96\x06\x00\x00\x00\x00\x00\x00\x00\x01\x02\x03\x04\x05\x06\x94\x8c\x05numpy\x94\x8c\x05dtype\x94\x93\x94\x8c\x02i1\x94\x89\x88\x87\x94R\x94" +
		"(K\x03\x8c\x01|\x94NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00t\x94bK\x03K\x02\x86\x94\x8c\x01" + order + "t\x94R\x94s."
}

// utf8Of is how Python writes bytes as a text in Latin-1.
func utf8Of(b string) string {
	text := make([]rune, len(b))
	for i := range len(b) {
		text[i] = rune(b[i])
	}
	return string(text)
}

func TestArraysOfNumPyInAnyOrder(t *testing.T) {
	const rows, columns, little, big = "\x89", "\x88", "<", ">"
	for _, test := range []struct{ name, pickle, want, elements string }{
		{"Fortran", numpyArray("K\x03K\x02\x86", "X\x02\x00\x00\x00i1", "|", columns, "\x01\x02\x03\x04\x05\x06"), "int8 [3,2]", "010402050306"},
		{"big-endian", numpyArray("K\x02\x85", "X\x02\x00\x00\x00u2", big, rows, "\x01\x02\x03\x04"), "uint16 [2]", "02010403"},
		{"complex", numpyArray("K\x01\x85", "X\x02\x00\x00\x00c8", big, rows, "\x01\x02\x03\x04\x05\x06\x07\x08"), "complex64 [1]", "0403020108070605"},
		{
			"both", numpyArray("K\x02K\x02\x86", "X\x02\x00\x00\x00i2", big, columns, "\x00\x01\x00\x02\x00\x03\x00\x04"),
			"int16 [2,2]", "0100030002000400",
		},
		{"protocol 5", bufferArray("C\x94N"), "int8 [3,2]", "010203040506"},
		{"protocol 5 of NumPy 1", bufferArray("C\x94"), "int8 [3,2]", "010203040506"},
		{"protocol 5, Fortran", bufferArray("F\x94"), "int8 [3,2]", "010402050306"},
		{"ml_dtypes", numpyArray("K\x02\x85", "cml_dtypes\nbfloat16\n", little, rows, "\x80\x3f\x00\x40"), "bfloat16 [2]", "803f0040"},
	} {
		r, err := open(archive(t, zip.Store, test.pickle))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if len(r.Parts()) != 1 {
			t.Errorf("%s: %d tensors", test.name, len(r.Parts()))
			continue
		}
		got, err := r.Parts()[0].Load()
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if text := dtype.Text(got.DType, got.Shape); text != test.want || hex.EncodeToString(got.Data) != test.elements {
			t.Errorf("%s: %s %x, want %s %s", test.name, text, got.Data, test.want, test.elements)
		}
	}
}

// Protocol 2 has no bytes: those of no length are a call of bytes.
func TestArraysOfNumPyWithoutElements(t *testing.T) {
	const empty = "h\x05X\x00\x00\x00\x00q\x13h\x07\x86q\x14R"
	array := numpyArray("K\x00K\x03\x86", "X\x02\x00\x00\x00f8", "<", "\x89", "")
	for _, call := range []string{"c__builtin__\nbytes\nq\x13)R", "cbuiltins\nbytes\nq\x13)R"} {
		r, err := open(archive(t, zip.Store, strings.Replace(array, empty, call, 1)))
		if err != nil || len(r.Parts()) != 1 {
			t.Fatalf("%q: %v", call, err)
		}
		got, err := r.Parts()[0].Load()
		if err != nil {
			t.Fatalf("%q: %v", call, err)
		}
		if text := dtype.Text(got.DType, got.Shape); text != "float64 [0,3]" || len(got.Data) != 0 {
			t.Errorf("%q: %s %x", call, text, got.Data)
		}
	}
}

// An array whose axes are in an order of their own is listed, and hinders no other.
func TestArraysOfNumPyWithOtherAxes(t *testing.T) {
	r, err := open(archive(t, zip.Store, bufferArray("K\x94K\x01K\x00\x86\x94")))
	if err != nil {
		t.Fatal(err)
	}
	if parts := r.Parts(); len(parts) != 1 || !errors.Is(parts[0].Err, ckptfmt.ErrType) {
		t.Errorf("got %+v", parts)
	}
}

// What defaultdict(int) has is the name of a type, which is __builtin__.long in the
// protocol that torch.save uses.
func TestNamesOfPlainTypesHinderNothing(t *testing.T) {
	for _, name := range []string{"__builtin__\nlong", "__builtin__\nunicode", "__builtin__\ntuple", "__builtin__\nbool", "builtins\nstr"} {
		pickle := "\x80\x02}(X\x01\x00\x00\x00dccollections\ndefaultdict\nc" + name + "\n\x85RX\x01\x00\x00\x00w" + one("\x01", "\x00", "K\x01\x85", "K\x01\x85")[2:]
		r, err := open(archive(t, zip.Store, pickle[:len(pickle)-1]+"u."))
		if err != nil || len(r.Parts()) != 1 || r.Parts()[0].Name != "w" {
			t.Errorf("%q: %v", name, err)
		}
	}
}
