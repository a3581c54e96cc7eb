package manifest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
)

// recorded makes a logdir with a checkpoint of a folder and a file, and its
// record.
func recorded(t *testing.T) (*os.Root, *Record) {
	t.Helper()
	dir := folder(t, map[string]string{"c-5/a": "abc", "c-5/d/b": "de", "c-5.json": "{}"})
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	files, err := Describe(t.Context(), root, []string{"c-5/a", "c-5/d/b", "c-5.json"})
	if err != nil {
		t.Fatal(err)
	}
	r := &Record{
		Name: "c-5", Format: "other", Step: 5, Reported: 50, WallTime: time.Unix(1, 0).UTC(), Verified: time.Unix(2, 0).UTC(),
		Metrics: map[string]Metric{"loss": 0.5, "auc": Metric(math.Inf(-1))}, Measured: map[string]Measurement{"loss": {Step: 5, Source: SourceProgram}},
		Parts: []string{"c-5", "c-5.json"}, Files: files,
	}
	return root, r
}

// What was written is read again, in the order of the steps, then of the names.
func TestRecords(t *testing.T) {
	root, first := recorded(t)
	var want []*Record
	for _, r := range []struct {
		name string
		step int64
	}{{"a/b", -1}, {"b", -1}, {"c-0", 0}, {"c-5", 5}, {"c-10", 10}, {"c-max", math.MaxInt64}} {
		one := *first
		one.Name, one.Step = r.name, r.step
		want = append(want, &one)
	}
	for _, i := range []int{3, 1, 5, 0, 2, 4} {
		if err := want[i].Write(nil, root.Name()); err != nil {
			t.Fatal(err)
		}
	}
	got, bad := Records(root.Name())
	if diff := cmp.Diff(want, got); diff != "" || len(bad) > 0 {
		t.Errorf("%v (-written +read):\n%s", bad, diff)
	}
	if first.Bytes() != 7 || first.Manifest().Step != 5 || first.Manifest().Metrics["loss"] != 0.5 || first.Manifest().WallTime != first.WallTime {
		t.Errorf("%d bytes, %+v", first.Bytes(), first.Manifest())
	}
	for _, tt := range []struct {
		name string
		step int64
		want string
	}{{"x", 10, "10.json"}, {"x", 0, "0.json"}, {"x/y", -1, "name-x%2Fy.json"}} {
		if got := RecordName(tt.name, tt.step); got != filepath.Join(RecordsDir, tt.want) {
			t.Errorf("%s of step %d: %s", tt.name, tt.step, got)
		}
	}
}

// TestRecordOfLongName has names that the file system takes, and whose records would have longer ones: each has
// a record of its own.
func TestRecordOfLongName(t *testing.T) {
	root, first := recorded(t)
	var want []string
	for _, name := range []string{strings.Repeat("模", 40) + ".a", strings.Repeat("模", 40) + ".b", strings.Repeat("outputs/", 31) + "last"} {
		one := *first
		one.Name, one.Step = name, -1
		if err := one.Write(nil, root.Name()); err != nil {
			t.Fatal(err)
		}
		want = append(want, name)
	}
	var got []string
	all, bad := Records(root.Name())
	for _, r := range all {
		got = append(got, r.Name)
	}
	slices.Sort(want)
	if !slices.Equal(got, want) || len(bad) > 0 {
		t.Errorf("%q, %v; want %q", got, bad, want)
	}
}

// The longest name that a file system takes is that of the checkpoint.
func TestLongestName(t *testing.T) {
	longest := strings.Repeat("a", 255-len("name-.json"))
	if got, want := filepath.Base(RecordName(longest, -1)), "name-"+longest+".json"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := filepath.Base(RecordName(longest+"a", -1)); len(got) > 100 {
		t.Errorf("a name that is too long has the record %s", got)
	}
}

// Records that cannot be read are left out, with the reason; files that are none
// are not looked at.
func TestBadRecords(t *testing.T) {
	root, r := recorded(t)
	if err := r.Write(nil, root.Name()); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root.Name(), RecordsDir)
	text := func(change func(*storedRecord)) string {
		s := storedRecord{version, *r}
		s.Files = slices.Clone(s.Files)
		change(&s)
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	bad := map[string]string{
		"10.json": "{",
		"11.json": text(func(s *storedRecord) { s.Version = 2 }),
		"12.json": text(func(s *storedRecord) { s.Version = 0 }),
		"13.json": text(func(s *storedRecord) { s.Name = "../c" }),
		"14.json": text(func(s *storedRecord) { s.Copy = "/c" }),
		"15.json": text(func(s *storedRecord) { s.Parts = []string{"a", "../b"} }),
		"16.json": text(func(s *storedRecord) { s.Files[1].Name = "d/../../b" }),
		"17.json": text(func(s *storedRecord) { s.Name = "" }),
	}
	none := map[string]string{"notes.txt": "{", ".trainerd-0123456789abcdef.tmp": "{", "9.json.tempstate1": "{"}
	for _, files := range []map[string]string{bad, none} {
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.json"), 0o777); err != nil {
		t.Fatal(err)
	}
	huge := filepath.Join(dir, "18.json")
	if err := errors.Join(os.WriteFile(huge, nil, 0o666), os.Truncate(huge, maxSize+1)); err != nil {
		t.Fatal(err)
	}
	all, errs := Records(root.Name())
	if len(all) != 1 || len(errs) != len(bad)+1 {
		t.Errorf("%d records, errors %v", len(all), errs)
	}
	if !slices.ContainsFunc(errs, func(err error) bool {
		return strings.Contains(err.Error(), "18.json") && strings.Contains(err.Error(), "bytes are too many")
	}) {
		t.Errorf("none says that 18.json is too large: %v", errs)
	}
	for _, err := range errs {
		var corrupt *ckptfmt.CorruptError
		if !errors.As(err, &corrupt) && !errors.Is(err, ckptfmt.ErrVersion) {
			t.Errorf("%v is no damage", err)
		}
	}
	if all, errs := Records(t.TempDir()); all != nil || errs != nil {
		t.Errorf("of a logdir without any: %v, %v", all, errs)
	}
	file := filepath.Join(t.TempDir(), RecordsDir)
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, errs := Records(filepath.Dir(file)); len(errs) != 1 {
		t.Errorf("of a file in place of the folder: %v", errs)
	}
}

// A record is of files of that size and time, all of them and no others.
func TestCompare(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(dir string) error
		check  func(error) bool
	}{
		{"as it was", func(string) error { return nil }, func(err error) bool { return err == nil }},
		{"another size", func(dir string) error { return os.WriteFile(filepath.Join(dir, "c-5/a"), []byte("abcd"), 0o666) }, isOutdated},
		{"another time", func(dir string) error {
			return os.Chtimes(filepath.Join(dir, "c-5/a"), time.Unix(9, 0), time.Unix(9, 0))
		}, isOutdated},
		{"a file more", func(dir string) error { return os.WriteFile(filepath.Join(dir, "c-5/more"), nil, 0o666) }, isOutdated},
		{"a folder more", func(dir string) error { return os.Mkdir(filepath.Join(dir, "c-5/more"), 0o777) }, func(err error) bool { return err == nil }},
		{"a file gone", func(dir string) error { return os.Remove(filepath.Join(dir, "c-5/d/b")) }, func(err error) bool {
			var corrupt *ckptfmt.CorruptError
			return errors.As(err, &corrupt) && corrupt.Name == "c-5/d/b"
		}},
		{"a folder gone", func(dir string) error { return os.RemoveAll(filepath.Join(dir, "c-5")) }, func(err error) bool {
			var corrupt *ckptfmt.CorruptError
			return errors.As(err, &corrupt) && corrupt.Name == "c-5/a"
		}},
		{"all files gone", func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "c-5")), os.Remove(filepath.Join(dir, "c-5.json")))
		}, isOutdated},
		{"a file for a folder", func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "c-5")), os.WriteFile(filepath.Join(dir, "c-5"), nil, 0o666))
		}, func(err error) bool { return err != nil && !errors.Is(err, ErrOutdated) }},
	} {
		root, r := recorded(t)
		if err := tt.change(root.Name()); err != nil {
			t.Fatal(err)
		}
		files := []string{"c-5/a", "c-5/d/b", "c-5.json", "c-5/more"}
		if err := r.Compare(root, files); !tt.check(err) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func isOutdated(err error) bool { return errors.Is(err, ErrOutdated) }

// Verify reads the files again, VerifyCopy those of the copy.
func TestRecordVerify(t *testing.T) {
	root, r := recorded(t)
	r.Copy = "copy"
	for _, f := range r.Files {
		b, err := os.ReadFile(filepath.Join(root.Name(), f.Name))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(root.Name(), "copy", f.Name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o777), os.WriteFile(to, b, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	var corrupt *ckptfmt.CorruptError
	check := func(what string, own, copied bool) {
		t.Helper()
		err, errCopy := r.Verify(t.Context(), root), r.VerifyCopy(t.Context(), root)
		if (err == nil) != own || !own && !errors.As(err, &corrupt) || (errCopy == nil) != copied || !copied && !errors.As(errCopy, &corrupt) {
			t.Errorf("%s: %v, of the copy: %v", what, err, errCopy)
		}
	}
	check("as it was", true, true)
	if err := os.WriteFile(filepath.Join(root.Name(), "c-5/d/b"), []byte("dE"), 0o666); err != nil {
		t.Fatal(err)
	}
	check("changed", false, true)
	if err := os.WriteFile(filepath.Join(root.Name(), "copy/c-5.json"), []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	check("cut", false, false)
	if err := os.Remove(filepath.Join(root.Name(), "c-5/a")); err != nil {
		t.Fatal(err)
	}
	if err := r.Verify(t.Context(), root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("gone: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.VerifyCopy(ctx, root); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// The content is the same by names, sizes and sums, whatever the times.
func TestSameContent(t *testing.T) {
	_, r := recorded(t)
	for i, change := range []func(f *RecordFile){
		func(f *RecordFile) { f.Modified = time.Time{} }, func(f *RecordFile) { f.Name += "x" }, func(f *RecordFile) { f.Bytes++ }, func(f *RecordFile) { f.SHA256 = "00" },
	} {
		files := slices.Clone(r.Files)
		change(&files[1])
		if got := r.SameContent(files); got != (i == 0) {
			t.Errorf("change %d: %v", i, got)
		}
	}
	if r.SameContent(r.Files[1:]) {
		t.Error("with a file less")
	}
}

// Links and folders are not described; what cannot be read is an error.
func TestDescribe(t *testing.T) {
	root, _ := recorded(t)
	if err := os.Symlink("a", filepath.Join(root.Name(), "c-5", "link")); err != nil {
		t.Skip(err)
	}
	files, err := Describe(t.Context(), root, []string{"c-5/link", "c-5/d", "c-5/a"})
	if err != nil || len(files) != 1 || files[0].Name != "c-5/a" || files[0].Bytes != 3 || files[0].SHA256 != sha256Of([]byte("abc")) {
		t.Errorf("%+v, %v", files, err)
	}
	if _, err := Describe(t.Context(), root, []string{"none"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Describe(ctx, root, []string{"c-5/a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A record is published whole or not at all, and every failure is reported.
func TestRecordWriteFails(t *testing.T) {
	for n := 1; ; n++ {
		root, r := recorded(t)
		fsys := faultfs.New(n)
		err := r.Write(fsys, root.Name())
		if fsys.Failed() == "" {
			if err != nil || n < 8 {
				t.Errorf("%d operations, %v", n-1, err)
			}
			break
		}
		all, bad := Records(root.Name())
		if !errors.Is(err, faultfs.ErrInjected) || len(bad) > 0 || len(all) > 1 {
			t.Errorf("%s: %v; records %v, %v", fsys.Failed(), err, all, bad)
		}
	}
	root, r := recorded(t)
	r.WallTime = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) // which JSON has no form for
	if err := r.Write(nil, root.Name()); err == nil || !strings.Contains(err.Error(), "writing manifest of checkpoint c-5") {
		t.Errorf("a time that cannot be written: %v", err)
	}
}

// A manifest is published whole or not at all, and every failure is reported,
// also that a file cannot be read for its sum.
func TestWriteFails(t *testing.T) {
	prefix, m := withManifest(t)
	before, err := os.ReadFile(Name(prefix))
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; ; n++ {
		fsys := faultfs.New(n)
		err := Write(t.Context(), prefix, m, &ckptfmt.FileOptions{FS: fsys})
		if fsys.Failed() == "" {
			if err != nil || n < 10 {
				t.Errorf("%d operations, %v", n-1, err)
			}
			break
		}
		now, readErr := os.ReadFile(Name(prefix))
		// A file that was only read may fail to be closed.
		if readErr != nil || string(now) != string(before) || !errors.Is(err, faultfs.ErrInjected) && fsys.FailedKind() != "close after reading" {
			t.Errorf("%s: %v, %v", fsys.Failed(), err, readErr)
		}
	}
	m.WallTime = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := Write(t.Context(), prefix, m, nil); err == nil || !strings.Contains(err.Error(), "writing manifest of checkpoint") {
		t.Errorf("a time that cannot be written: %v", err)
	}
	if err := Write(t.Context(), prefix+"0", m, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no checkpoint: %v", err)
	}
}

// Verify ends with the loop over it.
func TestVerifyStops(t *testing.T) {
	prefix, _ := withManifest(t)
	n := 0
	for name, err := range Verify(t.Context(), prefix) {
		if n++; err != nil || n > 1 {
			t.Errorf("%d: %s, %v", n, name, err)
		}
		break
	}
	if err := os.Remove(prefix + ".index"); err != nil {
		t.Fatal(err)
	}
	var failed []string
	for name, err := range Verify(t.Context(), prefix) {
		if err != nil {
			failed = append(failed, filepath.Base(name))
		}
	}
	if !slices.Equal(failed, []string{"model.ckpt-7.index"}) {
		t.Errorf("failed %q", failed)
	}
}

// A manifest of the largest size is read, and a larger one refused before it is.
func TestLargeManifest(t *testing.T) {
	prefix, _ := withManifest(t)
	for size, damaged := range map[int64]bool{maxSize: false, maxSize + 1: true} {
		if err := os.Truncate(Name(prefix), size); err != nil {
			t.Fatal(err)
		}
		_, err := Read(prefix)
		if tooMany := strings.Contains(fmt.Sprint(err), "bytes are too many"); tooMany != damaged {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// Without a manifest, Verify says that and nothing else.
func TestVerifyWithoutManifest(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "m-1")
	n := 0
	for name, err := range Verify(t.Context(), prefix) {
		if n++; name != Name(prefix) || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n != 1 {
		t.Errorf("%d results", n)
	}
}

// A metric counts if it was measured at the checkpoint's step, or an older
// manifest does not say when.
func TestMetrics(t *testing.T) {
	m := &Manifest{
		Step: 5, Metrics: map[string]Metric{"now": 1, "before": 2, "unknown": 3},
		Measured: map[string]Measurement{"now": {Step: 5, Source: SourceEval}, "before": {Step: 4, Source: SourceEval}, "gone": {Step: 5}},
	}
	if diff := cmp.Diff(map[string]Metric{"now": 1, "unknown": 3}, m.Values()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{"now": "1 eval true", "before": "0  false", "unknown": "3  true", "gone": "0  false", "none": "0  false"} {
		v, source, ok := m.Value(name)
		if got := fmt.Sprint(float64(v), " ", source, " ", ok); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
