package data_test

import (
	"bytes"
	"compress/zlib"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

var anyShape = [][]int64{{}}

// file writes a file and returns its name.
func file(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// walk returns the elements of one component of a data set, run after run, to its
// end.
func walk[T int64 | string](t *testing.T, g *kerneltest.Graph, set string, dt tfpb.DataType) []T {
	t.Helper()
	iterator := g.Node("IteratorV2", nil, "shared_name", "it", "container", "", "output_types", []tfpb.DataType{dt}, "output_shapes", anyShape)
	begin := g.Node("MakeIterator", []string{set, iterator})
	next := g.Node("IteratorGetNext", []string{iterator}, "output_types", []tfpb.DataType{dt}, "output_shapes", anyShape)
	g.Run(nil, begin)
	var all []T
	for {
		got, err := g.Try([]string{next})
		if err != nil {
			if code := kerneltest.Code(err); code != tfpb.Code_OUT_OF_RANGE {
				t.Fatal(err)
			}
			return all
		}
		all = append(all, kerneltest.Values[T](t, got[0])...)
	}
}

// TestRangeDataset counts up and down.
func TestRangeDataset(t *testing.T) {
	tests := map[string]struct {
		start, stop, step int64
		want              []int64
	}{
		"up":         {0, 7, 3, []int64{0, 3, 6}},
		"down":       {2, -1, -1, []int64{2, 1, 0}},
		"empty":      {3, 3, 1, nil},
		"stop first": {3, 0, 1, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := kerneltest.New(t)
			set := g.Node("RangeDataset", []string{kerneltest.Scalar(g, test.start), kerneltest.Scalar(g, test.stop), kerneltest.Scalar(g, test.step)},
				"output_types", []tfpb.DataType{exec.Int64}, "output_shapes", anyShape)
			kerneltest.WantValues(t, walk[int64](t, g, set, exec.Int64), test.want)
		})
	}
}

// TestFileDatasets reads lines, and records of one length, of two files each.
func TestFileDatasets(t *testing.T) {
	dir := t.TempDir()
	a, b := file(t, dir, "a.txt", "one\ntwo\n"), file(t, dir, "b.txt", "three")
	c, d := file(t, dir, "c.bin", "HabcdefT"), file(t, dir, "d.bin", "HghiT")

	t.Run("lines", func(t *testing.T) {
		g := kerneltest.New(t)
		set := g.Node("TextLineDataset", []string{kerneltest.Vector(g, a, b), kerneltest.Scalar(g, ""), kerneltest.Scalar[int64](g, 0)})
		kerneltest.WantValues(t, walk[string](t, g, set, exec.String), []string{"one", "two", "three"})
	})
	t.Run("fixed length", func(t *testing.T) {
		g := kerneltest.New(t)
		one := kerneltest.Scalar[int64](g, 1)
		set := g.Node("FixedLengthRecordDatasetV2", []string{kerneltest.Vector(g, c, d), one, kerneltest.Scalar[int64](g, 3), one, kerneltest.Scalar[int64](g, 0), kerneltest.Scalar(g, "")})
		kerneltest.WantValues(t, walk[string](t, g, set, exec.String), []string{"abc", "def", "ghi"})
	})
	t.Run("names", func(t *testing.T) {
		g := kerneltest.New(t)
		set := g.Node("MatchingFilesDataset", []string{kerneltest.Vector(g, filepath.Join(dir, "*.txt"))})
		kerneltest.WantValues(t, walk[string](t, g, set, exec.String), []string{a, b})
	})
}

// TestHostileFileDatasets reads files that are damaged, or end with surprises, as
// TensorFlow does; errors name the file.
func TestHostileFileDatasets(t *testing.T) {
	dir := t.TempDir()
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	z.Write([]byte(strings.Repeat("hello", 100)))
	z.Close()
	cut := packed.String()[:packed.Len()-8]
	for _, test := range []struct {
		name, op, content, compression string
		want                           []string
		code                           tfpb.Code
	}{
		{"returns inside lines", "TextLineDataset", "a\rb\r\r\n\rc\r\n\r", "", []string{"ab", "c"}, tfpb.Code_OK},
		{"no compressed data", "TextLineDataset", "", "GZIP", nil, tfpb.Code_OK},
		{"no gzip header", "TextLineDataset", "not compressed at all", "GZIP", nil, tfpb.Code_DATA_LOSS},
		{"cut zlib lines", "TextLineDataset", cut, "ZLIB", nil, tfpb.Code_DATA_LOSS},
		{"no zlib header of records", "TFRecordDataset", "not compressed at all", "ZLIB", nil, tfpb.Code_DATA_LOSS},
		{"shorter than header and footer", "FixedLengthRecordDatasetV2", "H", "", nil, tfpb.Code_INVALID_ARGUMENT},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := kerneltest.New(t)
			path := file(t, dir, strings.ReplaceAll(test.name, " ", "-"), test.content)
			in := []string{kerneltest.Vector(g, path), kerneltest.Scalar(g, test.compression), kerneltest.Scalar[int64](g, 0)}
			if strings.HasPrefix(test.op, "Fixed") {
				two := kerneltest.Scalar[int64](g, 2)
				in = []string{in[0], two, kerneltest.Scalar[int64](g, 7), two, in[2], in[1]}
			}
			set := g.Node(test.op, in)
			if test.code == tfpb.Code_OK {
				kerneltest.WantValues(t, walk[string](t, g, set, exec.String), test.want)
				return
			}
			_, err := g.Try([]string{g.Node("DatasetToSingleElement", []string{set}, "output_types", []tfpb.DataType{exec.String}, "output_shapes", anyShape)})
			if err == nil || kerneltest.Code(err) != test.code || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want %v and the name of the file", err, test.code)
			}
		})
	}
}

// TestIteratorFirst takes an element before anything has initialised the iterator.
func TestIteratorFirst(t *testing.T) {
	g := kerneltest.New(t)
	iterator := g.Node("IteratorV2", nil, "shared_name", "it", "container", "", "output_types", []tfpb.DataType{exec.Int64}, "output_shapes", anyShape)
	next := g.Node("IteratorGetNext", []string{iterator}, "output_types", []tfpb.DataType{exec.Int64}, "output_shapes", anyShape)
	if _, err := g.Try([]string{next}); err == nil || kerneltest.Code(err) != tfpb.Code_FAILED_PRECONDITION {
		t.Errorf("got %v, want FAILED_PRECONDITION", err)
	}
}

// TestSingleElement takes the only element of a data set, and refuses others.
func TestSingleElement(t *testing.T) {
	for n, fine := range map[int64]bool{0: false, 1: true, 2: false} {
		g := kerneltest.New(t)
		set := g.Node("RangeDataset", []string{kerneltest.Scalar[int64](g, 0), kerneltest.Scalar(g, n), kerneltest.Scalar[int64](g, 1)},
			"output_types", []tfpb.DataType{exec.Int64}, "output_shapes", anyShape)
		one := g.Node("DatasetToSingleElement", []string{set}, "output_types", []tfpb.DataType{exec.Int64}, "output_shapes", anyShape)
		if _, err := g.Try([]string{one}); (err == nil) != fine {
			t.Errorf("of %d elements: %v", n, err)
		}
	}
}
