//go:build unix

package child

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestMoveAside moves what is damaged and newer than all else, and that alone.
func TestMoveAside(t *testing.T) {
	dir, st := t.TempDir(), childtest.Tensors()
	for step, text := range map[int]string{5: "", 10: st, 20: st[:30], 30: ""} {
		childtest.Write(t, filepath.Join(dir, fmt.Sprintf("out/checkpoint-%d/model.safetensors", step)), text)
	}
	s := openShelf(t, dir, "*/checkpoint-*")
	r := &run{Supervisor: &Supervisor{}, log: discard, store: s, counts: &counts{}}
	s.Refresh(true)
	r.quarantineDamaged(t.Context())
	left, err := filepath.Glob(filepath.Join(dir, "out", "*"))
	if want := []string{filepath.Join(dir, "out/checkpoint-10"), filepath.Join(dir, "out/checkpoint-5")}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left %v, %v", left, err)
	}
	moved, err := filepath.Glob(filepath.Join(dir, "damaged", "checkpoint-*", "checkpoint-*", "model.safetensors"))
	if err != nil || len(moved) != 2 {
		t.Errorf("moved %v, %v", moved, err)
	}
	if added, bad := s.Refresh(true); added != nil || bad != nil {
		t.Errorf("what was moved is found again: %v, %v", added, bad)
	}
}
