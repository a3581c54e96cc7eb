// Command asmgen writes the assembly of internal/blas, internal/crc32c,
// internal/jpeg, internal/parallel, internal/vec and philox, and the Go declarations of its
// functions: for amd64 with avo, which knows its instructions and allocates
// registers, and for arm64 by itself.
//
//	go run ./asmgen ..
//
// Its argument is the root of the repository.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

// unit is one package's assembly.
type unit struct {
	dir, pkg string
	amd64    func(c *build.Context)
	arm64    func(f *neonFile) // nil for none
}

var units = []unit{
	{"internal/blas", "blas", emitBLAS, emitNEONBLAS},
	{"internal/crc32c", "crc32c", emitCRC, nil},
	{"internal/jpeg", "jpeg", emitJPEG, nil},
	{"internal/parallel", "parallel", emitPause, nil},
	{"internal/vec", "vec", emitVec, emitNEONVec},
	{"trainerd/runtime/internal/philox", "philox", emitPhilox, emitNEONPhilox},
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "asmgen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("the one argument is the root of the repository")
	}
	for _, u := range units {
		if err := u.write(args[0]); err != nil {
			return fmt.Errorf("%s: %w", u.dir, err)
		}
	}
	return nil
}

func (u unit) write(root string) error {
	if err := u.writeAMD64(root); err != nil || u.arm64 == nil {
		return err
	}
	f := &neonFile{pkg: u.pkg}
	u.arm64(f)
	return errors.Join(u.save(root, "asm_arm64.s", f.assembly()), u.save(root, "asm_arm64.go", f.declarations()))
}

func (u unit) save(root, name string, text []byte) error {
	return os.WriteFile(filepath.Join(root, u.dir, name), append(bytes.TrimSpace(text), '\n'), 0o644)
}

func (u unit) writeAMD64(root string) error {
	c := build.NewContext()
	c.ConstraintExpr("amd64,!noasm")
	u.amd64(c)
	file, err := c.Result()
	if err != nil {
		build.LogError(log.New(os.Stderr, "", 0), err, 0)
		return err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return err
	}
	encodePairs(file)
	cfg := printer.Config{Argv: []string{"go", "run", "./asmgen", ".."}, Name: "asmgen", Pkg: u.pkg}
	for name, p := range map[string]printer.Printer{"asm_amd64.s": printer.NewGoAsm(cfg), "asm_amd64.go": printer.NewStubs(cfg)} {
		text, err := p.Print(file)
		if err != nil {
			return err
		}
		if err := u.save(root, name, text); err != nil {
			return err
		}
	}
	return nil
}

// declare begins a function, which neither grows the stack nor keeps its arguments. What
// it does follows its name in the comment.
func declare(c *build.Context, name, does, signature string) {
	c.Function(name)
	c.Attributes(attr.NOSPLIT)
	c.Pragma("noescape")
	c.Doc(name + " " + does + ".")
	c.SignatureExpr(signature)
}
