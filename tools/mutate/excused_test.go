package main

import (
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/tools/internal/excuse"
)

// Every excuse is of a mutant that there is. Otherwise the code has changed, and nobody has judged
// what it became.
func TestExcusesAreOfMutants(t *testing.T) {
	excused, err := excuse.Read("excused.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range excused.Packages() {
		p, err := load(filepath.Join("..", ".."), "./"+name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range p.mutants {
			excused.Excused(m.key())
		}
		for _, key := range excused.Unused(name) {
			t.Errorf("there is no such mutant: %s", key)
		}
	}
}
