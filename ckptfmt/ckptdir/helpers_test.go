package ckptdir

import (
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
)

// fixtureDir holds files that TensorFlow wrote.
const fixtureDir = "../../fixtures"

// saveCheckpoint saves a bundle with a few tensors.
func saveCheckpoint(t testing.TB, prefix string) {
	t.Helper()
	w, err := ckptfmt.CreateBundle(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	text, err := ckptfmt.FromValues([]int64{3}, []string{"", "ab", strings.Repeat("c", 200)})
	if err != nil {
		t.Fatal(err)
	}
	part, err := ckptfmt.FromValues([]int64{2}, []float32{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		w.Add("global_step", ckptfmt.Scalar(int64(7))),
		w.Add("strings", text),
		w.AddSlice("part", []int64{4}, ckptfmt.TensorSlice{Start: []int64{0}, Length: []int64{2}}, part),
		w.AddSlice("part", []int64{4}, ckptfmt.TensorSlice{Start: []int64{2}, Length: []int64{2}}, part),
		w.Finish(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func verifyBundle(t *testing.T, prefix string) error {
	t.Helper()
	return Verify(t.Context(), prefix)
}

// fileNames returns the names in a directory, in order.
func fileNames(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func saveOne(fsys ckptfmt.FS, prefix, name string, step int64) (err error) {
	w, err := ckptfmt.CreateBundle(prefix, &ckptfmt.BundleWriterOptions{FS: fsys})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return errors.Join(w.Add(name, ckptfmt.Scalar(float32(step))), w.Add(name+"/step", ckptfmt.Scalar(step)), w.Finish())
}

func decodeHex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
