package ckptfmt

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/membound"
)

// FuzzBundle reads a checkpoint whose header, two entries and data may be anything, in a
// table that is intact: [sstable]'s own fuzzing has those that are not, and nearly all that
// a fuzzer makes of a table have a wrong checksum. Its files are in memory.
func FuzzBundle(f *testing.F) {
	indexes, err := filepath.Glob(filepath.Join(fixtures, v2Set, "*", "*.index"))
	if err != nil || len(indexes) == 0 {
		f.Fatal("there are no fixtures", err)
	}
	for _, index := range indexes {
		addEntries(f, index)
	}
	f.Fuzz(func(t *testing.T, header, key, value, key2, value2, data []byte) {
		entries := map[string][]byte{string(key): value, string(key2): value2, headerKey: header}
		d := &fstest.MapFile{Data: data}
		files := memFS{MapFS: fstest.MapFS{
			layout.IndexName("m"): {Data: tableOf(t, entries)}, layout.DataName("m", 0, 1): d, layout.DataName("m", 0, 2): d,
		}}
		defer membound.Check(t, len(header)+len(key)+len(value)+len(key2)+len(value2)+len(data), 256)()
		r, err := OpenBundle("m", &ReaderOptions{FS: files})
		if err != nil {
			return
		}
		defer r.Close()
		checkTensors(t, r)
		for range r.Verify(t.Context()) {
			continue
		}
	})
}

// addEntries gives the fuzzer the pairs of entries that are next to each other in an index.
func addEntries(f *testing.F, index string) {
	f.Helper()
	const most = 1000 // bytes
	r, err := OpenBundle(strings.TrimSuffix(index, layout.IndexSuffix), nil)
	if err != nil {
		f.Fatal(err)
	}
	defer r.Close()
	header, err := r.table.Get([]byte(headerKey))
	if err != nil {
		f.Fatal(err)
	}
	data := bytes.Repeat([]byte("\x01\x02data"), 10)
	var key, value []byte
	for e, err := range r.table.From([]byte{0}) {
		if err != nil || len(e.Key)+len(e.Value) > most {
			continue
		}
		if key != nil {
			f.Add(header, key, value, slices.Clone(e.Key), slices.Clone(e.Value), data)
		}
		key, value = slices.Clone(e.Key), slices.Clone(e.Value)
	}
}

// memFS are files in memory, for reading.
type memFS struct {
	FS
	fstest.MapFS
}

func (m memFS) Open(name string) (atomicfile.ReadFile, error) {
	f, err := m.MapFS.Open(name)
	if err != nil {
		return nil, err
	}
	return f.(atomicfile.ReadFile), nil
}

// checkTensors reads every tensor that can be read, and checks what it gets.
func checkTensors(t *testing.T, r Reader) {
	t.Helper()
	for info, err := range r.Tensors() {
		if err != nil {
			continue
		}
		v, err := r.Lookup(info.Name)
		if err != nil {
			continue
		}
		if err := v.Validate(); err != nil {
			t.Fatalf("Lookup gave a bad tensor: %v", err)
		}
	}
}
