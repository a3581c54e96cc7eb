package torch_test

import (
	"archive/zip"
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/torch"
)

// typed is a tensor of the first storage, which is of a class and has so many elements;
// untyped is one of bytes, whose type follows.
func typed(class, numel, offset, shape, stride string) string {
	return "ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\n" + class + "\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK" +
		numel + "tQK" + offset + shape + stride + "\x89ccollections\nOrderedDict\n)RtR"
}

func untyped(typ, bytes, offset, shape, stride string) string {
	return "ctorch._utils\n_rebuild_tensor_v3\n((X\x07\x00\x00\x00storagectorch.storage\nUntypedStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK" +
		bytes + "tQK" + offset + shape + stride + "\x89ccollections\nOrderedDict\n)Rctorch\n" + typ + "\ntR"
}

// TestByteOrder reads files as a big-endian machine writes them: numbers are turned, those of
// a complex one each by itself.
func TestByteOrder(t *testing.T) {
	const all, ones = "12345678", "\x00\x01\x00\x01\x00\x01\x00\x01"
	eight := "K\x08\x85K\x01\x85"
	for name, c := range map[string]struct {
		tensor, order, storage, want string
	}{
		"little":      {typed("IntStorage", "\x02", "\x00", "K\x02\x85", "K\x01\x85"), "little", all, all},
		"big":         {typed("IntStorage", "\x02", "\x00", "K\x02\x85", "K\x01\x85"), "big", all, "43218765"},
		"with a line": {typed("IntStorage", "\x02", "\x00", "K\x02\x85", "K\x01\x85"), "big\n", all, "43218765"},
		"an offset":   {typed("IntStorage", "\x02", "\x01", "K\x01\x85", "K\x01\x85"), "big", all, "8765"},
		"strides":     {typed("ShortStorage", "\x04", "\x00", "K\x02K\x02\x86", "K\x01K\x02\x86"), "big", all, "21654387"},
		"doubles":     {typed("DoubleStorage", "\x01", "\x00", ")", ")"), "big", all, "87654321"},
		"complex":     {typed("ComplexFloatStorage", "\x01", "\x00", ")", ")"), "big", all, "43218765"},
		"bytes":       {typed("ByteStorage", "\x08", "\x00", eight[:3], eight[3:]), "big", all, all},
		"bools":       {typed("BoolStorage", "\x08", "\x00", eight[:3], eight[3:]), "big", ones, ones},
		"untyped":     {untyped("uint16", "\x08", "\x00", "K\x04\x85", "K\x01\x85"), "big", all, "21436587"},
		"complex32":   {untyped("complex32", "\x08", "\x00", "K\x02\x85", "K\x01\x85"), "big", all, "21436587"},
		"float8":      {untyped("float8_e5m2", "\x08", "\x00", eight[:3], eight[3:]), "big", all, all},
	} {
		r, err := open(archiveOf(t, []member{
			{"x/data.pkl", "\x80\x02" + c.tensor + ".", zip.Store}, {"x/byteorder", c.order, zip.Store}, {"x/data/0", c.storage, zip.Store},
		}))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := r.Parts()[0].Load(); err != nil || string(got.Data) != c.want {
			t.Errorf("%s: got %v, %v; want %q", name, got, err, c.want)
		}
	}
}

func TestOtherByteOrders(t *testing.T) {
	pickle := member{"x/data.pkl", one("\x01", "\x00", "K\x01\x85", "K\x01\x85"), zip.Store}
	storage := member{"x/data/0", "\x00\x00\x80\x3f", zip.Store}
	for order, want := range map[string]string{
		"middle": `member "byteorder": it is "middle"`, "": `member "byteorder": it is ""`, strings.Repeat("l", 17): "it has 17 bytes, more than 16",
		strings.Repeat(" ", 10) + "little": "",
	} {
		b := archiveOf(t, []member{pickle, {"x/byteorder", order, zip.Store}, storage})
		if _, err := open(b); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", order, err)
		}
	}
	b := archiveOf(t, []member{pickle, {"x/byteorder", "little", zip.Store}, storage})
	b[bytes.Index(b, []byte("little"))] ^= 1
	if _, err := open(b); err == nil || !strings.Contains(err.Error(), "CRC-32") {
		t.Errorf("damaged: %v", err)
	}
}

// TestLegacyByteOrder has files of the old kind, whose elements are little-endian whatever the
// machine, but for those of a storage without a type.
func TestLegacyByteOrder(t *testing.T) {
	file := func(order, tensor string, numel byte) []byte {
		text := func(s string) string { return "X" + string([]byte{byte(len(s)), 0, 0, 0}) + s }
		return []byte("\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03." +
			"\x80\x02}" + text("little_endian") + order + "s.\x80\x02" + tensor + ".\x80\x02](X\x01\x00\x00\x000e." +
			string([]byte{numel, 0, 0, 0, 0, 0, 0, 0}) + "12345678")
	}
	const little, big = "\x88", "\x89"
	shorts := typed("ShortStorage", "\x04", "\x00", "K\x04\x85", "K\x01\x85")
	words := untyped("uint16", "\x08", "\x00", "K\x04\x85", "K\x01\x85")
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"little":          {file(little, shorts, 4), "12345678"},
		"big":             {file(big, shorts, 4), "12345678"},
		"little, untyped": {file(little, words, 8), "12345678"},
		"big, untyped":    {file(big, words, 8), "21436587"},
	} {
		r, err := open(c.file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := r.Parts()[0].Load(); err != nil || string(got.Data) != c.want {
			t.Errorf("%s: got %v, %v; want %q", name, got, err, c.want)
		}
	}
}

// TestBigAndCut is a file that became shorter after it was opened: an error, and no panic.
func TestBigAndCut(t *testing.T) {
	tensor := typed("IntStorage", "\x02", "\x00", "K\x02\x85", "K\x01\x85")
	b := archiveOf(t, []member{
		{"x/data.pkl", "\x80\x02" + tensor + ".", zip.Store}, {"x/byteorder", "big", zip.Store}, {"x/data/0", "12345678", zip.Store},
	})
	at := bytes.Index(b, []byte("12345678"))
	for cut := at; cut < at+8; cut++ {
		file := &shrinking{b, int64(len(b))}
		r, err := torch.NewReader(file, int64(len(b)), "f.pt")
		if err != nil {
			t.Fatal(err)
		}
		file.size = int64(cut)
		if got, err := r.Parts()[0].Load(); err == nil {
			t.Errorf("cut after %d bytes: %v", cut-at, got)
		}
	}
}

// TestElementsInSmallPieces are those of one read.
func TestElementsInSmallPieces(t *testing.T) {
	for name, tensor := range map[string]string{
		"strides":     typed("ShortStorage", "\x04", "\x00", "K\x02K\x02\x86", "K\x01K\x02\x86"),
		"transposed":  typed("ShortStorage", "\x04", "\x00", "K\x02K\x01K\x02\x87", "K\x01K\x07K\x02\x87"),
		"expanded":    typed("ShortStorage", "\x04", "\x01", "K\x03\x85", "K\x00\x85"),
		"every other": typed("ShortStorage", "\x04", "\x01", "K\x02\x85", "K\x02\x85"),
		"of none":     typed("ShortStorage", "\x04", "\x04", "K\x02K\x00\x86", "K\x05K\x07\x86"),
	} {
		for _, order := range []string{"little", "big"} {
			r, err := open(archiveOf(t, []member{
				{"x/data.pkl", "\x80\x02" + tensor + ".", zip.Store}, {"x/byteorder", order, zip.Store}, {"x/data/0", "12345678", zip.Store},
			}))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			want := map[string]string{"strides": "12563478", "transposed": "12563478", "expanded": "343434", "every other": "3478"}[name]
			if order == "big" {
				b := []byte(want)
				for i := 0; i < len(b); i += 2 {
					slices.Reverse(b[i : i+2])
				}
				want = string(b)
			}
			for piece := 1; piece < 10; piece++ {
				if got := inPieces(t, r.Parts()[0], piece); got != want {
					t.Errorf("%s, %d bytes at once: got %q, want %q", name, piece, got, want)
				}
			}
		}
	}
}

// shrinking is a file that another program cuts.
type shrinking struct {
	b    []byte
	size int64
}

func (s *shrinking) ReadAt(b []byte, at int64) (int, error) {
	return bytes.NewReader(s.b[:s.size]).ReadAt(b, at)
}

func inPieces(t *testing.T, p ckptfmt.Part, n int) string {
	t.Helper()
	from, err := p.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	var all []byte
	for b := make([]byte, n); len(all) < 100; {
		got, err := from.Read(b)
		all = append(all, b[:got]...)
		if err != nil {
			break
		}
	}
	return string(all)
}
