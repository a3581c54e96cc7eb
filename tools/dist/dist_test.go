package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/goreleaser/nfpm/v2"
)

// stage makes a target whose commands are all the same.
func stage(t *testing.T, command []byte) *target {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	r := &release{root: root, out: t.TempDir(), version: "1.2.3-rc.1", epoch: time.Unix(1_700_000_000, 0).UTC()}
	x := &target{release: r, os: "linux", arch: "amd64", stage: t.TempDir()}
	write := func(name string, text []byte, mode os.FileMode) {
		file := filepath.Join(x.stage, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, text, mode)); err != nil {
			t.Fatal(err)
		}
	}
	write("share/"+licensesFile, []byte("licenses"), 0o644)
	for _, c := range commands {
		write("bin/"+c, command, 0o755)
		write("share/man/man1/"+c+".1", []byte("manual"), 0o644)
		for _, shell := range completions {
			write("share/"+fmt.Sprintf(shell.name, c), []byte("completion"), 0o644)
		}
	}
	return x
}

// contents returns the members of an archive with their modes.
func contents(t *testing.T, name string) map[string]int64 {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]int64{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return modes
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Uname != "" || h.ModTime.Unix() != 1_700_000_000 {
			t.Errorf("%s shows its maker: %+v", h.Name, h)
		}
		modes[h.Name] = h.Mode
	}
}

// twice makes a file two times, wants the same bytes, and returns its name.
func twice(t *testing.T, name string, make func(name string) error) string {
	t.Helper()
	first, second := filepath.Join(t.TempDir(), name), filepath.Join(t.TempDir(), name)
	if err := errors.Join(make(first), make(second)); err != nil {
		t.Fatal(err)
	}
	a, _ := os.ReadFile(first)
	b, _ := os.ReadFile(second)
	if len(a) == 0 || !bytes.Equal(a, b) {
		t.Errorf("%s made twice from the same differs", name)
	}
	return first
}

func TestArchive(t *testing.T) {
	x := stage(t, []byte("program"))
	first := twice(t, "a.tar.gz", func(name string) error { return x.writeArchive(strings.TrimSuffix(name, ".tar.gz")) })
	modes := contents(t, first)
	for name, mode := range map[string]int64{
		"a/bin/trainerd": 0o755, "a/share/man/man1/ckpt.1": 0o644, "a/systemd/trainerd@.service": 0o644, "a/LICENSE": 0o644,
		"a/doc/systems.md": 0o644,
	} {
		if modes[name] != mode {
			t.Errorf("%s has mode %o, want %o", name, modes[name], mode)
		}
	}
	for name := range modes {
		if strings.HasSuffix(name, ".go") {
			t.Errorf("%s is in the archive", name)
		}
	}
}

func TestBill(t *testing.T) {
	own, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	x := stage(t, own)
	name := filepath.Join(x.out, "a.json")
	if err := x.writeBill(name); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var b bill
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	refs := map[string]bool{"trainerd": true}
	for _, c := range b.Components {
		if refs[c.Ref] {
			t.Errorf("%s is there twice", c.Ref)
		}
		refs[c.Ref] = true
	}
	if !refs["pkg:golang/std@"+strings.TrimPrefix(runtime.Version(), "go")] || !refs["command:ckpt"] {
		t.Errorf("components %v", refs)
	}
	for _, d := range b.Dependencies {
		for _, ref := range append(d.DependsOn, d.Ref) {
			if !refs[ref] {
				t.Errorf("%s is no component", ref)
			}
		}
	}
	if len(b.SerialNumber) != len("urn:uuid:")+36 {
		t.Errorf("serial number %q", b.SerialNumber)
	}
}

// Each module of the bill has its license in the text, and what a text asks to be
// passed on with it.
func TestLicenses(t *testing.T) {
	x := stage(t, nil)
	if err := x.writeLicenses(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(x.stage, "share", licensesFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"=== the library of Go\n", "Copyright 2009 The Go Authors.", "=== google.golang.org/grpc@", "/NOTICE.txt\n",
		"=== github.com/klauspost/compress@", "/snappy/LICENSE\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in the licenses", want)
		}
	}
	if strings.Contains(string(text), "trainerd/trainerd@") {
		t.Error("our own license is among those of others")
	}
}

// What the user of the go command has set does not show in what is built.
func TestEnvironment(t *testing.T) {
	t.Setenv("GOAMD64", "v3")
	t.Setenv("GOFLAGS", "-tags=mine")
	got, err := stage(t, nil).golang("env", "GOAMD64", "GOFLAGS")
	if err != nil || got != "v1\n-mod=readonly\n" {
		t.Errorf("go env says %q, %v", got, err)
	}
}

func TestPackages(t *testing.T) {
	for _, tc := range []struct{ format, arch, name string }{
		{"deb", "amd64", "trainerd_1.2.3~rc.1_amd64.deb"}, {"rpm", "amd64", "trainerd-1.2.3~rc.1-1.x86_64.rpm"},
		{"deb", "arm64", "trainerd_1.2.3~rc.1_arm64.deb"}, {"rpm", "arm64", "trainerd-1.2.3~rc.1-1.aarch64.rpm"},
	} {
		x := stage(t, []byte("program"))
		x.arch = tc.arch
		if err := x.writePackage(tc.format); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(x.out, tc.name))
		if err != nil || info.Size() == 0 {
			t.Errorf("%s for %s: %v", tc.format, tc.arch, err)
		}
	}
	x := stage(t, []byte("program"))
	info, err := x.describePackage("deb")
	if err != nil {
		t.Fatal(err)
	}
	checkContents(t, info)
}

func checkContents(t *testing.T, info *nfpm.Info) {
	t.Helper()
	modes := map[string]os.FileMode{}
	for _, c := range info.Contents {
		modes[c.Destination] = c.FileInfo.Mode.Perm()
	}
	for name, mode := range map[string]os.FileMode{
		"/usr/bin/trainerd": 0o755, "/usr/bin/ckpt": 0o755, "/usr/bin/tfevents": 0o755,
		"/usr/lib/systemd/system/trainerd@.service": 0o644, "/usr/lib/sysusers.d/trainerd.conf": 0o644,
		"/usr/share/doc/trainerd/third-party-licenses.txt": 0o644, "/usr/share/man/man1/trainerd.1": 0o644, "/usr/share/zsh/vendor-completions/_trainerd": 0o644,
		"/etc/trainerd/": 0o755,
	} {
		if modes[name] != mode {
			t.Errorf("%s has mode %o, want %o", name, modes[name], mode)
		}
	}
}

func TestSums(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("abc"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := writeSums(dir); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if want := "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n"; string(got) != want {
		t.Errorf("sums %q, want %q", got, want)
	}
}

func TestDescribe(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	r := stage(t, nil).release
	for version, ok := range map[string]bool{"1.2.3": true, "1.2.3-rc.1": true, "1.2": false, "v1.2.3": false, "1.2.3 x": false} {
		r.version = version
		if err := r.describe(); err == nil != ok {
			t.Errorf("version %q: %v", version, err)
		}
	}
	r.version = ""
	if err := r.describe(); err != nil || !semver.MatchString(r.version) {
		t.Errorf("version of the commit %q: %v", r.version, err)
	}
}

func TestCheckStatic(t *testing.T) {
	if err := checkStatic("main.go"); err == nil {
		t.Error("a text is a static program")
	}
}
