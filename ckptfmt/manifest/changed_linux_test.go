package manifest

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/internal/machine"
	"github.com/trainerd/trainerd/internal/nobody"
)

// What the kernel says counts from the moment of the look for an hour.
func TestUntouchedForAnHour(t *testing.T) {
	dir := folder(t, map[string]string{"ckpt.pt": "weights"})
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	info, err := root.Lstat("ckpt.pt")
	if err != nil {
		t.Fatal(err)
	}
	r := Record{Boot: machine.BootID(), Files: []RecordFile{{Name: "ckpt.pt", Changed: changedAt(info)}}}
	synctest.Test(t, func(t *testing.T) {
		for age, want := range map[time.Duration]bool{-1: false, 0: true, untouchedFor: true, untouchedFor + 1: false} {
			r.Verified = time.Now().Add(-age)
			if got := r.IsUntouched(root); got != want {
				t.Errorf("verified %v ago: it is untouched: %v", age, got)
			}
		}
	})
}

// A file that another has replaced, or that was written to, within the same tick of the clock is not as it was:
// its time is.
func TestIsUnchanged(t *testing.T) {
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"weights", "more weights"} {
		var before, now fs.FileInfo
		for range 1000 { // until two files have one time
			dir := t.TempDir()
			one, two := filepath.Join(dir, "1"), filepath.Join(dir, "2")
			write(one, "weights")
			write(two, text)
			var err, err2 error
			before, err = os.Lstat(one)
			now, err2 = os.Lstat(two)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			if changedAt(before).Equal(changedAt(now)) && before.ModTime().Equal(now.ModTime()) {
				break
			}
		}
		if isUnchanged(before, now) || !isUnchanged(before, before) {
			t.Errorf("a file with %q is taken for another", text)
		}
	}
	name := filepath.Join(t.TempDir(), "ckpt.pt")
	write(name, "weights")
	before, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	for now := before; changedAt(now).Equal(changedAt(before)); {
		write(name, "WEIGHTS")
		if err := os.Chtimes(name, before.ModTime(), before.ModTime()); err != nil {
			t.Fatal(err)
		}
		if now, err = os.Lstat(name); err != nil {
			t.Fatal(err)
		}
		if !changedAt(now).Equal(changedAt(before)) && isUnchanged(before, now) {
			t.Error("a file that was written to, with the same length and time, is unchanged")
		}
	}
}

// A file that may not be read has no sum, and that is an error.
func TestDescribeUnreadable(t *testing.T) {
	dir := folder(t, map[string]string{"ckpt.pt": "weights"})
	if err := os.Chmod(filepath.Join(dir, "ckpt.pt"), 0); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	nobody.Become(t)
	if files, err := Describe(t.Context(), root, []string{"ckpt.pt"}); !os.IsPermission(err) {
		t.Errorf("it is described as %+v, %v", files, err)
	}
}

// unknownFile is a file that the system says nothing about.
type unknownFile struct{ fs.FileInfo }

func (unknownFile) Sys() any { return nil }

// Of what is not a file of the system it is not known when it was changed.
func TestStampOfUnknown(t *testing.T) {
	if at := stampOf(unknownFile{}); !at.IsZero() {
		t.Errorf("the stamp is %v", at)
	}
}
