// Package eventstest has what the tests of the packages below tfevents share: the files under
// fixtures, which TensorFlow, TensorBoard and tensorboardX wrote, and functions that parse them
// without the code under test.
package eventstest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
)

// Dir returns the folder of the fixtures.
func Dir() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..", "fixtures")
}

// ReadFile returns a file under fixtures.
func ReadFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(Dir(), name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Case is one entry of a fixture set's manifest.
type Case struct {
	ID     string
	Files  []string
	Input  json.RawMessage
	Expect json.RawMessage
}

// Cases returns the entries of a set's manifest by their id.
func Cases(t testing.TB, set string) map[string]Case {
	t.Helper()
	var m struct{ Cases []Case }
	// Python writes NaN into JSON.
	text := strings.ReplaceAll(string(ReadFile(t, set+"/manifest.json")), ": NaN", ": null")
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	cases := make(map[string]Case, len(m.Cases))
	for _, c := range m.Cases {
		cases[c.ID] = c
	}
	return cases
}

// Records cuts an intact file into the data of its records, without the
// code under test.
func Records(t testing.TB, file []byte) [][]byte {
	t.Helper()
	var out [][]byte
	for len(file) > 0 {
		n := binary.LittleEndian.Uint64(file)
		out = append(out, file[12:12+n])
		file = file[16+n:]
	}
	return out
}

// Events decodes an intact file without the code under test.
func Events(t testing.TB, file []byte) []*tfpb.Event {
	t.Helper()
	var out []*tfpb.Event
	for _, r := range Records(t, file) {
		e := new(tfpb.Event)
		if err := proto.Unmarshal(r, e); err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// SHA256 returns the checksum of the parts, one after the other, as hex.
func SHA256(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Splitmix returns n bytes of the generator that filled the fixtures.
func Splitmix(seed uint64, n int) []byte {
	var b []byte
	for len(b) < n {
		seed += 0x9e3779b97f4a7c15
		z := seed
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		b = binary.LittleEndian.AppendUint64(b, z^z>>31)
	}
	return b[:n]
}

// EventsFiles returns the names of all events files under fixtures/events.
func EventsFiles(t testing.TB) (names []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(Dir(), "events"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(filepath.Base(path), "tfevents") {
			names = append(names, path)
		}
		return err
	})
	if err != nil || len(names) < 15 {
		t.Fatalf("found %d events files: %v", len(names), err)
	}
	return names
}

// FailingWriter fails with Err once N bytes have been written.
type FailingWriter struct {
	N   int
	Err error
}

func (w *FailingWriter) Write(b []byte) (int, error) {
	if len(b) > w.N {
		return w.N, w.Err
	}
	w.N -= len(b)
	return len(b), nil
}

// Shape returns a shape; without dimensions, that of a single element.
func Shape(dims ...int64) *tfpb.TensorShapeProto {
	s := new(tfpb.TensorShapeProto)
	for _, d := range dims {
		s.Dim = append(s.Dim, &tfpb.TensorShapeProto_Dim{Size: d})
	}
	return s
}

// Strings returns a tensor of strings.
func Strings(shape *tfpb.TensorShapeProto, values ...[]byte) *tfpb.TensorProto {
	return &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: shape, StringVal: values}
}
