package main

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/cover"
)

const text = `package p

func (s *store) take(name string) error {
	if err := s.open(name); err != nil {
		return err
	}
	switch name {
	case "a", "b":
		s.n++
		return nil
	}
	if name == "" {
		return nil
	} else {
		s.n--
	}
	return s.put(name,
		name)
}
`

// A block is named by its function, its condition and its code, not by its line.
func TestBlock(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "p.go"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := parse(root, "p.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		block cover.ProfileBlock
		want  string
	}{
		{cover.ProfileBlock{StartLine: 4, StartCol: 38, EndLine: 6, EndCol: 3}, "if err := s.open(name); err != nil { return err }"},
		{cover.ProfileBlock{StartLine: 8, StartCol: 17, EndLine: 10, EndCol: 13}, `case "a", "b" { s.n++ return nil }`},
		{cover.ProfileBlock{StartLine: 14, StartCol: 9, EndLine: 16, EndCol: 3}, `else of if name == "" { s.n-- }`},
		{cover.ProfileBlock{StartLine: 17, StartCol: 2, EndLine: 18, EndCol: 8}, "{ return s.put(name, name) }"},
	} {
		function, got := s.block(tt.block)
		if function != "(*store).take" || got != tt.want {
			t.Errorf("line %d: %s: %s, want %s", tt.block.StartLine, function, got, tt.want)
		}
	}
}
