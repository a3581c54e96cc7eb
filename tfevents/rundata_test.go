package tfevents

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// checkIndex holds the index of a run against what all of it in memory says.
func checkIndex(t *testing.T, fsys fs.FS, run Run) {
	t.Helper()
	for _, mode := range []Purge{PurgeExact, PurgePython, PurgeDataServer, KeepAll} {
		o := &RunOptions{Purge: mode}
		checkIndexed(t, ReadRun(fsys, run, o), readInMemory(fsys, run, o))
	}
}

func checkIndexed(t *testing.T, got *RunData, want *memoryRun) {
	t.Helper()
	mode := got.rule.mode
	if got.Events != want.Events || got.Purged != want.Purged || len(got.Series) != len(want.Series) {
		t.Fatalf("mode %d: index has %d events, %d purged, %d series; want %d, %d, %d", mode,
			got.Events, got.Purged, len(got.Series), want.Events, want.Purged, len(want.Series))
	}
	if diff := cmp.Diff(fmt.Sprint(want.Damage), fmt.Sprint(got.Damage)); diff != "" {
		t.Fatalf("mode %d: damage %s", mode, diff)
	}
	for i, s := range want.Series {
		checkSeriesIndex(t, got, got.Series[i], s)
	}
}

// checkSizes holds the sizes in an index against the values' encoding. It is for
// files of one writer: a value can also be encoded in other ways, shorter or
// longer.
func checkSizes(t *testing.T, fsys fs.FS, run Run) {
	t.Helper()
	got, want := ReadRun(fsys, run, nil), readInMemory(fsys, run, nil)
	for i, s := range want.Series {
		size := int64(0)
		for _, p := range s.Points {
			size += int64(proto.Size(p.Value))
		}
		if n := got.Series[i].Bytes(); n != size {
			t.Errorf("series %q: %d bytes, want %d", s.Tag, n, size)
		}
	}
}

func checkSeriesIndex(t *testing.T, x *RunData, got *Series, want *memorySeries) {
	t.Helper()
	if got.Tag != want.Tag || !proto.Equal(got.Metadata, want.Metadata) || got.Len() != len(want.Points) {
		t.Fatalf("mode %d: series %q of %d points, want %q of %d", x.rule.mode, got.Tag, got.Len(), want.Tag, len(want.Points))
	}
	i := 0
	got.points.each(func(c *cell) bool {
		p := got.point(c)
		w := want.Points[i]
		i++
		if p.Step != w.Step || math.Float64bits(p.WallTime) != math.Float64bits(w.WallTime) {
			t.Fatalf("mode %d: series %q: point at step %d, %v, want %d, %v", x.rule.mode, got.Tag, p.Step, p.WallTime, w.Step, w.WallTime)
		}
		v, err := x.Value(p)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(tfproto.Marshal(v), tfproto.Marshal(w.Value)) { // as bytes, for NaN is not equal to itself
			t.Fatalf("mode %d: series %q, step %d: value %v, want %v", x.rule.mode, got.Tag, p.Step, v, w.Value)
		}
		wantScalar, isScalar := decode.Scalar(w.Value)
		if scalar, ok := p.Scalar(); ok && (!isScalar || math.Float64bits(scalar) != math.Float64bits(wantScalar)) {
			t.Fatalf("mode %d: series %q, step %d: scalar %v, want %v, %v", x.rule.mode, got.Tag, p.Step, scalar, wantScalar, isScalar)
		}
		return true
	})
	if i != got.Len() {
		t.Fatalf("%d points, want %d", i, got.Len())
	}
}

func TestIndexOfFixtures(t *testing.T) {
	for _, name := range eventstest.EventsFiles(t) {
		dir, file := filepath.Split(name)
		checkIndex(t, os.DirFS(dir), Run{Files: []string{file}})
		checkSizes(t, os.DirFS(dir), Run{Files: []string{file}})
	}
}

// streams opens files that cannot seek, as compressed ones.
type streams struct{ fs.FS }

func (s streams) Open(name string) (fs.File, error) {
	f, err := s.FS.Open(name)
	return struct{ fs.File }{f}, err
}

// TestValuesOfStreams reads values of files that cannot seek, also backwards.
func TestValuesOfStreams(t *testing.T) {
	for _, name := range eventstest.EventsFiles(t) {
		dir, file := filepath.Split(name)
		fsys, run := os.DirFS(dir), Run{Files: []string{file}}
		d, want := ReadRun(streams{fsys}, run, nil), readInMemory(fsys, run, nil)
		checkIndexed(t, d, want)
		for _, s := range d.Series {
			points := slices.Collect(s.Points())
			slices.Reverse(points)
			i := len(points)
			for v, err := range d.Values(points) {
				i--
				if err != nil || !bytes.Equal(tfproto.Marshal(v), tfproto.Marshal(want.Lookup(s.Tag).Points[i].Value)) {
					t.Fatalf("%s: %q, point %d: %v, %v", name, s.Tag, i, v, err)
				}
			}
		}
	}
}

// TestValuesOfSeveralFiles reads values of two files in turn; damage is located in its file.
func TestValuesOfSeveralFiles(t *testing.T) {
	fsys, run := fstest.MapFS{}, Run{Files: []string{"a.tfevents", "b.tfevents"}}
	for _, name := range run.Files {
		var events []*tfpb.Event
		for step := range int64(3) {
			v := summary.Text("note", fmt.Sprint(name, step))
			events = append(events, &tfpb.Event{Step: step, What: &tfpb.Event_Summary{Summary: summary.New(v)}})
		}
		fsys[name] = eventsFile(t, events...)
	}
	for kind, fsys := range map[string]fs.FS{"files": fsys, "streams": streams{fsys}} {
		x := ReadRun(fsys, run, &RunOptions{Purge: KeepAll})
		all := slices.Collect(x.Lookup("note").Points())
		var got []string
		for v, err := range x.Values([]Point{all[0], all[3], all[1], all[4], all[5], all[2]}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(v.GetTensor().GetStringVal()[0]))
		}
		if want := []string{"a.tfevents0", "b.tfevents0", "a.tfevents1", "b.tfevents1", "b.tfevents2", "a.tfevents2"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
	x := ReadRun(fsys, run, &RunOptions{Purge: KeepAll})
	last := slices.Collect(x.Lookup("note").Points())[5]
	data := fsys["b.tfevents"].Data
	data[len(data)-1] ^= 1
	var damage *tfrecord.CorruptError
	if _, err := x.Value(last); !errors.As(err, &damage) || damage.Name != "b.tfevents" || damage.Offset != last.cell.offset {
		t.Errorf("of a damaged record: %v", err)
	}
}

// TestIndexOfRandomRuns indexes runs that were resumed at random steps.
func TestIndexOfRandomRuns(t *testing.T) {
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 0))
		fsys, run := fstest.MapFS{}, Run{}
		for i := range 1 + random.IntN(4) {
			name := fmt.Sprintf("%d.tfevents", i)
			fsys[name] = &fstest.MapFile{Data: randomSession(random)}
			run.Files = append(run.Files, name)
		}
		checkIndex(t, fsys, run)
		checkSizes(t, fsys, run)
	}
}

// randomSession returns a file of what a restarted training might write.
func randomSession(random *rand.Rand) (b []byte) {
	version := []string{fileVersion, fileVersion, "brain.Event:1"}[random.IntN(3)]
	b = appendEventRecord(b, &tfpb.Event{What: &tfpb.Event_FileVersion{FileVersion: version}})
	step := int64(random.IntN(30))
	if random.IntN(2) == 0 {
		start := startAt(step)
		start.WallTime = 1.7e9 + 40*random.Float64() // at times within the life of another file
		b = appendEventRecord(b, start)
	}
	for range random.IntN(60) {
		if random.IntN(5) > 0 {
			step++
		} else if random.IntN(4) == 0 {
			step = random.Int64N(40) - 3
		}
		if random.IntN(40) == 0 {
			b = appendEventRecord(b, graphAt(step))
			continue
		}
		s := new(tfpb.Summary)
		for range 1 + random.IntN(4)/2 {
			s.Value = append(s.Value, randomValue(random))
		}
		wall := 1.7e9 + float64(step) + random.Float64()
		if random.IntN(50) == 0 {
			wall = math.Inf(1)
		}
		b = appendEventRecord(b, &tfpb.Event{WallTime: wall, Step: step, What: &tfpb.Event_Summary{Summary: s}})
	}
	return b
}

func randomValue(random *rand.Rand) *tfpb.Summary_Value {
	tag := string(rune('a' + random.IntN(4)))
	x := random.NormFloat64()
	switch random.IntN(10) {
	case 0:
		return summary.Scalar(tag, x)
	case 1:
		v := summary.Scalar(tag, x)
		v.Metadata = nil
		return v
	case 2:
		return summary.Tensor(tag, &tfpb.TensorProto{Dtype: tfpb.DataType_DT_DOUBLE, DoubleVal: []float64{x}})
	case 3:
		return summary.Text(tag, "text")
	case 4:
		return imageV1(tag, 1, 1)
	case 5:
		return summary.PluginTensor("_hparams_/session_start_info", summary.PluginHParams, []byte("x"), nil)
	case 6: // metadata alone
		v := summary.Scalar(tag, x)
		v.Value = nil
		return v
	case 7:
		v := summaryv1.Scalar(tag, x)
		v.Metadata = &tfpb.SummaryMetadata{DataClass: tfpb.DataClass(random.IntN(4))}
		return v
	}
	return summaryv1.Scalar(tag, x)
}

// TestIndexValueOfChangedFile asks for values whose file has been replaced.
func TestIndexValueOfChangedFile(t *testing.T) {
	record := func(tag string) []byte {
		return appendEventRecord(nil, &tfpb.Event{Step: 1, What: &tfpb.Event_Summary{Summary: summary.New(summary.Text(tag, "text"))}})
	}
	for _, tc := range []struct {
		name string
		data []byte
		err  string
	}{
		{"another tag", record("b"), "index the run again"},
		{"no value", appendEventRecord(nil, startAt(1)), "index the run again"},
		{"empty", nil, "unexpected EOF"},
		{"damaged", []byte("no record at all"), "checksum"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fsys := fstest.MapFS{"tfevents": {Data: record("a")}}
			x := ReadRun(fsys, Run{Files: []string{"tfevents"}}, nil)
			fsys["tfevents"].Data = tc.data
			for p := range x.Lookup("a").Points() {
				if _, err := x.Value(p); err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error %v, want one with %q", err, tc.err)
				}
			}
		})
	}
}

func TestReadRuns(t *testing.T) {
	fsys, runs := fstest.MapFS{}, []Run(nil)
	for i := range 20 {
		name := fmt.Sprintf("run%02d/tfevents", i)
		fsys[name] = &fstest.MapFile{Data: scalarFile(10 + i)}
		runs = append(runs, Run{Name: fmt.Sprint(i), Files: []string{name}})
	}
	for i, x := range ReadRuns(fsys, runs, nil) {
		if x.Name != runs[i].Name || x.Lookup("loss").Len() != 10+i {
			t.Errorf("index %d is of run %s with %d points", i, x.Name, x.Lookup("loss").Len())
		}
	}
	if got := ReadRuns(fsys, nil, nil); len(got) != 0 {
		t.Errorf("%d indexes of no runs", len(got))
	}
}

// TestIndexIsSmall keeps the promise of a few bytes for each scalar.
func TestIndexIsSmall(t *testing.T) {
	const points = 100_000
	x := ReadRun(fstest.MapFS{"tfevents": {Data: scalarFile(points)}}, Run{Files: []string{"tfevents"}}, nil)
	size := 0
	for _, b := range x.Lookup("loss").points.blocks {
		size += cap(b.data)
	}
	if perPoint := float64(size) / points; perPoint > 10 {
		t.Errorf("a point takes %.1f bytes, want at most 10", perPoint)
	}
}

// TestScanUnderstands names what must not need the general decoder.
func TestScanUnderstands(t *testing.T) {
	histogram, err := summary.Histogram("h", []float64{1, 2}, 3)
	if err != nil {
		t.Fatal(err)
	}
	many := &tfpb.TensorProto{Dtype: tfpb.DataType_DT_DOUBLE, DoubleVal: []float64{1, 2}, TensorShape: eventstest.Shape(2)}
	for name, want := range map[string]struct {
		v    *tfpb.Summary_Value
		form byte
	}{
		"scalar":           {summaryv1.Scalar("loss", 1), formSimple},
		"scalar, long tag": {summaryv1.Scalar(strings.Repeat("long", 50), 1), formSimple},
		"scalar, no tag":   {summaryv1.Scalar("", 1), formNumber},
		"scalar V2":        {summary.Scalar("loss", 1), formNumber},
		"text":             {summary.Text("t", "text"), formOther},
		"histogram V2":     {histogram, formOther},
		"image":            {imageV1("i", 1, 0), formOther},
		"doubles":          {summary.Tensor("t", many), formOther},
		"described":        {summary.Describe(summary.Scalar("loss", 1), "name", "description"), formNumber},
	} {
		v := want.v
		var e eventScan
		b, err := proto.Marshal(&tfpb.Event{WallTime: 1, Step: 2, What: &tfpb.Event_Summary{Summary: summary.New(v)}})
		if err != nil {
			t.Fatal(err)
		}
		if !e.parse(b) {
			t.Errorf("%s: left to the general decoder", name)
		} else if got := e.values[0].form; got != want.form {
			t.Errorf("%s: kept in the form %d, want %d", name, got>>6, want.form>>6)
		}
	}
}

// FuzzEventScan holds what the scan understands of an event against the general
// decoder, and the index that both give.
func FuzzEventScan(f *testing.F) {
	for _, name := range eventstest.EventsFiles(f) {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for r := tfrecord.NewReader(bytes.NewReader(b)); ; {
			data, err := r.Next()
			if err != nil {
				break
			}
			if len(data) < 1000 {
				f.Add(bytes.Clone(data))
			}
		}
	}
	f.Add([]byte("\x09\x00\x00\x00\x00\x00\x00\x00\x00\x2a\x0b\x0a\x09\x0a\x02\xff\xff\x15\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var scan eventScan
		if scan.parse(data) {
			checkScan(t, data, &scan)
		}
		fsys := fstest.MapFS{"tfevents": {Data: tfrecord.Append(tfrecord.Append(nil, data), data)}}
		checkIndex(t, fsys, Run{Files: []string{"tfevents"}})
	})
}

func checkScan(t *testing.T, data []byte, scan *eventScan) {
	t.Helper()
	e := new(tfpb.Event)
	if err := proto.Unmarshal(data, e); err != nil {
		t.Fatalf("the scan accepts what the decoder does not: %v", err)
	}
	values := e.GetSummary().GetValue()
	if e.GetSummary() == nil || len(e.ProtoReflect().GetUnknown()) > 0 || len(values) != len(scan.values) ||
		e.GetStep() != scan.step || math.Float64bits(e.GetWallTime()) != math.Float64bits(scan.wallTime) {
		t.Fatalf("scan %+v of %v", scan, e)
	}
	for i, v := range values {
		if got := &scan.values[i]; string(got.tag) != v.GetTag() || !bytes.Equal(tfproto.Marshal(got.message()), tfproto.Marshal(v)) {
			t.Fatalf("scan %+v of %v", got, v)
		}
	}
}

func BenchmarkReadRun(b *testing.B) {
	const points = 10_000
	fsys := fstest.MapFS{"tfevents": {Data: scalarFile(points)}}
	b.SetBytes(int64(len(fsys["tfevents"].Data)))
	b.ReportAllocs()
	for b.Loop() {
		x := ReadRun(fsys, Run{Files: []string{"tfevents"}}, nil)
		if n := x.Lookup("loss").Len(); n != points {
			b.Fatalf("%d points", n)
		}
	}
}

// scalarFile returns the records of a tag.
func scalarFile(points int) (b []byte) {
	for step := range points {
		b = append(b, scalarRecord(1.7e9+float64(step), int64(step), "loss", 0.5)...)
	}
	return b
}

// imageV1 returns an image in the style of TensorFlow 1.
func imageV1(tag string, width, height int32) *tfpb.Summary_Value {
	return &tfpb.Summary_Value{Tag: tag, Value: &tfpb.Summary_Value_Image{Image: &tfpb.Summary_Image{
		Width: width, Height: height, Colorspace: 1, EncodedImageString: []byte("image"),
	}}}
}

// TestPointSize has points of a number and of a text: each takes what its value does.
func TestPointSize(t *testing.T) {
	values := []*tfpb.Summary_Value{
		{Tag: "number", Value: &tfpb.Summary_Value_SimpleValue{SimpleValue: 2}},
		{Tag: "text", Value: &tfpb.Summary_Value_Tensor{Tensor: &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, StringVal: [][]byte{make([]byte, 1000)}}}},
	}
	e := &tfpb.Event{WallTime: 1, Step: 1, What: &tfpb.Event_Summary{Summary: &tfpb.Summary{Value: values}}}
	fsys := fstest.MapFS{"1.tfevents": {Data: appendEventRecord(nil, e)}}
	x := ReadRun(fsys, Run{Files: []string{"1.tfevents"}}, nil)
	for _, v := range values {
		for p := range x.Lookup(v.Tag).Points() {
			if got, want := p.Size(), proto.Size(v); got != want {
				t.Errorf("the point of %s has %d bytes, want %d", v.Tag, got, want)
			}
		}
	}
}

// TestMetadataComeLate has a tag whose first values say nothing of the plugin, as when
// the value that did is damaged: what a later session says counts for all of them, but
// the data server asks the first one only.
func TestMetadataComeLate(t *testing.T) {
	events := modern(losses(1, 1, 6))
	for i, e := range events {
		if i < 3 || i > 4 {
			e.GetSummary().GetValue()[0].Metadata = nil
		}
	}
	fsys := fstest.MapFS{"e.tfevents": eventsFile(t, events...)}
	run := Run{Name: ".", Files: []string{"e.tfevents"}}
	for mode, want := range map[Purge]int{PurgeExact: 6, PurgePython: 6, PurgeDataServer: 0} {
		s := ReadRun(fsys, run, &RunOptions{Purge: mode}).Lookup("loss")
		if shown := s.Plugin() == summary.PluginScalars; shown != (want > 0) || s.Len() != want {
			t.Errorf("%v: plugin %q, %d points, want %d", mode, s.Plugin(), s.Len(), want)
		}
	}
}
