package tfevents

import (
	"fmt"
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"
)

// TestCopies has backups of a file next to it: they are no writers of their own, and take no point away.
func TestCopies(t *testing.T) {
	whole := eventsFile(t, begunAt(1, secs(2, 3, 4, 5, 6)...)...).Data
	half := eventsFile(t, begunAt(1, secs(2, 3, 4)...)...).Data
	torn := whole[:len(half)+9]
	other := eventsFile(t, begunAt(1, secs(2, 3, 4, 7)...)...).Data
	resumed := eventsFile(t, begunAt(9, from(10, losses(9, 50, 51)...)...)...).Data
	damaged := slices.Clone(whole)
	damaged[len(half)-3] ^= 1
	for name, tc := range map[string]struct {
		files [][]byte
		want  string
	}{
		"an equal one":              {[][]byte{whole, whole, whole}, "[20 30 40 50 60]"},
		"an older one":              {[][]byte{whole, half}, "[20 30 40 50 60]"},
		"an older one before":       {[][]byte{half, whole}, "[20 30 40 50 60]"},
		"a torn one":                {[][]byte{whole, torn}, "[20 30 40 50 60]"},
		"a torn one before":         {[][]byte{torn, whole}, "[20 30 40 50 60]"},
		"all of these":              {[][]byte{half, torn, whole, half, torn, whole}, "[20 30 40 50 60]"},
		"of one that was resumed":   {[][]byte{whole, half, resumed}, "[20 30 40 50 51]"},
		"next to one with a hole":   {[][]byte{damaged, whole}, "[20 20 30 30 40 50 50 60 60]"},
		"that was changed later on": {[][]byte{whole, other}, "[20 20 30 30 40 40 50 60 70]"},
	} {
		t.Run(name, func(t *testing.T) {
			fsys, run := fstest.MapFS{}, Run{Name: "."}
			for i, b := range tc.files {
				file := fmt.Sprintf("events.out.tfevents.%010d.h", i)
				fsys[file] = &fstest.MapFile{Data: b}
				run.Files = append(run.Files, file)
			}
			for what, fsys := range map[string]fs.FS{"files": fsys, "pipes": onlyReads{fsys}} {
				checkOrder(t, what, ReadRun(fsys, run, nil).Lookup("loss"), tc.want)
			}
			all := ReadRun(fsys, run, &RunOptions{Purge: KeepAll}).Lookup("loss")
			if records := len(all.points.parts); records != len(tc.files) {
				t.Errorf("with KeepAll there are points of %d files", records)
			}
		})
	}
}

// onlyReads has files that can be read from their beginnings only, as those that are compressed.
type onlyReads struct{ fstest.MapFS }

func (f onlyReads) Open(name string) (fs.File, error) {
	file, err := f.MapFS.Open(name)
	return struct{ fs.File }{file}, err
}

// TestCopyThatGrows has a backup that is being made, or that becomes a file of its own.
func TestCopyThatGrows(t *testing.T) {
	whole := eventsFile(t, begunAt(1, secs(2, 3, 4)...)...).Data
	fsys, run := fstest.MapFS{"1.tfevents": {Data: whole}, "2.tfevents": {Data: whole[:100]}}, Run{Files: []string{"1.tfevents", "2.tfevents"}}
	x := ReadRun(fsys, run, nil)
	if changed, ok := x.Update(run.Files); changed || !ok {
		t.Errorf("Update = %v, %v without a change", changed, ok)
	}
	fsys["2.tfevents"] = &fstest.MapFile{Data: append(whole[:len(whole):len(whole)], scalarAt(5)...)}
	if changed, ok := x.Update(run.Files); ok {
		t.Errorf("Update = %v, %v of a copy that has grown, want the run indexed again", changed, ok)
	}
	if s := ReadRun(fsys, run, nil).Lookup("loss"); s.Len() != 4 {
		t.Errorf("%d points of loss, want those of the one and what the copy has more", s.Len())
	}
}

// failsOnceFS cannot open a file once, at the given time.
type failsOnceFS struct {
	fs.FS
	left int
}

func (f *failsOnceFS) Open(name string) (fs.File, error) {
	if f.left--; f.left == -1 {
		return nil, fs.ErrPermission
	}
	return f.FS.Open(name)
}

// TestCopiesThatCannotBeCompared: a file that fails to be opened once more counts as one of its own. So does
// one that is another only after the beginning.
func TestCopiesThatCannotBeCompared(t *testing.T) {
	var seconds []float64
	for s := range 3000 { // more than is compared at a time
		seconds = append(seconds, float64(2+s))
	}
	whole := eventsFile(t, begunAt(1, secs(seconds...)...)...).Data
	other := eventsFile(t, begunAt(1, secs(append(seconds[:2995:2995], 5000)...)...)...).Data
	fsys, run := fstest.MapFS{"0": {Data: whole[:len(whole)-7]}, "1": {Data: whole}, "2": {Data: whole}, "3": {Data: other}}, Run{Files: []string{"1", "2"}}
	for _, fsys := range []fs.FS{fsys, onlyReads{fsys}} {
		if s := ReadRun(fsys, run, nil).Lookup("loss"); s.Len() != 3000 {
			t.Errorf("%d points of a file and its copy", s.Len())
		}
		twice := 0
		for n := range 8 {
			s := ReadRun(&failsOnceFS{fsys, n}, run, nil).Lookup("loss")
			if s.Len() != 3000 && s.Len() != 6000 {
				t.Errorf("failure %d: %d points", n, s.Len())
			}
			twice += s.Len() / 6000
		}
		if twice == 0 {
			t.Error("no failure has kept the files from being compared")
		}
		if s := ReadRun(fsys, Run{Files: []string{"0", "1"}}, nil).Lookup("loss"); s.Len() != 3000 {
			t.Errorf("%d points of a file and an unfinished copy of it", s.Len())
		}
		if s := ReadRun(fsys, Run{Files: []string{"1", "3"}}, nil).Lookup("loss"); s.Len() != 5996 {
			t.Errorf("%d points of two files with the same beginning", s.Len())
		}
	}
}

// TestRepeats: a point that has the step of another writer's point does not repeat it.
func TestRepeats(t *testing.T) {
	one := begunAt(1, slices.Concat(secs(2), from(3, losses(1, 20, 20)...), from(6, losses(1, 60, 60)...))...)
	other := begunAt(1, slices.Concat(from(4, losses(1, 20, 20)...), from(7, losses(1, 60, 60)...))...)
	fsys := fstest.MapFS{"1": eventsFile(t, one...), "2": eventsFile(t, other...)}
	for want, files := range map[string][]string{"[false true false]": {"1"}, "[false true false false false]": {"1", "2"}} {
		var got []bool
		var before Point
		for p := range ReadRun(fsys, Run{Files: files}, nil).Lookup("loss").Points() {
			got = append(got, len(got) > 0 && p.Replaces(before))
			before = p
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%v: %v, want %s", files, got, want)
		}
	}
}
