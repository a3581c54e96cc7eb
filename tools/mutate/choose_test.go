package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Of mutants that were listed at an earlier commit only the new ones are judged, wherever the others
// are now.
func TestOnlyNewMutants(t *testing.T) {
	old := &mutant{pkg: "a/b", file: "old.go", line: 7, function: "(*c).d", from: "if e { return }", to: "left out"}
	name := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(name, fmt.Appendln(nil, old), 0o666); err != nil {
		t.Fatal(err)
	}
	keys, err := readKeys(name)
	if err != nil {
		t.Fatal(err)
	}
	o := options{earlier: keys}
	moved := *old
	moved.file, moved.line = "new.go", 70
	changed := *old
	changed.from = "if f { return }"
	if o.judges(&moved) || !o.judges(&changed) {
		t.Errorf("judged: %v, %v; want only the second", o.judges(&moved), o.judges(&changed))
	}
}
