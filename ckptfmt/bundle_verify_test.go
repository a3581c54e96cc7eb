package ckptfmt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/crc32c"
	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Two tensors in one place, as an index may claim to make little data much.
func TestVerifyFindsSharedBytes(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "model.ckpt")
	data := []byte("12345678")
	entry := tfproto.Marshal(&tfpb.BundleEntryProto{
		Dtype: tfpb.DataType_DT_UINT8, Shape: shapeProto([]int64{8}), Size: 8, Crc32C: crc32c.Masked(data),
	})
	writeIndexFile(t, prefix, map[string][]byte{"": tfproto.Marshal(newHeader(1)), "a": entry, "b": entry, "c": entry})
	if err := os.WriteFile(layout.DataName(prefix, 0, 1), data, 0o666); err != nil {
		t.Fatal(err)
	}
	var corrupt *CorruptError
	if err := verifyAll(t, prefix); !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "shares bytes") {
		t.Errorf("error %v", err)
	}
	r, err := OpenBundle(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	shared := 0
	for name, err := range r.Verify(t.Context()) {
		if err != nil && strings.Contains(err.Error(), "shares bytes") && name != "a" {
			shared++
		}
	}
	if shared != 2 {
		t.Errorf("%d tensors share the bytes of another, want 2", shared)
	}
	for _, err := range r.Verify(t.Context()) {
		if err != nil {
			break // the loop may end there
		}
	}
}

// Where the file of many small tensors cannot be opened, each of them is told so.
func TestVerifySmallTensorsWithoutFile(t *testing.T) {
	w, prefix := newBundle(t, nil)
	for _, name := range []string{"a", "b", "c"} {
		if err := w.Add(name, &Tensor{DType: tfpb.DataType_DT_UINT8, Shape: []int64{1}, Data: []byte{1}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	file := layout.DataName(prefix, 0, 1)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	r, err := OpenBundle(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	verified := 0
	for name, err := range r.Verify(t.Context()) {
		if verified++; !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if verified != 3 {
		t.Errorf("%d tensors have a verdict", verified)
	}
}

// TestVerifySmallTensors damages one of many small tensors, which are read together, and
// cuts the file within another.
func TestVerifySmallTensors(t *testing.T) {
	for _, alignment := range []int{1, 64} {
		w, prefix := newBundle(t, &BundleWriterOptions{Alignment: alignment})
		var names []string
		for i := range 3 * runLength {
			names = append(names, fmt.Sprintf("t%05d", i))
			data := bytes.Repeat([]byte{byte(i)}, i%400)
			if err := w.Add(names[i], &Tensor{DType: tfpb.DataType_DT_UINT8, Shape: []int64{int64(len(data))}, Data: data}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		r, err := OpenBundle(prefix, nil)
		if err != nil {
			t.Fatal(err)
		}
		bad, err := r.Info("t01500")
		lost, err2 := r.Info("t03000")
		if err := errors.Join(err, err2, r.Close()); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(layout.DataName(prefix, 0, 1))
		if err != nil {
			t.Fatal(err)
		}
		data[bad.Offset+5] ^= 1
		if err := os.WriteFile(layout.DataName(prefix, 0, 1), data[:lost.Offset+1], 0o666); err != nil {
			t.Fatal(err)
		}
		if r, err = OpenBundle(prefix, nil); err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var got []string
		for name, err := range r.Verify(t.Context()) {
			got = append(got, name)
			i := len(got) - 1
			if wrong := name == "t01500" || i >= 3000 && i%400 > 0; wrong != (err != nil) || wrong && !strings.Contains(err.Error(), name) {
				t.Errorf("alignment %d: %s: %v", alignment, name, err)
			}
		}
		if !slices.Equal(got, names) {
			t.Errorf("alignment %d: %d tensors were verified, or not in their order", alignment, len(got))
		}
	}
}

func TestVerifyStopsEarly(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "model.ckpt")
	saveSmall(t, prefix)
	r, err := OpenBundle(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	before := runtime.NumGoroutine()
	for range r.Verify(t.Context()) {
		break
	}
	// One that has said it is done may still be about to end.
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines became %d", before, runtime.NumGoroutine())
		}
	}
}
