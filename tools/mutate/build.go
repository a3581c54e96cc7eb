package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// runtimeSource is what the mutated package gets, in a file of its own.
//
//go:embed runtime.go.txt
var runtimeSource []byte

// binary is the test binary of a package, with all mutants of one package.
type binary struct {
	name      string
	dir       string // of the package with the tests
	runs      string // a folder for what tests leave
	namespace string // a file; "" where none is permitted
	onDisk    bool   // temporary files are
	tests     []*test
}

// build compiles the tests in the folder dir. The files of the package stay as
// they are: the compiler is given others in their place.
func (p *pkg) build(ctx context.Context, work, dir string) (*binary, error) {
	overlay, err := p.overlay(work)
	if err != nil {
		return nil, err
	}
	b := &binary{name: filepath.Join(work, "mutants.test"), dir: dir, runs: filepath.Join(work, "runs")}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", b.name, ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the mutants: %w\n%s", err, out)
	}
	return b, errors.Join(os.Mkdir(b.runs, 0o777), b.list(ctx))
}

// overlay writes the mutated files, and returns the name of the file that tells
// the compiler of them.
func (p *pkg) overlay(work string) (string, error) {
	replace := map[string]string{}
	add := func(name string, source []byte) error {
		temp := filepath.Join(work, fmt.Sprintf("%d.txt", len(replace)))
		replace[name] = temp
		return os.WriteFile(temp, source, 0o666)
	}
	for _, f := range p.files {
		if err := add(f.name, f.mutated()); err != nil {
			return "", err
		}
	}
	source := append([]byte("package "+p.name+"\n\n"), runtimeSource...)
	if err := add(filepath.Join(p.dir, "zz_mutants.go"), source); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(work, "overlay.json")
	return name, os.WriteFile(name, overlay, 0o666)
}

// list finds the names of the tests.
func (b *binary) list(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, b.name, "-test.list", ".")
	cmd.Dir = b.dir
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("listing the tests: %w", err)
	}
	for _, name := range strings.Fields(string(bytes.TrimSpace(out))) {
		if !strings.HasPrefix(name, "Benchmark") {
			b.tests = append(b.tests, &test{binary: b, name: name})
		}
	}
	return nil
}
