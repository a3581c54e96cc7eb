package ckptfmt

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/crc32c"
	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
)

// The checksums of an index are right in these tests; what it says is not.

func TestBadHeaderIsLocated(t *testing.T) {
	shards := func(n int) []byte { return tfproto.Marshal(newHeader(n)) }
	for name, c := range map[string]struct {
		entries map[string][]byte
		want    string
	}{
		"none":            {map[string][]byte{"a": nil}, "bundle header: there is none"},
		"not a message":   {map[string][]byte{"": {0xff}}, "cannot parse invalid wire-format data"},
		"no shard":        {map[string][]byte{"": shards(0)}, "0 shards"},
		"negative shards": {map[string][]byte{"": shards(-1)}, "-1 shards"},
		"too many shards": {map[string][]byte{"": shards(maxShards + 1)}, "100000 shards"},
	} {
		prefix := filepath.Join(t.TempDir(), "model.ckpt")
		writeIndexFile(t, prefix, c.entries)
		var corrupt *CorruptError
		if _, err := OpenBundle(prefix, nil); !errors.As(err, &corrupt) || corrupt.Name != layout.IndexName(prefix) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in %s", name, err, c.want, layout.IndexName(prefix))
		}
	}
	prefix := filepath.Join(t.TempDir(), "model.ckpt")
	writeIndexFile(t, prefix, map[string][]byte{"": shards(maxShards)})
	if r, err := OpenBundle(prefix, nil); err != nil || r.NumShards() != maxShards || r.Close() != nil {
		t.Errorf("as many shards as the names have room for: %v", err)
	}
}

// Fields that a later TensorFlow may add are skipped, whatever their form; a field
// that does not end is damage.
func TestEntryWireForms(t *testing.T) {
	whole := string((&bundleEntry{dtype: tfpb.DataType_DT_FLOAT, shape: []int64{2}, size: 8, crc: 7}).append(nil))
	for name, c := range map[string]struct {
		entry string
		ok    bool
	}{
		"as it is":                    {whole, true},
		"fixed64, unknown":            {whole + "\x49abcdefgh", true},
		"bytes, unknown":              {whole + "\x4a\x03abc", true},
		"field of two bytes, unknown": {whole + "\x92\x01\x01a", true},
		"group, unknown":              {whole + "\x4b\x08\x01\x4c", true},
		"field 16, unknown":           {whole + "\x80\x01\x05", true},
		"checksum with a long tag":    {whole + "\xb5\x00\x07\x00\x00\x00", true},
		"long varint":                 {whole + "\x48\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", true},
		"number without a value":      {whole + "\x08", false},
		"varint without an end":       {whole + "\x08\x80", false},
		"varint of eleven bytes":      {whole + "\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", false},
		"half a tag":                  {whole + "\x80", false},
		"tag of field 0":              {whole + "\x00\x00", false},
		"tag of field 0, with a byte": {whole + "\x00\x09", false},
		"bytes past the end":          {whole + "\x12\x05a", false},
		"bytes one past the end":      {whole + "\x12\x02a", false},
		"fixed64 past the end":        {whole + "\x49abc", false},
		"fixed32 past the end":        {whole + "\x35abc", false},
		"group without an end":        {whole + "\x4b\x08\x01", false},
		"a slice that is no message":  {whole + "\x3a\x01\xff", false},
		"a dimension cut short":       {whole + "\x12\x03\x12\x01\x08", false},
		"a dimension of 1, cut short": {whole + "\x12\x05\x12\x03\x08\x01\x80", false},
		"a shape cut short":           {whole + "\x12\x01\x80", false},
		"a shape of unknown rank":     {whole + "\x12\x02\x18\x01", false},
	} {
		e, err := parseBundleEntry([]byte(c.entry))
		if (err == nil) != c.ok || c.ok && (e.crc != 7 || e.size != 8 || !slices.Equal(e.shape, []int64{2})) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

// badSliceKeys are keys that begin as those of slices do.
var badSliceKeys = map[string]string{
	"no end of the name":           "\x00name",
	"half an end":                  "\x00name\x00",
	"a bad escape":                 "\x00na\x00\x02me\x00\x01\x00",
	"a bad escape of 0xff":         "\x00na\xff\x01me\x00\x01\x00",
	"no rank":                      "\x00name\x00\x01",
	"a rank of nine bytes":         "\x00name\x00\x01\x09aaaaaaaaa",
	"a rank with a leading zero":   "\x00name\x00\x01\x02\x00\x01\x80\x7f",
	"more dimensions than bytes":   "\x00name\x00\x01\x01\x03\x80\x7f",
	"no start":                     "\x00name\x00\x01\x01\x02\x80\x7f",
	"no length":                    "\x00name\x00\x01\x01\x01\x80",
	"half a start":                 "\x00name\x00\x01\x01\x01\xc0",
	"a longer code than needed":    "\x00name\x00\x01\x01\x01\xc0\x00\x7f",
	"a code of more than 64 bits":  "\x00name\x00\x01\x01\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81",
	"a code longer than all":       "\x00name\x00\x01\x01\x01\xff",
	"a code longer than any":       "\x00name\x00\x01\x01\x01\xff\xff",
	"a whole dimension that moved": "\x00name\x00\x01\x01\x01\x85\x7f",
	"more after the end":           "\x00name\x00\x01\x01\x01\x80\x7fx",
}

// A key that is none of a slice damages itself, not the tensors of the index.
func TestBadSliceKeys(t *testing.T) {
	for name, key := range badSliceKeys {
		t.Run(name, func(t *testing.T) {
			if name, s, err := parseSliceKey([]byte(key)); err == nil {
				t.Fatalf("it is the slice %q of %q", s, name)
			}
			prefix := partitioned(t)
			entries := indexEntries(t, prefix)
			entries[key] = entries["other"]
			writeIndexFile(t, prefix, entries)
			r := openBundle(t, prefix, nil)
			var corrupt *CorruptError
			bad := 0
			for _, err := range r.Verify(t.Context()) {
				if errors.As(err, &corrupt) && corrupt.Name == layout.IndexName(prefix) {
					bad++
				}
			}
			if bad != 1 {
				t.Errorf("Verify found %d bad keys", bad)
			}
			parts, damaged, err := IntactParts(r)
			if err != nil || len(parts) != 5 || len(damaged) != 1 || !errors.As(damaged[0].Err, &corrupt) {
				t.Errorf("%d parts, damaged %v, %v", len(parts), damaged, err)
			}
			if parts, err := Parts(r); !errors.As(err, &corrupt) {
				t.Errorf("Parts gave %d, %v", len(parts), err)
			}
			if all, err := r.LookupAll(t.Context(), nil); !errors.As(err, &corrupt) {
				t.Errorf("LookupAll gave %d, %v", len(all), err)
			}
			for info, err := range r.Tensors() {
				if err != nil {
					break // the loop may end at damage
				}
				if _, err := r.Lookup(info.Name); err != nil {
					t.Errorf("%s: %v", info.Name, err)
				}
			}
		})
	}
}

// Damage of a tensor in several slices is listed once, with its name, whichever of its
// entries has it; and the list ends where the loop does.
func TestListOfDamagedSlices(t *testing.T) {
	slice := string(sliceKey("w", rowSlice(1, 1)))
	for name, damage := range map[string]func(entries map[string][]byte){
		"its own entry": func(entries map[string][]byte) { entries["w"] = []byte{0xff} },
		"no entry of its own": func(entries map[string][]byte) {
			entries[string(sliceKey("v", rowSlice(1, 1)))] = entries[slice] // another
			delete(entries, "w")
		},
		"the entry of a slice":  func(entries map[string][]byte) { entries[slice] = []byte{0xff} },
		"no entry of one slice": func(entries map[string][]byte) { delete(entries, slice) },
	} {
		prefix := partitioned(t)
		entries := indexEntries(t, prefix)
		damage(entries)
		writeIndexFile(t, prefix, entries)
		r := openBundle(t, prefix, nil)
		listed := map[string]int{}
		for info, err := range r.Tensors() {
			if err == nil != (info.Name == "other") {
				t.Errorf("%s: %q: %v", name, info.Name, err)
			}
			var corrupt *CorruptError
			if lacks := strings.HasPrefix(name, "no "); err != nil && (!errors.As(err, &corrupt) || errors.Is(err, ErrSlices) != lacks) {
				t.Errorf("%s: %q: %v", name, info.Name, err)
			}
			listed[info.Name]++
		}
		if _, err := r.Lookup("w"); err == nil || name == "the entry of a slice" && (errors.Is(err, ErrSlices) || !strings.Contains(err.Error(), layout.IndexName(prefix))) {
			t.Errorf("%s: Lookup: %v", name, err)
		}
		if listed["w"] != 1 || listed["other"] != 1 {
			t.Errorf("%s: listed %v", name, listed)
		}
		for ends := range len(listed) {
			n := 0
			for range r.Tensors() {
				if n++; n > ends {
					break
				}
			}
			if n != ends+1 {
				t.Errorf("%s: the loop ran %d times", name, n)
			}
		}
	}
}

// A tensor of one slice is read as one of several.
func TestTensorInOneSlice(t *testing.T) {
	w, prefix := newBundle(t, nil)
	want, err := FromValues([]int64{4, 2}, []float32{0, 1, 2, 3, 4, 5, 6, 7})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Add("w", want), w.Finish()); err != nil {
		t.Fatal(err)
	}
	entries, all := indexEntries(t, prefix), rowSlice(0, 4)
	entries[string(sliceKey("w", all))] = entries["w"]
	changeEntry(t, entries, "w", func(e *bundleEntry) { e.slices, e.size, e.crc = []TensorSlice{all}, 0, 0 })
	writeIndexFile(t, prefix, entries)
	r := openBundle(t, prefix, nil)
	if got, err := r.Lookup("w"); err != nil || !slices.Equal(got.Data, want.Data) {
		t.Errorf("Lookup: %v, %v", got, err)
	}
	if got, err := r.LookupSlice("w", rowSlice(1, 2)); err != nil || !slices.Equal(got.Data, want.Data[8:24]) {
		t.Errorf("LookupSlice: %v, %v", got, err)
	}
	if err := verifyAll(t, prefix); err != nil {
		t.Error(err)
	}
	delete(entries, string(sliceKey("w", all)))
	writeIndexFile(t, prefix, entries)
	if err := verifyAll(t, prefix); !errors.Is(err, ErrSlices) {
		t.Errorf("without its slice: %v", err)
	}
}

// Damage of entries is located in the index, also of several in a row.
func TestDamagedEntriesAreLocated(t *testing.T) {
	prefix := partitioned(t)
	entries := indexEntries(t, prefix)
	changeEntry(t, entries, "other", func(e *bundleEntry) { e.shard = 1 })
	entries["a"], entries["b"] = []byte{0xff}, []byte{0xff}
	writeIndexFile(t, prefix, entries)
	r, bad := openBundle(t, prefix, nil), 0
	for name, err := range r.Verify(t.Context()) {
		var corrupt *CorruptError
		if errors.As(err, &corrupt) {
			if bad++; corrupt.Name != layout.IndexName(prefix) || !strings.Contains(err.Error(), "of the block at") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := r.Lookup("other"); bad != 3 || err == nil || !strings.Contains(err.Error(), "shard 1 of 1") {
		t.Errorf("%d damaged; %v", bad, err)
	}
}

// A slice in long pieces, which are read one by one, of a tensor that is not the first in
// its file; a file that ends within it is an error.
func TestSliceInLongPieces(t *testing.T) {
	const row = 2 * maxGap / 4 // elements of four bytes
	values := make([]float32, 4*2*row)
	for i := range values {
		values[i] = float32(i)
	}
	all, err := FromValues([]int64{4, 2, row}, values)
	if err != nil {
		t.Fatal(err)
	}
	w, prefix := newBundle(t, nil)
	if err := errors.Join(w.Add("first", Scalar(int64(1))), w.Add("x", all), w.Finish()); err != nil {
		t.Fatal(err)
	}
	s := TensorSlice{Start: []int64{0, 1, 0}, Length: []int64{full, 1, full}}
	for _, skip := range []bool{false, true} {
		got, err := openBundle(t, prefix, &ReaderOptions{SkipChecksums: skip}).LookupSlice("x", s)
		if err != nil {
			t.Fatal(err)
		}
		read, err := Values[float32](got)
		if err != nil || len(read) != 4*row {
			t.Fatal(len(read), err)
		}
		for i, v := range read {
			if want := float32((i/row*2+1)*row + i%row); v != want {
				t.Fatalf("without checksums %v: element %d is %v, want %v", skip, i, v, want)
			}
		}
		r := openBundle(t, prefix, &ReaderOptions{SkipChecksums: skip})
		if _, err := r.LookupSlice("first", FullSlice(0)); err != nil { // opens the file
			t.Fatal(err)
		}
		data := layout.DataName(prefix, 0, 1)
		whole, err := os.ReadFile(data)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(data, int64(len(whole)-row)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.LookupSlice("x", s); err == nil {
			t.Errorf("without checksums %v: no error of a file that was cut", skip)
		}
		if err := os.WriteFile(data, whole, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// Where nothing is read, the place does not matter, as in TensorFlow.
func TestEmptyTensorPastTheEnd(t *testing.T) {
	prefix := partitioned(t)
	entries := indexEntries(t, prefix)
	entries["empty"] = (&bundleEntry{dtype: tfpb.DataType_DT_FLOAT, shape: []int64{0}, offset: 1 << 20, crc: crc32c.Mask(0)}).append(nil)
	writeIndexFile(t, prefix, entries)
	if x, err := openBundle(t, prefix, nil).Lookup("empty"); err != nil || len(x.Data) > 0 {
		t.Errorf("%v, %v", x, err)
	}
}

// The lengths of strings and variants are not believed: each case names what is wrong.
func TestBadStrings(t *testing.T) {
	sum := func(lengths ...uint64) []byte {
		crc := uint32(0)
		for _, n := range lengths {
			crc = extendLength(crc, n, binary.LittleEndian)
		}
		return binary.LittleEndian.AppendUint32(nil, crc32c.Mask(crc))
	}
	huge := binary.AppendUvarint(nil, 1<<40)
	for name, c := range map[string]struct {
		stored []byte
		n      int64
		want   string
	}{
		"more strings than bytes": {[]byte("ab"), 3, "2 bytes cannot hold 3 strings"},
		"a length without an end": {[]byte("\x01\x80"), 2, "length of string 1 is not a varint"},
		"no room for a checksum":  {[]byte("\x01abc"), 1, "no room for the lengths' checksum"},
		"another checksum":        {append([]byte{1}, "abcde"...), 1, "the length ckptfmt/sstable: checksum mismatch"},
		"past the end":            {append(append([]byte{3}, sum(3)...), "ab"...), 1, "string 0 of 3 bytes runs past the tensor's end"},
		"past any end":            {append(slices.Clone(huge), sum(1<<40)...), 1, "string 0 of 1099511627776 bytes runs past"},
		"more after the last":     {append(append([]byte{1}, sum(1)...), "ab"...), 1, "1 bytes after the last string"},
	} {
		if got, _, err := decodeStrings(c.stored, c.n, binary.LittleEndian); err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(c.want, "the length ckptfmt/sstable: checksum mismatch")) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		} else if name == "another checksum" && !errors.Is(err, ErrChecksum) {
			t.Errorf("%s: %v", name, err)
		}
	}
	good, _ := encodeVariants([][]byte{[]byte("one"), []byte("two")})
	flipped := slices.Clone(good)
	flipped[1] ^= 1
	for name, c := range map[string]struct {
		stored []byte
		n      int64
		want   string
	}{
		"more variants than bytes": {[]byte("ab"), 3, "2 bytes cannot hold 3 variants"},
		"a length without an end":  {[]byte("\x80"), 1, "variant 0 runs past the tensor's end"},
		"cut in the second":        {good[:len(good)-1], 2, "variant 1 runs past the tensor's end"},
		"no room for a checksum":   {good[:4], 1, "variant 0 runs past the tensor's end"},
		"another byte":             {flipped, 2, "variant 0: "},
		"more after the last":      {good, 1, "8 bytes after the last variant"},
	} {
		if got, _, err := decodeVariants(c.stored, c.n); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	if _, _, err := decodeVariants(flipped, 2); !errors.Is(err, ErrChecksum) {
		t.Errorf("another byte: %v", err)
	}
}
