package rewrite

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"

	"github.com/trainerd/trainerd/ckptfmt/layout"
)

func TestCopyFilesHasTheSameBytes(t *testing.T) {
	for _, from := range []string{"saver_sharded/model.ckpt-40", "damaged/ok_snappy_index/model.ckpt", "damaged/ok_big_endian/model.ckpt", "partitioned/model.ckpt"} {
		from = filepath.Join(fixtures, "ckpt_v2", from)
		to := filepath.Join(t.TempDir(), "new", "copy")
		read := 0
		if err := CopyFiles(context.Background(), from, to, &CopyFilesOptions{Progress: func(n int) { read += n }}); err != nil {
			t.Fatal(err)
		}
		names, err := layout.Files(from)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			suffix := strings.TrimPrefix(name, filepath.Base(from))
			if suffix == layout.MetaSuffix {
				continue
			}
			want, err := os.ReadFile(from + suffix)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(to + suffix); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s%s differs: %v", from, suffix, err)
			}
		}
		if read == 0 {
			t.Errorf("%s: no progress", from)
		}
	}
}

// What is damaged replaces nothing and leaves nothing.
func TestCopyFilesOfADamagedCheckpoint(t *testing.T) {
	to := save(t, ckptfmt.NamedTensor{Name: "old", Tensor: ckptfmt.Scalar(int64(1))})
	before, err := os.ReadDir(filepath.Dir(to))
	if err != nil {
		t.Fatal(err)
	}
	var corrupt *ckptfmt.CorruptError
	if err := CopyFiles(context.Background(), fixtures+"ckpt_v2/damaged/data_flip/model.ckpt", to, nil); !errors.As(err, &corrupt) {
		t.Errorf("error %v", err)
	}
	ended, end := context.WithCancel(context.Background())
	end()
	if err := CopyFiles(ended, fixtures+"ckpt_v2/partitioned/model.ckpt", to, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	after, err := os.ReadDir(filepath.Dir(to))
	if err != nil || len(after) != len(before) {
		t.Errorf("%v are left, %v", after, err)
	}
	if err := ckptdir.Verify(t.Context(), to); err != nil {
		t.Error(err)
	}
}

// TestShardsThatFail has a shard fail after others were written: none is left.
func TestShardsThatFail(t *testing.T) {
	s := open(t, save(t, tensor(t, "a", []int64{2}, 1, 2.0), tensor(t, "b", []int64{2}, 3, 4.0)))
	damage := errors.New("a bad disk")
	for i, p := range s.parts {
		if p.Name == "b" {
			s.parts[i].Open = func() (io.ReadCloser, error) { return nil, damage }
		}
	}
	dir := t.TempDir()
	err := Write(t.Context(), s, filepath.Join(dir, "m.safetensors"), &Options{MaxShardSize: 16})
	left, readErr := os.ReadDir(dir)
	if !errors.Is(err, damage) || readErr != nil || len(left) > 0 {
		t.Errorf("%v; left are %v, %v", err, left, readErr)
	}
}
