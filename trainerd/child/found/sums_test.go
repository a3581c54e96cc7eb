//go:build unix

package found

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// saveArchive writes an archive of that many bytes, whose entry has a checksum or none.
func saveArchive(t *testing.T, name string, size int, fill byte, sums bool) {
	t.Helper()
	empty := archiveOf(t, 0, fill, sums)
	childtest.Write(t, name, archiveOf(t, size-len(empty), fill, sums))
}

// archiveOf returns an archive with an entry of that many bytes.
func archiveOf(t *testing.T, size int, fill byte, sums bool) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	h := &zip.FileHeader{Name: "archive/data/0", Method: zip.Store, UncompressedSize64: uint64(size), CompressedSize64: uint64(size)}
	create := w.CreateHeader
	if !sums {
		create = w.CreateRaw
	}
	e, err := create(h)
	if err == nil {
		_, err = e.Write(bytes.Repeat([]byte{fill}, size))
	}
	childtest.Must(t, err)
	childtest.Must(t, w.Close())
	return b.String()
}

// recordOf returns the record of a file in a logdir, nil for none.
func recordOf(t *testing.T, dir, name string) *manifest.Record {
	t.Helper()
	all, bad := manifest.Records(dir)
	if bad != nil {
		t.Fatal(bad)
	}
	for _, r := range all {
		if r.Parts[0] == name {
			return r
		}
	}
	return nil
}

// Of large checkpoints in quick succession only the first gets a SHA-256 where an archive has checksums of
// its own; others always do.
func TestSumsInQuickSuccession(t *testing.T) {
	for what, tc := range map[string]struct {
		first, second string
		size          int
		sums          bool // of the archive
		want          bool // of the second
	}{
		"large":                          {"ckpt-1.pt", "ckpt-2.pt", manifest.QuickSums, true, false},
		"small":                          {"ckpt-1.pt", "ckpt-2.pt", manifest.QuickSums / 2, true, true},
		"without checksums":              {"ckpt-1.pt", "ckpt-2.pt", manifest.QuickSums, false, true},
		"one name, which is overwritten": {"last.pt", "last.pt", manifest.QuickSums, true, true},
	} {
		dir := t.TempDir()
		s := openStore(t, dir, map[bool]string{true: "last.pt", false: "ckpt-*"}[tc.first == tc.second])
		saveArchive(t, filepath.Join(dir, tc.first), tc.size, 1, tc.sums)
		s.Refresh(true)
		if moved := !s.sumsDue.IsZero(); moved != (tc.size >= manifest.QuickSums) {
			t.Errorf("%s: the next sums are due at %v", what, s.sumsDue)
		} else if moved {
			s.sumsDue = s.sumsDue.Add(time.Hour) // on a slow machine, too
		}
		if r := recordOf(t, dir, tc.first); r == nil || !r.HasSums() {
			t.Errorf("%s: the first has the record %+v", what, r)
		}
		saveArchive(t, filepath.Join(dir, tc.second), tc.size, 2, tc.sums)
		if added, bad := s.Refresh(true); len(added) != 1 || bad != nil {
			t.Fatalf("%s: added %v, bad %v", what, added, bad)
		}
		if r := recordOf(t, dir, tc.second); r == nil || r.HasSums() != tc.want || r.HasSums() != (r.Files[0].SHA256 != "") {
			t.Errorf("%s: the second has the record %+v", what, r)
		}
	}
}

// A checkpoint without a SHA-256 is read by its own checksums at a start, known by them in a logdir that was
// copied, and gets one at the end of a run.
func TestWithoutSums(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, "ckpt-*")
	const name = "ckpt-2.pt"
	saveArchive(t, filepath.Join(dir, "ckpt-1.pt"), manifest.QuickSums, 1, true)
	s.Refresh(true)
	saveArchive(t, filepath.Join(dir, name), manifest.QuickSums, 2, true)
	s.Refresh(true)
	childtest.Must(t, s.Measure(2, checkpoint.Measurements{}.With("loss", checkpoint.Measurement{Value: 0.5, Step: 2})))
	again := func() (added []Checkpoint, bad []Rejected) {
		s = openStore(t, dir, "ckpt-*")
		s.ReadRecords()
		return s.Refresh(true)
	}
	for _, at := range []time.Time{time.Now().Add(-time.Hour), time.Now().Add(-2 * time.Hour)} { // as a copy has
		childtest.Must(t, os.Chtimes(filepath.Join(dir, name), at, at))
		if added, bad := again(); len(added) != 2 || bad != nil {
			t.Fatalf("intact: added %v, bad %v", added, bad)
		}
		if r := recordOf(t, dir, name); r.HasSums() || len(r.Metrics) != 1 {
			t.Errorf("in a copy, the record is %+v", r)
		}
	}
	childtest.Must(t, s.AddSums(t.Context()))
	full := recordOf(t, dir, name)
	if !full.HasSums() || len(full.Metrics) != 1 || full.Files[0].Entries == "" {
		t.Errorf("at the end, the record is %+v", full)
	}
	full.Files[0].SHA256 = ""
	childtest.Must(t, full.Write(nil, dir))
	info, err := os.Stat(filepath.Join(dir, name))
	childtest.Must(t, err)
	text, err := os.ReadFile(filepath.Join(dir, name))
	childtest.Must(t, err)
	text[len(text)/2]++
	childtest.Write(t, filepath.Join(dir, name), string(text))
	childtest.Must(t, os.Chtimes(filepath.Join(dir, name), info.ModTime(), info.ModTime()))
	if added, bad := again(); len(added) != 1 || len(bad) != 1 || !bad[0].Damaged() {
		t.Errorf("damaged: added %v, bad %v", added, bad)
	}
}

// TestSumsDue has checkpoints of some size: the large ones move the time on from which there is time for the next
// sums, by what theirs took, and get none before it.
func TestSumsDue(t *testing.T) {
	for _, tc := range []struct {
		what    string
		size    int
		due     time.Duration // from now; 0 for the first of a run
		resumed bool          // an earlier run has recorded checkpoints
		sums    bool
		moved   bool
	}{
		{"first", manifest.QuickSums, 0, false, true, true},
		{"first, small", manifest.QuickSums - 1, 0, false, true, false},
		{"first after a kill", manifest.QuickSums, 0, true, false, true},
		{"due", manifest.QuickSums, -time.Second, true, true, true},
		{"not due", manifest.QuickSums, time.Hour, true, false, false},
		{"not due, small", manifest.QuickSums - 1, time.Hour, true, true, false},
	} {
		dir := t.TempDir()
		s := openStore(t, dir, "ckpt-*")
		saveArchive(t, filepath.Join(dir, "ckpt-2.pt"), tc.size, 1, true)
		s.resumed = tc.resumed
		began := time.Now()
		before := began.Add(tc.due)
		if tc.due == 0 {
			before = time.Time{}
		}
		due := before
		r, _, err := s.verifyOne(t.Context(), s.Candidates(true)[0], nil, false, &due)
		if err != nil || r.HasSums() != tc.sums {
			t.Errorf("%s: %v, the record is %+v", tc.what, err, r)
		}
		if moved := !due.Equal(before); moved != tc.moved || moved && !due.After(began) {
			t.Errorf("%s: sums were due at %v, and are at %v", tc.what, before, due)
		}
	}
}

// TestSumsDueStays has a verdict from before the last one: it does not bring back an earlier time.
func TestSumsDueStays(t *testing.T) {
	dir := childtest.Logdir(t, "ckpt-1.bin")
	s := openStore(t, dir, "ckpt-*")
	verdicts := s.Verify(t.Context(), s.Candidates(true))
	for _, due := range []time.Time{time.Unix(2, 0), time.Unix(1, 0), {}} {
		verdicts[0].sumsDue = due
		if s.Accept(verdicts); !s.sumsDue.Equal(time.Unix(2, 0)) {
			t.Errorf("after a verdict with %v sums are due at %v", due, s.sumsDue)
		}
	}
}

// saveParts writes a folder with files of several kinds, and has the store verify it when no sums are due.
func saveParts(t *testing.T, dir string) *manifest.Record {
	t.Helper()
	saveArchive(t, filepath.Join(dir, "ckpt-2", "a.pt"), manifest.QuickSums, 1, true)
	saveArchive(t, filepath.Join(dir, "ckpt-2", "b.pt"), quickFile, 2, true)
	saveArchive(t, filepath.Join(dir, "ckpt-2", "c.pt"), quickFile-1, 3, true)
	childtest.Write(t, filepath.Join(dir, "ckpt-2", "d.bin"), strings.Repeat("d", quickFile))
	s := openStore(t, dir, "ckpt-*")
	s.sumsDue = time.Now().Add(time.Hour)
	s.Refresh(true)
	r := recordOf(t, dir, "ckpt-2")
	if r == nil || len(r.Files) != 4 {
		t.Fatalf("the record is %+v", r)
	}
	return r
}

// TestSumsOfParts has a folder that is saved when no sums are due: its large archives are described by the sums
// of their entries alone, all else by a SHA-256.
func TestSumsOfParts(t *testing.T) {
	for i, f := range saveParts(t, t.TempDir()).Files {
		if leaves := i < 2; (f.SHA256 == "") != leaves || (f.Entries != "") != leaves {
			t.Errorf("%s has %+v", f.Name, f)
		}
	}
}

// TestDamageNextToArchives has a changed byte in one of the files of such a folder, whose time is as it was:
// the next run finds it, whichever sum the file has.
func TestDamageNextToArchives(t *testing.T) {
	for _, name := range []string{"a.pt", "b.pt", "c.pt", "d.bin"} {
		dir := t.TempDir()
		saveParts(t, dir)
		file := filepath.Join(dir, "ckpt-2", name)
		info := childtest.Stat(t, file)
		childtest.Write(t, file, childtest.Flip(childtest.Read(t, file), 1000))
		childtest.Must(t, os.Chtimes(file, info.ModTime(), info.ModTime()))
		s := openStore(t, dir, "ckpt-*")
		s.ReadRecords()
		if added, bad := s.Refresh(true); len(added) > 0 || len(bad) != 1 || !bad[0].Damaged() {
			t.Errorf("%s: added %v, bad %v", name, added, bad)
		}
	}
}

// withoutSums returns the store of a logdir whose only checkpoint has no SHA-256.
func withoutSums(t *testing.T, dir string) *Store {
	t.Helper()
	s := openStore(t, dir, "ckpt-*")
	s.sumsDue = time.Now().Add(time.Hour)
	saveArchive(t, filepath.Join(dir, "ckpt-1.pt"), manifest.QuickSums, 1, true)
	if s.Refresh(true); len(s.known) != 1 || s.known[0].record.HasSums() {
		t.Fatalf("known are %+v", s.known)
	}
	return s
}

// TestAddSums has the newest checkpoint at the end of a run: it gets the sums that it lacks, if it is what was
// verified.
func TestAddSums(t *testing.T) {
	name := func(s *Store) string { return filepath.Join(s.root.Name(), "ckpt-1.pt") }
	for what, tc := range map[string]struct {
		change func(s *Store)
		sums   bool
		fails  bool
	}{
		"as it was":   {func(*Store) {}, true, false},
		"gone":        {func(s *Store) { childtest.Must(t, os.Remove(name(s))) }, false, true},
		"damaged":     {func(s *Store) { childtest.Write(t, name(s), childtest.Flip(childtest.Read(t, name(s)), 1000)) }, false, true},
		"overwritten": {func(s *Store) { saveArchive(t, name(s), manifest.QuickSums, 2, true) }, false, false},
		"not recorded": {func(s *Store) {
			s.known[0].record = nil // as on a full disk
		}, false, false},
		"bad disk": {func(s *Store) {
			s.disk = childtest.PickyDisk{FS: s.disk, Logdir: s.root.Name(), Fails: func(op, _ string) bool { return op == "create" }}
		}, false, true},
	} {
		s := withoutSums(t, t.TempDir())
		tc.change(s)
		if err := s.AddSums(t.Context()); (err != nil) != tc.fails {
			t.Errorf("%s: %v", what, err)
		}
		if r := recordOf(t, s.root.Name(), "ckpt-1.pt"); r.HasSums() != tc.sums {
			t.Errorf("%s: the record is %+v", what, r)
		}
	}
}

// TestAddNoSums has nothing that lacks sums: nothing is read or written.
func TestAddNoSums(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, "ckpt-*")
	childtest.Must(t, s.AddSums(t.Context()))
	childtest.Write(t, filepath.Join(dir, "ckpt-1.bin"), "weights")
	s.Refresh(true)
	before := recordOf(t, dir, "ckpt-1.bin")
	childtest.Must(t, s.AddSums(t.Context()))
	if now := recordOf(t, dir, "ckpt-1.bin"); !now.Verified.Equal(before.Verified) {
		t.Errorf("the record is %+v, and was %+v", now, before)
	}
}

// Values that are reported while a large checkpoint is read are noted in the records of others: the
// race detector watches.
func TestMeasureWhileVerifying(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, "ckpt-*")
	saveArchive(t, filepath.Join(dir, "ckpt-1.pt"), 1<<10, 1, true)
	s.Refresh(true)
	saveArchive(t, filepath.Join(dir, "ckpt-2.pt"), manifest.QuickSums, 2, true)
	all, verdicts := s.Candidates(true), make(chan []Verdict, 1)
	go func() { verdicts <- s.Verify(t.Context(), all) }()
	for _, tag := range []string{"loss", "accuracy", "f1"} {
		childtest.Must(t, s.Measure(1, checkpoint.Measurements{}.With(tag, checkpoint.Measurement{Value: 0.5, Step: 1})))
	}
	if added, bad := s.Accept(<-verdicts); len(added) != 1 || bad != nil {
		t.Errorf("added %v, bad %v", added, bad)
	}
	if r := recordOf(t, dir, "ckpt-1.pt"); len(r.Metrics) != 3 {
		t.Errorf("the record has %v", r.Metrics)
	}
}
