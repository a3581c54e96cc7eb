package tfevents

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// valueEvent makes an encoded event of step 2 from the bytes of a Summary.Value.
func valueEvent(value string) []byte {
	b := []byte("\x09\x00\x00\x00\x00\x00\x00\xf0\x3f\x10\x02\x2a")
	b = append(b, byte(len(value)+2), 0x0a, byte(len(value)))
	return append(b, value...)
}

// What the quick scan of an event does not know is left to the general decoder, and
// whatever it does accept means the same to both.
func TestScanLeavesWhatIsUnusual(t *testing.T) {
	const tag = "\x0a\x01a"
	deep := strings.Repeat("\x0a\x00", 1)
	for range 25 { // variants in variants
		deep = fmt.Sprintf("\x7a%c\x1a%c%s", len(deep)+2, len(deep), deep)
	}
	for name, c := range map[string]struct {
		event []byte
		ok    bool
	}{
		"scalar":                       {valueEvent(tag + "\x15\x00\x00\x80\x3f"), true},
		"step that does not end":       {[]byte("\x09\x00\x00\x00\x00\x00\x00\xf0\x3f\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x2a\x00"), false},
		"a field of a summary twice":   {append(valueEvent(tag), "\x2a\x00"...), false},
		"a summary with another field": {[]byte("\x2a\x03\x12\x01a"), false},
		"a value that is a number":     {[]byte("\x2a\x02\x08\x01"), false},
		"a group":                      {[]byte("\x2a\x02\x0b\x0c"), false},
		"a tag past the end":           {[]byte("\x2a\x04\x0a\x02\x0a\x05"), false},
		"a length without an end":      {[]byte("\x2a\x80"), false},
		"a large field number":         {[]byte("\xfa\xff\xff\x01\x00"), false},
		"fixed32 past the end":         {valueEvent(tag + "\x15\x00\x00"), false},
		"two values of one":            {valueEvent(tag + "\x15\x00\x00\x80\x3f\x42\x00"), false},
		"an unknown field of a value":  {valueEvent(tag + "\x7a\x00"), false},
		"a tag that is no text":        {valueEvent("\x0a\x01\xff\x15\x00\x00\x80\x3f"), false},
		"a scalar and its writer":      {append(valueEvent(tag+"\x15\x00\x00\x80\x3f"), "\x52\x00"...), false},
		"a tensor of one float":        {valueEvent(tag + "\x42\x08\x08\x01\x2a\x04\x00\x00\x80\x3f"), true},
		"a tensor of two floats":       {valueEvent(tag + "\x42\x0c\x08\x01\x2a\x08\x00\x00\x80\x3f\x00\x00\x80\x3f"), true},
		"a float in both places":       {valueEvent(tag + "\x42\x0e\x08\x01\x22\x04\x00\x00\x80\x3f\x2a\x04\x00\x00\x80\x3f"), true},
		"half a packed float":          {valueEvent(tag + "\x42\x05\x08\x01\x2a\x01\x00"), false},
		"half a packed double":         {valueEvent(tag + "\x42\x05\x08\x02\x32\x01\x00"), false},
		"half a packed integer":        {valueEvent(tag + "\x42\x05\x08\x03\x3a\x01\x80"), false},
		"packed integers":              {valueEvent(tag + "\x42\x06\x08\x03\x3a\x02\x01\x02"), true},
		"an unknown field of a tensor": {valueEvent(tag + "\x42\x04\x08\x01\xf8\x01\x00"), false},
		"variants within variants":     {valueEvent(tag + "\x42" + string(rune(len(deep))) + deep), false},
	} {
		var scan eventScan
		if got := scan.parse(c.event); got != c.ok {
			t.Errorf("%s: accepted %v, want %v", name, got, c.ok)
		} else if got {
			checkScan(t, c.event, &scan)
		}
		fsys := fstest.MapFS{"tfevents": {Data: tfrecord.Append(tfrecord.Append(nil, c.event), c.event)}}
		checkIndex(t, fsys, Run{Files: []string{"tfevents"}})
	}
}

// The first and the last point of a series, its times, and whether it was given a name.
func TestSeriesFirstLastAndTimes(t *testing.T) {
	named := summary.Describe(summary.Scalar("named", 1), "A name", "")
	events := append(losses(1, 3, 900), &tfpb.Event{Step: 5, WallTime: 7, What: &tfpb.Event_Summary{Summary: summary.New(named)}})
	x := ReadRun(fstest.MapFS{"tfevents": eventsFile(t, events...)}, Run{Files: []string{"tfevents"}}, nil)
	loss := x.Lookup("loss")
	first, last, ok := loss.FirstLast()
	if !ok || first.Step != 3 || last.Step != 900 {
		t.Errorf("from %d to %d, %v", first.Step, last.Step, ok)
	}
	if v, err := x.Value(first); err != nil || v.GetTag() != "loss" {
		t.Errorf("the first value is %v, %v", v, err)
	}
	i := 0
	points := slices.Collect(loss.Points())
	for step, at := range loss.Times() {
		if p := points[i]; p.Step != step || p.WallTime != at {
			t.Fatalf("time %d is %d, %v; the point has %d, %v", i, step, at, p.Step, p.WallTime)
		}
		i++
	}
	if i != 898 || loss.HasDisplayName() || !x.Lookup("named").HasDisplayName() {
		t.Errorf("%d times; named: %v, %v", i, loss.HasDisplayName(), x.Lookup("named").HasDisplayName())
	}
	if _, _, ok := new(Series).FirstLast(); ok {
		t.Error("a series without points has a first one")
	}
	sum := 0.0
	for p, number := range x.Scalars(loss) {
		if sum += number; p.Step == 5 {
			break
		}
	}
	if !loss.AllFloat32() || sum != 3 {
		t.Errorf("all float32: %v, sum of three values %v", loss.AllFloat32(), sum)
	}
	x.Thin() // which has no limit to keep
	if loss.Len() != 898 {
		t.Errorf("%d points are left", loss.Len())
	}
}

// An event at no time ends the reading of the data server, in its model; also if it is
// one more scalar of a series.
func TestNoTimeInTheMiddle(t *testing.T) {
	events := losses(1, 1, 9)
	events[4].WallTime = math.NaN()
	fsys := fstest.MapFS{"tfevents": eventsFile(t, events...)}
	x := ReadRun(fsys, Run{Files: []string{"tfevents"}}, &RunOptions{Purge: PurgeDataServer})
	if n := x.Lookup("loss").Len(); n != 4 || len(x.Damage) != 1 || !strings.Contains(x.Damage[0].Error(), "tfevents") {
		t.Errorf("%d points, %v", n, x.Damage)
	}
}

// A version that is NaN counts as none: the first START drops nothing.
func TestVersionThatIsNoNumber(t *testing.T) {
	for version, want := range map[string]float64{"brain.Event:2": 2, "brain.Event:x": 0, "": 0} {
		if got := parseVersion(version); got != want {
			t.Errorf("%q is version %v, want %v", version, got, want)
		}
	}
}

// brokenFS fails where the operations of a file or directory can.
type brokenFS struct {
	fs.FS
	stat, seek, readDir error
	readAt              bool
	opened              error
}

type brokenFile struct {
	fs.File
	of *brokenFS
}

func (b *brokenFS) Open(name string) (fs.File, error) {
	if b.opened != nil {
		return nil, b.opened
	}
	f, err := b.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return brokenFile{f, b}, nil
}

func (b *brokenFS) Stat(name string) (fs.FileInfo, error) { return fs.Stat(b.FS, name) }

func (b *brokenFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if b.readDir != nil {
		return nil, b.readDir
	}
	return fs.ReadDir(b.FS, name)
}

func (f brokenFile) Stat() (fs.FileInfo, error) {
	if f.of.stat != nil {
		return nil, f.of.stat
	}
	return f.File.Stat()
}

func (f brokenFile) Seek(offset int64, whence int) (int64, error) {
	if f.of.seek != nil {
		return 0, f.of.seek
	}
	return f.File.(io.Seeker).Seek(offset, whence)
}

func (f brokenFile) ReadAt(b []byte, offset int64) (int, error) {
	if f.of.readAt {
		return 0, fs.ErrInvalid
	}
	return f.File.(io.ReaderAt).ReadAt(b, offset)
}

// notes returns a file of texts, which an index leaves in it.
func notes(t *testing.T, n int) *fstest.MapFile {
	t.Helper()
	var events []*tfpb.Event
	for i := range n {
		events = append(events, &tfpb.Event{Step: int64(i + 1), WallTime: 1, What: &tfpb.Event_Summary{Summary: summary.New(summary.Text("note", fmt.Sprint("note ", i)))}})
	}
	return eventsFile(t, events...)
}

// A file that has no size, or cannot be moved in, is read as far as it can be, and what
// cannot be is damage of that file.
func TestIndexOfBrokenFiles(t *testing.T) {
	whole := eventsFile(t, losses(1, 1, 30)...)
	run := Run{Files: []string{"a.tfevents"}}
	broken := errors.New("broken")
	b := &brokenFS{FS: fstest.MapFS{"a.tfevents": notes(t, 30)}, stat: broken}
	x := ReadRun(b, run, nil)
	if n := x.Lookup("note").Len(); n != 30 || len(x.Damage) > 0 {
		t.Errorf("without a size: %d points, %v", n, x.Damage)
	}
	last := slices.Collect(x.Lookup("note").Points())[29]
	b.seek = broken
	if v, err := x.Value(last); !errors.Is(err, broken) {
		t.Errorf("the value of a file that cannot be moved in: %v, %v", v, err)
	}
	b.opened = broken
	if v, err := x.Value(last); !errors.Is(err, broken) {
		t.Errorf("the value of a file that cannot be opened: %v, %v", v, err)
	}

	// It grows, and then cannot be moved in, opened, or compared.
	grown := eventsFile(t, losses(1, 1, 40)...)
	grown.ModTime = whole.ModTime.Add(time.Second)
	for name, c := range map[string]struct {
		fault  func(*brokenFS)
		ok     bool
		points int
	}{
		"no fault":             {func(*brokenFS) {}, true, 40},
		"cannot be moved in":   {func(b *brokenFS) { b.seek = broken }, true, 30},
		"cannot be opened":     {func(b *brokenFS) { b.opened = broken }, true, 30},
		"cannot be read there": {func(b *brokenFS) { b.readAt = true }, false, 30},
	} {
		files := fstest.MapFS{"a.tfevents": whole}
		b := &brokenFS{FS: files}
		x := ReadRun(b, run, nil)
		files["a.tfevents"] = grown
		c.fault(b)
		changed, ok := x.Update(run.Files)
		if n := x.Lookup("loss").Len(); ok != c.ok || ok && !changed || n != c.points {
			t.Errorf("%s: Update = %v, %v; %d points", name, changed, ok, n)
		}
		if c.points == 30 && c.ok && (len(x.Damage) != 1 || !errors.Is(x.Damage[0], broken)) {
			t.Errorf("%s: damage %v", name, x.Damage)
		}
		if !c.ok {
			continue
		}
		if changed, ok := x.Update(run.Files); changed || !ok {
			t.Errorf("%s, still: Update = %v, %v", name, changed, ok)
		}
		b.seek, b.opened = nil, nil
		if changed, ok := x.Update(run.Files); changed != (c.points == 30) || !ok || x.Lookup("loss").Len() != 40 || len(x.Damage) > 0 {
			t.Errorf("%s, mended: Update = %v, %v; %d points, %v", name, changed, ok, x.Lookup("loss").Len(), x.Damage)
		}
	}
}

// A file that is not yet there when a run is read is read once it is; one that the model
// has given up is not read again.
func TestIndexOfFileThatComes(t *testing.T) {
	files := fstest.MapFS{}
	run := Run{Files: []string{"a.tfevents"}}
	x := ReadRun(files, run, nil)
	if len(x.Damage) != 1 || !errors.Is(x.Damage[0], fs.ErrNotExist) {
		t.Errorf("damage %v", x.Damage)
	}
	if changed, ok := x.Update(run.Files); changed || !ok {
		t.Errorf("before it comes: Update = %v, %v", changed, ok)
	}
	files["a.tfevents"] = eventsFile(t, losses(1, 1, 3)...)
	if changed, ok := x.Update(run.Files); !changed || !ok || x.Lookup("loss").Len() != 3 || len(x.Damage) > 0 {
		t.Errorf("once it is there: Update = %v, %v, %v", changed, ok, x.Damage)
	}

	flipped := eventsFile(t, losses(1, 1, 9)...)
	flipped.Data[len(flipped.Data)/2] ^= 1
	files["a.tfevents"] = flipped
	x = ReadRun(files, run, &RunOptions{Purge: PurgePython})
	before, damage := x.Lookup("loss").Len(), len(x.Damage)
	longer := *flipped
	longer.Data = append(slices.Clone(flipped.Data), eventsFile(t, losses(1, 10, 20)...).Data...)
	files["a.tfevents"] = &longer
	if _, ok := x.Update(run.Files); !ok || x.Lookup("loss").Len() != before || damage != 1 || len(x.Damage) != 1 {
		t.Errorf("after damage: %d points became %d, %v", before, x.Lookup("loss").Len(), x.Damage)
	}
}

// A stream that ends before a value that was in it says where the value was.
func TestValueOfShorterStream(t *testing.T) {
	files := fstest.MapFS{"a.tfevents": notes(t, 30)}
	x := ReadRun(streams{files}, Run{Files: []string{"a.tfevents"}}, nil)
	last := slices.Collect(x.Lookup("note").Points())[29]
	cut := *files["a.tfevents"]
	cut.Data = cut.Data[:len(cut.Data)/2+7]
	files["a.tfevents"] = &cut
	if v, err := x.Value(last); !isTorn(err) || !strings.Contains(err.Error(), "a.tfevents") {
		t.Errorf("%v, %v", v, err)
	}
}

// Directories that cannot be listed are named; the runs elsewhere are found.
func TestFindRunsInUnreadable(t *testing.T) {
	broken := errors.New("broken")
	b := &brokenFS{FS: fstest.MapFS{"run/tfevents": {}}, readDir: broken}
	if runs, err := FindRuns(b, "."); len(runs) > 0 || !errors.Is(err, broken) {
		t.Errorf("%v, %v", runs, err)
	}
}

// A follower whose loop ends at an error, or at the first event, has ended.
func TestFollowEndsWhereTheLoopDoes(t *testing.T) {
	broken := errors.New("broken")
	dir := t.TempDir()
	for _, readDir := range []error{broken, nil} {
		for backlog := range 2 {
			b := &brokenFS{FS: os.DirFS(dir), readDir: readDir}
			for e, err := range Follow(t.Context(), b, ".", &FollowOptions{Poll: time.Millisecond, Backlog: backlog}) {
				if readDir != nil && !errors.Is(err, broken) || readDir == nil && (err != nil || e.GetStep() != int64(backlog)) {
					t.Errorf("%v, %v", e, err)
				}
				break
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "tfevents"), eventsFile(t, losses(1, 1, 1)...).Data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// lateFS has a file from the second look at its directory on.
type lateFS struct {
	fstest.MapFS
	file  *fstest.MapFile
	looks int
}

func (l *lateFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if l.looks++; l.looks == 2 {
		l.MapFS["tfevents"] = l.file
	}
	return l.MapFS.ReadDir(name)
}

func TestFollowEndsLater(t *testing.T) {
	late := &lateFS{MapFS: fstest.MapFS{}, file: eventsFile(t, losses(1, 1, 2)...)}
	for e, err := range Follow(t.Context(), late, ".", &FollowOptions{Poll: time.Millisecond}) {
		if err != nil || e.GetFileVersion() == "" {
			t.Errorf("%v, %v", e, err)
		}
		break
	}
	if late.looks != 2 {
		t.Errorf("it ended after %d rounds", late.looks)
	}
}

// A stream that has grown is read on from where it was.
func TestUpdateOfStream(t *testing.T) {
	files := fstest.MapFS{"a.tfevents": eventsFile(t, losses(1, 1, 3)...)}
	run := Run{Files: []string{"a.tfevents"}}
	x := ReadRun(streams{files}, run, nil)
	files["a.tfevents"] = eventsFile(t, losses(1, 1, 5)...)
	if changed, ok := x.Update(run.Files); !changed || !ok || x.Lookup("loss").Len() != 5 || len(x.Damage) > 0 {
		t.Errorf("Update = %v, %v; %d points, %v", changed, ok, x.Lookup("loss").Len(), x.Damage)
	}
}

func TestDirFSOfMissingFile(t *testing.T) {
	if f, err := DirFS(t.TempDir()).Open("none"); f != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, %v", f, err)
	}
}

// Graphs belong to the run as a whole and are all in a merged file; run metadata that has
// the tag of a curve is one of its points, and dropped with them.
func TestMergeKeepsGraphs(t *testing.T) {
	profile := &tfpb.Event{Step: 3, WallTime: 1, What: &tfpb.Event_TaggedRunMetadata{TaggedRunMetadata: &tfpb.TaggedRunMetadata{Tag: "loss"}}}
	run := Run{Files: []string{"a.tfevents", "b.tfevents"}}
	fsys := fstest.MapFS{
		"a.tfevents": eventsFile(t, append(append([]*tfpb.Event{graphAt(0)}, losses(1, 1, 3)...), profile)...),
		"b.tfevents": eventsFile(t, append([]*tfpb.Event{startAt(2), graphAt(2)}, losses(2, 2, 4)...)...),
	}
	var merged bytes.Buffer
	report, err := MergeRun(&merged, fsys, run, nil)
	if err != nil {
		t.Fatal(err)
	}
	graphs, profiles := 0, 0
	for _, e := range eventstest.Events(t, merged.Bytes()) {
		if e.GetGraphDef() != nil {
			graphs++
		}
		if e.GetTaggedRunMetadata() != nil {
			profiles++
		}
	}
	if graphs != 2 || profiles != 0 || report.Purged != 3 {
		t.Errorf("%d graphs, %d profiles, %d purged", graphs, profiles, report.Purged)
	}
	m := merger{data: ReadRun(fsys, run, nil), kept: make(map[keptKey]*keptPoints)}
	defer m.stop()
	if m.keeps("none", place{}, 0) {
		t.Error("a value of no series is kept")
	}
}

// What is shaped as a list of blobs, and what is not.
func TestBlobShapes(t *testing.T) {
	if isBlobShape(summary.PluginAudio, &tfpb.TensorProto{TensorShape: &tfpb.TensorShapeProto{Dim: make([]*tfpb.TensorShapeProto_Dim, 3)}}) {
		t.Error("a tensor of rank 3 is a list of blobs")
	}
}
