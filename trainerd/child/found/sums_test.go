//go:build unix

package found

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// saveArchive writes an archive with an entry of that many bytes, with or without its checksum.
func saveArchive(t *testing.T, name string, size int, fill byte, sums bool) {
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
	childtest.Write(t, name, b.String())
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
