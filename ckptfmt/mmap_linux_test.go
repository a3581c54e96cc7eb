package ckptfmt

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/layout"
)

// A view is the file itself, mapped until the reader is closed, and given back once.
func TestViewIsMapped(t *testing.T) {
	w, prefix := newBundle(t, nil)
	if err := errors.Join(w.Add("a", Scalar(int64(1))), w.Finish()); err != nil {
		t.Fatal(err)
	}
	isMapped := func() bool {
		t.Helper()
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Skip(err)
		}
		return strings.Contains(string(maps), layout.DataName(prefix, 0, 1))
	}
	r := openBundle(t, prefix, &ReaderOptions{Mmap: true})
	if isMapped() {
		t.Error("it is mapped before a view")
	}
	if v, err := r.View("a"); err != nil || v.Data[0] != 1 || !isMapped() {
		t.Errorf("viewed is %v, %v; mapped: %v", v, err, isMapped())
	}
	if err := r.Close(); err != nil || isMapped() {
		t.Errorf("Close: %v; mapped: %v", err, isMapped())
	}
	if err := r.Close(); errors.Is(err, syscall.EINVAL) {
		t.Errorf("closed once more: %v", err)
	}
}
