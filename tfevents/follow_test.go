package tfevents

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// collector follows a directory in the background.
type collector struct {
	steps  []int64
	damage int
	err    error
}

func (c *collector) take(e *tfpb.Event, err error) {
	var damage *tfrecord.CorruptError
	switch {
	case errors.As(err, &damage):
		c.damage++
	case err != nil:
		c.err = err
	case e.GetSummary() != nil:
		c.steps = append(c.steps, e.GetStep())
	}
}

// followDir follows dir below a bubble's clock. The returned function waits for
// the next poll and returns what has been seen so far.
func followDir(t *testing.T, dir string, o *FollowOptions) func() *collector {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := new(collector)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e, err := range Follow(ctx, os.DirFS(filepath.Dir(dir)), filepath.Base(dir), o) {
			c.take(e, err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return func() *collector {
		time.Sleep(DefaultPoll)
		synctest.Wait()
		return c
	}
}

func appendTo(t *testing.T, name string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func scalarAt(step int64) []byte {
	return scalarRecord(1, step, "loss", 1)
}

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "run") // does not exist yet
		next := followDir(t, dir, nil)
		check := func(when string, want ...int64) {
			t.Helper()
			if c := next(); !slices.Equal(c.steps, want) || c.err != nil {
				t.Errorf("%s: steps %v, error %v; want %v", when, c.steps, c.err, want)
			}
		}
		check("before there is a directory")
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		first, second := filepath.Join(dir, "events.out.tfevents.1.h"), filepath.Join(dir, "events.out.tfevents.2.h")
		appendTo(t, first, scalarAt(1))
		check("first file", 1)
		record := scalarAt(2)
		appendTo(t, first, record[:20])
		check("half a record", 1)
		if c := next(); c.damage != 0 {
			t.Errorf("half a record is taken for damage")
		}
		if err := os.Mkdir(filepath.Join(dir, "tfevents.old"), 0o777); err != nil {
			t.Fatal(err)
		}
		appendTo(t, filepath.Join(dir, "notes.txt"), []byte("no events, but more than twelve bytes"))
		appendTo(t, first, record[20:])
		check("the other half", 1, 2)
		appendTo(t, second, scalarAt(3))
		check("second file", 1, 2, 3)
		appendTo(t, first, scalarAt(4))
		check("first file again", 1, 2, 3, 4)
		broken := scalarAt(5)
		broken[len(broken)-1] ^= 1
		appendTo(t, second, append(broken, scalarAt(6)...))
		check("behind damage", 1, 2, 3, 4, 6)
		if c := next(); c.damage != 1 {
			t.Errorf("damage was reported %d times, want once", c.damage)
		}
		unframed := scalarAt(7)
		unframed[8] ^= 1
		appendTo(t, second, append(unframed, scalarAt(8)...))
		check("behind a record without a length", 1, 2, 3, 4, 6, 8)
		appendTo(t, filepath.Join(dir, "events.out.tfevents.0.h"), scalarAt(9))
		appendTo(t, first, scalarAt(10))
		check("in a file that comes before", 1, 2, 3, 4, 6, 8, 9, 10)
	})
}

func TestFollowBacklog(t *testing.T) {
	for _, tc := range []struct {
		backlog int
		want    []int64
	}{{0, []int64{1, 2, 3, 4}}, {2, []int64{2, 3, 4}}, {9, []int64{1, 2, 3, 4}}, {-1, []int64{4}}} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			name := filepath.Join(dir, "events.out.tfevents.1.h")
			appendTo(t, name, slices.Concat(scalarAt(1), scalarAt(2), scalarAt(3)))
			next := followDir(t, dir, &FollowOptions{Backlog: tc.backlog})
			next()
			appendTo(t, name, scalarAt(4))
			if c := next(); !slices.Equal(c.steps, tc.want) {
				t.Errorf("backlog %d: steps %v, want %v", tc.backlog, c.steps, tc.want)
			}
		})
	}
}

func TestFollowStopsWhenTheLoopDoes(t *testing.T) {
	dir := t.TempDir()
	appendTo(t, filepath.Join(dir, "tfevents"), slices.Concat(scalarAt(1), scalarAt(2)))
	n := 0
	for _, err := range Follow(t.Context(), os.DirFS(dir), ".", nil) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		break
	}
	if n != 1 {
		t.Errorf("loop ran %d times", n)
	}
}

// gone is a file system whose listing names a file that was removed meanwhile.
type gone struct{ fs.FS }

func (g gone) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(g.FS, name)
	return append([]fs.DirEntry{removed{}}, entries...), err
}

type removed struct{ fs.DirEntry }

func (removed) Name() string      { return "events.out.tfevents.0.h" }
func (removed) Type() fs.FileMode { return 0 }

// TestFollowFileThatIsRemoved: a file that is removed between two looks is not an error,
// and keeps no other from being read.
func TestFollowFileThatIsRemoved(t *testing.T) {
	fsys := gone{fstest.MapFS{"events.out.tfevents.1.h": &fstest.MapFile{Data: scalarAt(1)}}}
	for e, err := range Follow(t.Context(), fsys, ".", nil) {
		if err != nil || e.GetStep() != 1 {
			t.Errorf("got %v, %v; want step 1", e, err)
		}
		break
	}
}

// TestFollowUnreadableFile: a file that cannot be opened is named, and the others
// are read.
func TestFollowUnreadableFile(t *testing.T) {
	files := fstest.MapFS{}
	for step, name := range []string{"0.tfevents", "1.tfevents", "2.tfevents"} {
		files[name] = &fstest.MapFile{Data: scalarAt(int64(step))}
	}
	var steps []int64
	failed := 0
	for e, err := range Follow(t.Context(), failingFS{files, "1.tfevents", -1}, ".", nil) {
		if err != nil {
			if failed++; !errors.Is(err, syscall.EMFILE) || !strings.Contains(err.Error(), "1.tfevents") {
				t.Error(err)
			}
			continue
		}
		if steps = append(steps, e.GetStep()); len(steps) == 2 {
			break
		}
	}
	if !slices.Equal(steps, []int64{0, 2}) || failed != 1 {
		t.Errorf("steps %v, %d errors; want 0 and 2, and one", steps, failed)
	}
}

// TestFollowBacklogEnds: a loop ends within what was there before.
func TestFollowBacklogEnds(t *testing.T) {
	fsys := fstest.MapFS{"tfevents": &fstest.MapFile{Data: slices.Concat(scalarAt(1), scalarAt(2), scalarAt(3))}}
	n := 0
	for range Follow(t.Context(), fsys, ".", &FollowOptions{Backlog: 2}) {
		n++
		break
	}
	if n != 1 {
		t.Errorf("the loop ran %d times", n)
	}
}

// TestFollowEndsWithContext: a context that ends within a file ends the loop there.
func TestFollowEndsWithContext(t *testing.T) {
	fsys := fstest.MapFS{"tfevents": &fstest.MapFile{Data: slices.Concat(scalarAt(1), scalarAt(2), scalarAt(3))}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var steps []int64
	for e, err := range Follow(ctx, fsys, ".", nil) {
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, e.GetStep())
		cancel()
	}
	if !slices.Equal(steps, []int64{1}) {
		t.Errorf("steps %v, want 1 alone", steps)
	}
}
