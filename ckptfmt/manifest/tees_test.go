package manifest

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/internal/machine"
)

// archiveOf makes a zip archive as torch does, with entries that are not compressed.
func archiveOf(t *testing.T, name string, entries, size int) {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := range entries {
		e, err := w.CreateHeader(&zip.FileHeader{Name: fmt.Sprint("data/", i), Method: zip.Store})
		if err == nil {
			_, err = e.Write(bytes.Repeat([]byte{byte(i + 1)}, size))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// readArchive reads all of an archive through tees, and returns how far the sum has come.
func readArchive(t *testing.T, sums *Tees, root *os.Root, name string) (taken int64) {
	t.Helper()
	f, err := root.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(sums.Reader(name, f), info.Size())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range archive.File {
		r, err := e.Open()
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return sums.files[name].next
}

// A file that was read is not read again for its sum, but for its end; one that was written to
// meanwhile is.
func TestTees(t *testing.T) {
	for _, size := range []int{0, 10, 1 << 20} {
		for change, what := range map[string]func(name string) error{
			"":           func(string) error { return nil },
			"overwrites": func(name string) error { return os.WriteFile(name, bytes.Repeat([]byte{7}, 100), 0o666) },
			"appends": func(name string) error {
				f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
				if err != nil {
					return err
				}
				defer f.Close()
				_, err = f.WriteString("more")
				return err
			},
		} {
			dir := t.TempDir()
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { root.Close() })
			name := filepath.Join(dir, "ckpt.pt")
			archiveOf(t, name, 5, size)
			var sums Tees
			if taken := readArchive(t, &sums, root, "ckpt.pt"); taken < int64(5*size) {
				t.Errorf("entries of %d bytes: the sum has come to %d", size, taken)
			}
			if err := what(name); err != nil {
				t.Fatal(err)
			}
			want, err := Describe(t.Context(), root, []string{"ckpt.pt"})
			if err != nil {
				t.Fatal(err)
			}
			got, err := sums.Describe(t.Context(), root, []string{"ckpt.pt"})
			want[0].Changed = time.Time{}
			if err == nil {
				got[0].Changed = time.Time{}
			}
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("entries of %d bytes, %s: %v\n%s", size, change, err, diff)
			}
		}
	}
}

// Only files that nobody has written to since, not even with the same length and times, are
// untouched, and those for a short time.
func TestIsUntouched(t *testing.T) {
	if machine.BootID() == "" {
		t.Skip("this system does not say when files were changed")
	}
	name := filepath.Join(t.TempDir(), "ckpt.pt")
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	describe := func() *Record {
		t.Helper()
		files, err := Describe(t.Context(), root, []string{"ckpt.pt"})
		if err != nil {
			t.Fatal(err)
		}
		return &Record{Files: files, Verified: time.Now(), Boot: machine.BootID()}
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("weights")
	r := describe()
	for r.Files[0].Changed.IsZero() { // it might change once more without another time
		time.Sleep(tick / 10)
		r = describe()
	}
	if !r.IsUntouched(root) {
		t.Error("it was touched")
	}
	for what, change := range map[string]func(r *Record){
		"verified long ago":           func(r *Record) { r.Verified = time.Now().Add(-2 * untouchedFor) },
		"verified in times to come":   func(r *Record) { r.Verified = time.Now().Add(time.Minute) },
		"verified before a reboot":    func(r *Record) { r.Boot = "another" },
		"without a time of changes":   func(r *Record) { r.Files = []RecordFile{{Name: "ckpt.pt"}} },
		"of a file that is not there": func(r *Record) { r.Files = []RecordFile{{Name: "none", Changed: r.Files[0].Changed}} },
	} {
		other := *r
		if change(&other); other.IsUntouched(root) {
			t.Errorf("%s: it is untouched", what)
		}
	}
	write("WEIGHTS")
	if err := os.Chtimes(name, r.Files[0].Modified, r.Files[0].Modified); err != nil {
		t.Fatal(err)
	}
	if r.Compare(root, []string{"ckpt.pt"}) != nil || r.IsUntouched(root) {
		t.Error("it is untouched, with other bytes of the same length and time")
	}
}

// A file that is left out has no sum, unless it was written to since; nobody verifies it by a sum that it
// does not have, and what is in it is told by its entries.
func TestLeftOut(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	name := filepath.Join(dir, "ckpt.pt")
	archiveOf(t, name, 2, 100)
	var sums Tees
	sums.Leave(root, "ckpt.pt")
	sums.Leave(root, "late.pt") // which comes only after that
	archiveOf(t, filepath.Join(dir, "late.pt"), 2, 100)
	if late, err := sums.Describe(t.Context(), root, []string{"late.pt"}); err != nil || late[0].SHA256 == "" {
		t.Errorf("one that was not there: %+v, %v", late, err)
	}
	files, err := sums.Describe(t.Context(), root, []string{"ckpt.pt"})
	if err != nil || files[0].SHA256 != "" || files[0].Bytes == 0 {
		t.Fatalf("got %+v, %v", files, err)
	}
	full, err := Describe(t.Context(), root, []string{"ckpt.pt"})
	if err != nil {
		t.Fatal(err)
	}
	r := &Record{Name: "ckpt.pt", Step: 1, Parts: []string{"ckpt.pt"}, Files: files}
	if r.HasSums() || r.SameContent(full) || r.Verify(t.Context(), root) != nil {
		t.Errorf("without entries: %+v", r)
	}
	files[0].Entries, full[0].Entries = "abc", "abc"
	if !r.SameContent(full) {
		t.Errorf("with entries: %+v", r)
	}
	for _, other := range []RecordFile{
		{Name: "ckpt.pt", Bytes: files[0].Bytes, Entries: "abd"}, {Name: "ckpt.pt", Bytes: files[0].Bytes + 1, Entries: "abc"}, {Name: "other.pt", Bytes: files[0].Bytes, Entries: "abc"},
	} {
		if r.SameContent([]RecordFile{other}) {
			t.Errorf("%+v has the same content", other)
		}
	}
	if err := r.Write(nil, dir); err != nil {
		t.Fatal(err)
	}
	if found, bad := new(SumFinder).Find([]string{name}); len(found) > 0 || bad != nil {
		t.Errorf("found %+v, %v", found, bad)
	}
	archiveOf(t, name, 3, 100)
	if files, err = sums.Describe(t.Context(), root, []string{"ckpt.pt"}); err != nil || files[0].SHA256 == "" {
		t.Errorf("written to since: %+v, %v", files, err)
	}
}

// openTee returns tees that have been given a file with that many bytes, and the sum of these.
func openTee(t *testing.T, size int) (sums *Tees, root *os.Root, from *tee, want string) {
	t.Helper()
	text := make([]byte, size)
	for i := range text {
		text[i] = byte(i >> 8 * 7)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ckpt.pt"), text, 0o666); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	f, err := root.Open("ckpt.pt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close(); root.Close() })
	sums = new(Tees)
	return sums, root, sums.Reader("ckpt.pt", f).(*tee), sha256Of(text)
}

// Reads that leave out little are of one row; after a larger gap, or the end of the file, the rest is read for
// the sum. What is read, and where it ends, does not change by that.
func TestTeesFillGaps(t *testing.T) {
	const size, piece = 3 * mostGap, 100
	for _, tt := range []struct{ at, taken int64 }{
		{0, piece}, {1, 1 + piece}, {mostGap, mostGap + piece}, {mostGap + 1, 0}, {size - piece/2, 0}, {size + 1, 0},
	} {
		sums, root, from, want := openTee(t, size)
		p := make([]byte, piece)
		n, err := from.ReadAt(p, tt.at)
		if whole := tt.at+piece <= size; (n == piece) != whole || whole != (err == nil) || !whole && err != io.EOF {
			t.Errorf("at %d: read %d, %v", tt.at, n, err)
		}
		if from.next != tt.taken {
			t.Errorf("at %d: the sum has come to %d, want %d", tt.at, from.next, tt.taken)
		}
		from.ReadAt(p, tt.at/2) // what was read before
		files, err := sums.Describe(t.Context(), root, []string{"ckpt.pt"})
		if err != nil || files[0].SHA256 != want || files[0].Bytes != size {
			t.Errorf("at %d: %+v, %v", tt.at, files, err)
		}
	}
	sums, root, from, want := openTee(t, 10)
	if n, err := from.ReadAt(make([]byte, 5), 20); n != 0 || err != io.EOF {
		t.Errorf("after the end: read %d, %v", n, err)
	}
	if files, err := sums.Describe(t.Context(), root, []string{"ckpt.pt"}); err != nil || files[0].SHA256 != want || files[0].Bytes != 10 {
		t.Errorf("after the end: %+v, %v", files, err)
	}
}

// What the kernel says of changes counts as it was before the first read: what comes later may have been
// written after it.
func TestTeesStampBefore(t *testing.T) {
	sums, root, from, _ := openTee(t, 10)
	from.changed = time.Unix(1, 0)
	files, err := sums.Describe(t.Context(), root, []string{"ckpt.pt"})
	if err != nil || !files[0].Changed.Equal(from.changed) {
		t.Errorf("got %+v, %v", files, err)
	}
}

// A file that the system says nothing of is read as it is, and for its sum again.
func TestTeesOfClosedFile(t *testing.T) {
	dir := folder(t, map[string]string{"ckpt.pt": "weights"})
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	f, err := root.Open("ckpt.pt")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	var sums Tees
	if got := sums.Reader("ckpt.pt", f); got != io.ReaderAt(f) {
		t.Errorf("it is read through %T", got)
	}
	if files, err := sums.Describe(t.Context(), root, []string{"ckpt.pt"}); err != nil || files[0].SHA256 != sha256Of([]byte("weights")) {
		t.Errorf("got %+v, %v", files, err)
	}
}

// Several goroutines read a file at the same time, as package hdf5 does with a large group: each
// byte counts once.
func TestTeesAtOnce(t *testing.T) {
	const piece, pieces, readers = 64 << 10, 64, 4
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	content := make([]byte, pieces*piece)
	for i := range content {
		content[i] = byte(i / 251)
	}
	if err := root.WriteFile("model.h5", content, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := root.Open("model.h5")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var sums Tees
	r := sums.Reader("model.h5", f)
	for i := range int64(pieces) {
		var all sync.WaitGroup
		for range readers {
			all.Go(func() {
				if _, err := r.ReadAt(make([]byte, piece), i*piece); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	got, err := sums.Describe(t.Context(), root, []string{"model.h5"})
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%x", sha256.Sum256(content)); got[0].SHA256 != want {
		t.Errorf("the sum is %s, want %s", got[0].SHA256, want)
	}
}
