package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// TestHostileNames has a folder and checkpoints with names that would clear the screen: no message has
// them raw, nor has a list for people.
func TestHostileNames(t *testing.T) {
	const odd = "x\x1b[2J\u009b2J\r"
	dir := filepath.Join(t.TempDir(), odd)
	from := os.DirFS("../../fixtures/ckpt_v2/saver_history")
	if err := os.CopyFS(dir, from); err != nil {
		t.Skip(err) // this file system refuses such names
	}
	bad := filepath.Join(dir, odd+".safetensors")
	err := errors.Join(os.WriteFile(bad, []byte("no tensors"), 0o666), os.WriteFile(filepath.Join(dir, "model.ckpt-40.data-00000-of-00001"), nil, 0o666))
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"ls", dir}, {"ls", "--why", dir}, {"verify", dir}, {"verify", bad}, {"ls", bad}, {"gc", "-n", dir}, {"state", dir}, {"stat", dir}, {"ls", dir + "none"},
		{"meta", bad}, {"repair", "-n", bad}, {"convert", bad, filepath.Join(dir, "new.npz")}, {"cp", "--salvage", filepath.Join(dir, "model.ckpt-40"), filepath.Join(dir, "new")}, {odd},
	} {
		var out, errs bytes.Buffer
		run(t.Context(), append([]string{"ckpt"}, args...), &out, &errs)
		for _, line := range strings.FieldsFunc(out.String()+errs.String(), func(r rune) bool { return r == '\n' || r == '\t' }) {
			if strings.ContainsFunc(line, unicode.IsControl) {
				t.Errorf("%s: printed %q", args[0], line)
			}
		}
	}
}
