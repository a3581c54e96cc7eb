package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// The commands, and the shells that they write completions for: the folder and
// name that each shell looks for.
var (
	commands    = []string{"trainerd", "ckpt", "tfevents"}
	completions = []struct{ shell, name string }{
		{"bash", "bash-completion/completions/%s"},
		{"zsh", "zsh/site-functions/_%s"},
		{"fish", "fish/vendor_completions.d/%s.fish"},
	}
)

// target is a system that the commands are built for.
type target struct {
	*release
	os, arch string
	stage    string // bin and share, as below /usr
}

// command returns the file of a command that has been built.
func (t *target) command(name string) string {
	if t.os == "windows" {
		name += ".exe"
	}
	return filepath.Join(t.stage, "bin", name)
}

func (t *target) make(texts string) error {
	bin := filepath.Join(t.stage, "bin")
	if err := t.build(t.os, t.arch, bin); err != nil {
		return err
	}
	if t.os == "linux" {
		for _, name := range commands {
			if err := checkStatic(t.command(name)); err != nil {
				return err
			}
		}
	}
	if err := os.CopyFS(filepath.Join(t.stage, "share"), os.DirFS(texts)); err != nil {
		return err
	}
	if err := t.writeLicenses(); err != nil {
		return err
	}
	base := filepath.Join(t.out, fmt.Sprintf("trainerd_%s_%s_%s", t.version, t.os, t.arch))
	if err := t.writeArchive(base); err != nil {
		return err
	}
	if err := t.writeBill(base + ".cdx.json"); err != nil {
		return err
	}
	if t.os != "linux" {
		return nil
	}
	return errors.Join(t.writePackage("deb"), t.writePackage("rpm"), t.writeImage(base+".oci.tar"))
}

// build builds the commands into dir.
func (r *release) build(goos, arch, dir string) error {
	stamp := "-ldflags=-s -w -X github.com/trainerd/trainerd/cmd/internal/version.release=" + r.version
	cmd := exec.Command("go", "build", "-trimpath", stamp, "-o", dir+string(filepath.Separator), "./cmd/...")
	cmd.Dir, cmd.Stderr = r.root, os.Stderr
	cmd.Env = environment(goos, arch)
	return cmd.Run()
}

// environment returns the environment of the go command for a system. What its user has
// set, also by go env -w, does not show in what is built: GOAMD64=v3 would, for instance.
func environment(goos, arch string) []string {
	return append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "GOEXPERIMENT=", "CGO_ENABLED=0",
		"GOOS="+goos, "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0")
}

// writeTexts writes the manual pages and completions, as below share. The
// commands have them, so those of this machine are built for it.
func (r *release) writeTexts(dir string) error {
	bin := filepath.Join(filepath.Dir(dir), "host")
	if err := r.build(runtime.GOOS, runtime.GOARCH, bin); err != nil {
		return err
	}
	for _, name := range commands {
		command := filepath.Join(bin, name)
		if err := capture(filepath.Join(dir, "man", "man1", name+".1"), command, "man"); err != nil {
			return err
		}
		for _, c := range completions {
			file := filepath.Join(dir, filepath.FromSlash(fmt.Sprintf(c.name, name)))
			if err := capture(file, command, "completion", c.shell); err != nil {
				return err
			}
		}
	}
	return nil
}

// capture writes what a command prints to a file.
func capture(file, command string, args ...string) error {
	text, err := exec.Command(command, args...).Output()
	if err != nil {
		return fmt.Errorf("%s %v: %w", command, args, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// checkStatic makes sure that a program needs no libraries of its machine.
func checkStatic(name string) error {
	f, err := elf.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			return fmt.Errorf("%s is not static", filepath.Base(name))
		}
	}
	return nil
}
