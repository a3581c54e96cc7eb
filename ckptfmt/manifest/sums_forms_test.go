package manifest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
)

// The first that says something of a file counts: a record, a list, the hub.
func TestSumsInOrder(t *testing.T) {
	const text = "elements"
	sum := sha256Of([]byte(text))
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string // the end of the source, "" for none
	}{
		{"own list first", map[string]string{"m.sha256": sum, "SHA256SUMS": sum + "  m\n"}, "m.sha256"},
		{"own list of others", map[string]string{"m.sha256": sum + "  n\n", "SHA256SUMS": sum + "  m\n"}, "SHA256SUMS"},
		{"a sum alone in a list of many", map[string]string{"SHA256SUMS": sum + "\n"}, ""},
		{"a list before the hub", map[string]string{"checksums.txt": sum + "  m\n", ".cache/huggingface/download/m.metadata": "0\n" + sum}, "checksums.txt"},
		{"a note of the hub with two lines", map[string]string{".cache/huggingface/download/m.metadata": "0\n" + sum}, "m.metadata"},
		{"a note with one line", map[string]string{".cache/huggingface/download/m.metadata": sum}, ""},
		{"a note of 4096 bytes", map[string]string{".cache/huggingface/download/m.metadata": "0\n" + sum + "\n" + strings.Repeat("x", 4096-67)}, "m.metadata"},
		{"a note of 4097 bytes", map[string]string{".cache/huggingface/download/m.metadata": "0\n" + sum + "\n" + strings.Repeat("x", 4097-67)}, ""},
	} {
		tt.files["m"] = text
		sums, bad := new(SumFinder).Find([]string{filepath.Join(folder(t, tt.files), "m")})
		if len(bad) > 0 || len(sums) > 1 || (len(sums) == 1) != (tt.want != "") || len(sums) == 1 && filepath.Base(sums[0].Source) != tt.want {
			t.Errorf("%s: %v, %v", tt.name, sums, bad)
		}
		for _, s := range sums {
			if s.Bytes != -1 || !s.Modified.IsZero() {
				t.Errorf("%s: %d bytes, %v", tt.name, s.Bytes, s.Modified)
			}
			if err := s.Verify(t.Context()); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
	}
}

// What cannot be read is reported once for all files.
func TestBadSums(t *testing.T) {
	dir := folder(t, map[string]string{"a": "x", "b": "x", "SHA256SUMS": strings.Repeat("x", 1<<17), "trainerd.manifests/5.json": "{"})
	list := filepath.Join(dir, "checksums.txt")
	if err := os.Symlink(list, list); err != nil {
		t.Skip(err)
	}
	var finder SumFinder
	sums, bad := finder.Find([]string{filepath.Join(dir, "a"), filepath.Join(dir, "b")})
	var all []string
	for _, err := range bad {
		all = append(all, err.Error())
	}
	text := strings.Join(all, "\n")
	if len(sums) > 0 || len(bad) != 3 || !strings.Contains(text, "SHA256SUMS: ") || !strings.Contains(text, "checksums.txt") || !strings.Contains(text, "5.json") {
		t.Errorf("%v, %v", sums, bad)
	}
	if _, again := finder.Find([]string{filepath.Join(dir, "a")}); len(again) > 0 {
		t.Errorf("told again: %v", again)
	}
}

// Of several records of a file, the newest counts.
func TestNewestRecordCounts(t *testing.T) {
	dir := folder(t, map[string]string{"last.pt": "new"})
	file := RecordFile{Name: "last.pt", Bytes: 3, SHA256: sha256Of([]byte("new")), Modified: time.Unix(5, 0)}
	for step, sum := range map[int64]string{1: sha256Of([]byte("old")), 2: file.SHA256} {
		f := file
		f.SHA256 = sum
		other := RecordFile{Name: "other.pt", SHA256: sha256Of(nil)}
		if err := (&Record{Name: "last.pt", Step: step, Files: []RecordFile{f, other}, Copy: "copies"}).Write(nil, dir); err != nil {
			t.Fatal(err)
		}
	}
	sums, bad := new(SumFinder).Find([]string{filepath.Join(dir, "last.pt")})
	if len(sums) != 1 || len(bad) > 0 || sums[0].SHA256 != file.SHA256 || sums[0].Bytes != 3 || !sums[0].Modified.Equal(file.Modified) {
		t.Errorf("%+v, %v", sums, bad)
	}
}

// What Verify says of a file, by what its source says of it.
func TestSumVerify(t *testing.T) {
	name := filepath.Join(folder(t, map[string]string{"f": "text", "empty": ""}), "f")
	good, other := sha256Of([]byte("text")), sha256Of(nil)
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	var corrupt *ckptfmt.CorruptError
	isDamage := func(text string) func(error) bool {
		return func(err error) bool { return errors.As(err, &corrupt) && strings.Contains(err.Error(), text) }
	}
	isFine := func(err error) bool { return err == nil }
	for _, tt := range []struct {
		name string
		sum  Sum
		ok   func(error) bool
	}{
		{"sum", Sum{SHA256: good, Bytes: -1}, isFine},
		{"sum in capitals", Sum{SHA256: strings.ToUpper(good), Bytes: -1}, isFine},
		{"size", Sum{SHA256: good, Bytes: 4}, isFine},
		{"another sum", Sum{SHA256: other, Bytes: -1}, isDamage("checksum")},
		{"another sum, same size", Sum{SHA256: other, Bytes: 4}, isDamage("checksum")},
		{"another size", Sum{SHA256: other, Bytes: 5}, isDamage("it has 4 bytes,  says 5")},
		{"empty before", Sum{SHA256: other, Bytes: 0}, isDamage("it has 4 bytes,  says 0")},
		{"same sum, another size", Sum{SHA256: good, Bytes: 0}, isDamage("it has 4 bytes,  says 0")},
		{"written again", Sum{SHA256: other, Bytes: 5, Modified: info.ModTime().Add(-time.Second)}, isOutdated},
		{"of that time", Sum{SHA256: other, Bytes: 5, Modified: info.ModTime()}, isDamage("it has 4 bytes")},
		{"touched", Sum{SHA256: good, Bytes: 4, Modified: info.ModTime().Add(-time.Second)}, isFine},
	} {
		tt.sum.File = name
		if err := tt.sum.Verify(t.Context()); !tt.ok(err) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&Sum{File: name, SHA256: good, Bytes: -1}).Verify(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := (&Sum{File: name + "2", SHA256: good}).Verify(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such file: %v", err)
	}
}

// Only a link into a folder of blobs, to a file with a sum for a name, is one of
// the hub's cache.
func TestOtherLinks(t *testing.T) {
	sum := sha256Of([]byte("x"))
	dir := folder(t, map[string]string{"blobs/weights": "x", "blobs/" + sum: "x", "others/" + sum: "x"})
	for target, want := range map[string]int{"blobs/weights": 0, "others/" + sum: 0, "blobs/" + sum: 1} {
		link := filepath.Join(dir, "link")
		if err := errors.Join(os.RemoveAll(link), os.Symlink(target, link)); err != nil {
			t.Skip(err)
		}
		if sums, bad := new(SumFinder).Find([]string{link}); len(sums) != want || len(bad) > 0 {
			t.Errorf("%s: %v, %v", target, sums, bad)
		}
	}
}
