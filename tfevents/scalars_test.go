package tfevents

import (
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
)

// mixed returns a curve whose values are of four types, one of them no number.
func mixed(last int64) (events []*tfpb.Event) {
	for step := int64(1); step <= last; step++ {
		v := summaryv1.Scalar("loss", float64(step))
		switch step % 4 {
		case 1:
			v = tensorValue(tfpb.DataType_DT_DOUBLE, &tfpb.TensorProto{DoubleVal: []float64{float64(step) + 0.1}})
		case 2:
			v = tensorValue(tfpb.DataType_DT_STRING, &tfpb.TensorProto{StringVal: [][]byte{[]byte("text")}})
		case 3:
			v = tensorValue(tfpb.DataType_DT_INT64, &tfpb.TensorProto{Int64Val: []int64{1<<53 - step}})
		}
		events = append(events, &tfpb.Event{WallTime: float64(step), Step: step, What: &tfpb.Event_Summary{Summary: summary.New(v)}})
	}
	return events
}

func tensorValue(of tfpb.DataType, x *tfpb.TensorProto) *tfpb.Summary_Value {
	x.Dtype, x.TensorShape = of, &tfpb.TensorShapeProto{}
	return &tfpb.Summary_Value{Tag: "loss", Value: &tfpb.Summary_Value_Tensor{Tensor: x}}
}

// TestScalars walks a curve of numbers of several types, which a file has lost in part.
func TestScalars(t *testing.T) {
	fsys := fstest.MapFS{"1.tfevents": eventsFile(t, mixed(5)...), "2.tfevents": eventsFile(t, losses(9, 6, 7)...)}
	x := ReadRun(fsys, Run{Files: []string{"1.tfevents", "2.tfevents"}}, nil)
	walk := func(most int) (got string) {
		for p, number := range x.Scalars(x.Lookup("loss")) {
			got += fmt.Sprintf("%d:%v ", p.Step, number)
			if most--; most == 0 {
				break
			}
		}
		return got
	}
	if got, want := walk(-1), "1:1.1 3:9.007199254740989e+15 4:4 5:5.1 6:9 7:9 "; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got, want := walk(2), "1:1.1 3:9.007199254740989e+15 "; got != want {
		t.Errorf("a loop that ends early got %q, want %q", got, want)
	}
	delete(fsys, "1.tfevents") // after it was indexed
	if got, want := walk(-1), "4:4 6:9 7:9 "; got != want {
		t.Errorf("with a file that is gone: got %q, want %q", got, want)
	}
}

// countedFS counts the files that are open.
type countedFS struct {
	fs.FS
	open int
}

func (c *countedFS) Open(name string) (fs.File, error) {
	f, err := c.FS.Open(name)
	if err != nil {
		return nil, err
	}
	c.open++
	return &countedFSFile{f, c}, nil
}

type countedFSFile struct {
	fs.File
	of *countedFS
}

func (f *countedFSFile) Close() error { f.of.open--; return f.File.Close() }

// TestValuesCloseTheirFiles: also where a loop ends early. A value that the index holds needs
// no file.
func TestValuesCloseTheirFiles(t *testing.T) {
	fsys := &countedFS{FS: fstest.MapFS{"1.tfevents": eventsFile(t, mixed(5)...), "2.tfevents": eventsFile(t, losses(9, 6, 7)...)}}
	x := ReadRun(fsys, Run{Files: []string{"1.tfevents", "2.tfevents"}}, nil)
	check := func(what string) {
		t.Helper()
		if fsys.open != 0 {
			t.Fatalf("%s leaves %d files open", what, fsys.open)
		}
	}
	check("ReadRun")
	s := x.Lookup("loss")
	first, _, _ := s.FirstLast()
	if _, err := x.Value(first); err != nil {
		t.Fatal(err)
	}
	check("Value")
	for range x.Scalars(s) {
		break
	}
	check("Scalars")
	points := s.unheld()
	for range x.Values(points) {
		break
	}
	check("Values")
	y := ReadRun(fsys, Run{Files: []string{"2.tfevents"}}, nil)
	fsys.FS = fstest.MapFS{}
	p, _, _ := y.Lookup("loss").FirstLast()
	if v, err := y.Value(p); err != nil || v.GetSimpleValue() != 9 {
		t.Errorf("%v, %v", v, err)
	}
}
