package graphrun

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/graph"
)

// placeholders writes a graph of placeholders and returns it.
func placeholders(t *testing.T) *graphFile {
	t.Helper()
	b := graph.NewBuilder()
	float, unknown := tfpb.DataType_DT_FLOAT, graph.UnknownShape
	b.Placeholder("flat", float, graph.MakeShape(-1, 4))
	b.Placeholder("image", float, graph.MakeShape(-1, 2, 2, 1))
	b.Placeholder("free", tfpb.DataType_DT_DOUBLE, graph.MakeShape(-1, -1, 2))
	b.Placeholder("any", tfpb.DataType_DT_INT32, unknown)
	b.Placeholder("class", tfpb.DataType_DT_INT32, graph.MakeShape(-1))
	b.Placeholder("column", tfpb.DataType_DT_INT64, graph.MakeShape(-1, 1))
	b.Placeholder("classes", float, graph.MakeShape(-1, 3))
	b.Placeholder("rate", float, graph.Shape{})
	b.Placeholder("two", tfpb.DataType_DT_INT64, graph.MakeShape(2))
	b.Placeholder("flag", tfpb.DataType_DT_BOOL, graph.Shape{})
	b.Placeholder("text", tfpb.DataType_DT_STRING, graph.MakeShape(-1))
	b.Placeholder("fixed", float, graph.MakeShape(5, 4))
	meta, err := b.MetaGraph()
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.Parse(meta)
	if err != nil {
		t.Fatal(err)
	}
	return &graphFile{Graph: g, name: "g.meta", placeholders: g.Placeholders()}
}

// fourFeatures is data of four features and three classes.
func fourFeatures(t *testing.T) *dataset.Dataset {
	t.Helper()
	text := "a,b,c,d,class\n1,2,3,4,0\n5,6,7,8,2\n"
	d, err := dataset.Read(t.Context(), strings.NewReader(text), "data.csv", dataset.Options{Header: true, Label: dataset.Column{Index: -1}, Classes: 3, BatchSize: 2})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestBind(t *testing.T) {
	g, data := placeholders(t), fourFeatures(t)
	// Two floats of 1.5 and 2, as numpy writes them.
	header := "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
	npy := append([]byte("\x93NUMPY\x01\x00"), binary.LittleEndian.AppendUint16(nil, uint16(len(header)))...)
	npy = append(append(npy, header...), "\x00\x00\xc0\x3f\x00\x00\x00\x40"...)
	file := filepath.Join(t.TempDir(), "x.npy")
	if err := os.WriteFile(file, npy, 0o666); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		value any
		want  string // type, shape and elements
		err   string
	}{
		{"flat", "features", "float32 [2,4] [[1,2,3,4],[5,6,7,8]]", ""},
		{"image", "features", "float32 [2,2,2,1] [[[[1],[2]],[[3],[4]]],[[[5],[6]],[[7],[8]]]]", ""},
		{"free", "features", "float64 [2,2,2] [[[1,2],[3,4]],[[5,6],[7,8]]]", ""},
		{"any", "features", "int32 [2,4] [[1,2,3,4],[5,6,7,8]]", ""},
		{"any", "label", "int32 [2] [0,2]", ""},
		{"class", "label", "int32 [2] [0,2]", ""},
		{"column:0", "label", "int64 [2,1] [[0],[2]]", ""},
		{"classes", "one_hot", "float32 [2,3] [[1,0,0],[0,0,1]]", ""},
		{"column", "column:c", "int64 [2,1] [[3],[7]]", ""},
		{"rate", 0.5, "0.5", ""},
		{"rate", int64(2), "2", ""},
		{"two", []any{int64(3), int64(4)}, "int64 [2] [3,4]", ""},
		{"flag", true, "true", ""},
		{"flat", "column:e", "", `the data have no column "e"; the columns are a, b, c, d`},
		{"flat", "label", "", "examples of 1 numbers cannot be fed to the placeholder flat:0, which takes float32 [?,4]"},
		{"classes", "features", "", "examples of 4 numbers cannot be fed to the placeholder classes:0"},
		{"rate", "features", "", "batches of 2 cannot be fed to the placeholder rate:0, which takes float32 []"},
		{"fixed", "features", "", "batches of 2 cannot be fed to the placeholder fixed:0"},
		{"text", "label", "", "the data are numbers, the placeholder text:0 takes string [?]"},
		{"two", []any{int64(3)}, "", "the value is int64 [1], the placeholder two:0 takes int64 [2]"},
		{"two", []any{1.5, int64(2)}, "", "1.5 cannot be fed to the placeholder two:0, which takes int64 [2]"},
		{"class", 3e9, "", "cannot be fed to the placeholder class:0"},
		{"rate", true, "", "true cannot be fed to the placeholder rate:0"},
		{"rate", "npy:" + file, "", "the value is float32 [2], the placeholder rate:0 takes float32 []"},
		{"rate", "npy:none.npy", "", "none.npy: no such file or directory"},
		{"rate", "nothing", "", `there is no input "nothing"; want "features", "label", "weight", "one_hot", "column:NAME", "npy:FILE" or a number`},
		{"flat", "weight", "", "the data have no weights; set data.weight or data.class_weights"},
		{"falt", "features", "", "falt: g.meta has no node falt; did you mean flat?"},
	}
	x, y, err := data.Batch(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range tests {
		b, err := g.bind(c.name, c.value, &config.Config{}, data)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s = %v: got %v, want %s", c.name, c.value, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s = %v: %v", c.name, c.value, err)
			continue
		}
		value := b.Fixed
		if b.Make != nil {
			if value, err = b.Make(program.Batch{Features: x, Label: y}); err != nil {
				t.Errorf("%s = %v: %v", c.name, c.value, err)
				continue
			}
		}
		if got, err := DescribeValue(value); err != nil || got != c.want {
			t.Errorf("%s = %v: got %s (%v), want %s", c.name, c.value, got, err, c.want)
		}
	}
	if _, err := g.bind("flat", "features", &config.Config{}, nil); err == nil || err.Error() != `"features" needs data, but data.file is not set` {
		t.Errorf("without data: %v", err)
	}
}

// TestBindFractions checks that data which an integer placeholder cannot take
// are an error, not rounded.
func TestBindFractions(t *testing.T) {
	d, err := dataset.Read(t.Context(), strings.NewReader("0,1.5\n1,2\n"), "data.csv", dataset.Options{BatchSize: 2})
	if err != nil {
		t.Fatal(err)
	}
	b, err := placeholders(t).bind("any", "features", &config.Config{}, d)
	if err != nil {
		t.Fatal(err)
	}
	x, y, _ := d.Batch(0)
	if _, err := b.Make(program.Batch{Features: x, Label: y}); err == nil || !strings.Contains(err.Error(), "any:0: 1.5 is not a whole number that int32 holds") {
		t.Errorf("got %v", err)
	}
}
