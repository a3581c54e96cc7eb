// Command dist makes what is published: for each system static commands in an
// archive, for Linux a .deb, an .rpm and a container image too, an SBOM and the
// checksums of all.
//
//	go run ./dist [-version V] [-targets linux/amd64,...] [-out DIR] ..
//
// Its argument is the root of the repository. It writes
//
//	trainerd_V_OS_ARCH.tar.gz       commands, manual pages, completions, units (.zip for Windows)
//	trainerd_V_ARCH.deb, .rpm       as packaging/nfpm.yaml says
//	trainerd_V_linux_ARCH.oci.tar   an image with the commands, for docker load and podman load
//	trainerd_V_OS_ARCH.cdx.json     the modules in them, in CycloneDX's form
//	SHA256SUMS                      of all these
//
// The same commit gives the same bytes: times are those of the commit, or of
// SOURCE_DATE_EPOCH.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const defaultTargets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

// release is what is being made.
type release struct {
	root, out string
	version   string // semantic, without v
	epoch     time.Time
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("dist", flag.ContinueOnError)
	version := flags.String("version", "", "the version, as in 1.2.3; default: of the git tag, or one below all for the commit")
	targets := flags.String("targets", defaultTargets, "systems and architectures")
	out := flags.String("out", "", "the folder for the results; default: bin/dist in the repository")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("want one argument, the root of the repository")
	}
	root, err := filepath.Abs(flags.Arg(0))
	if err != nil {
		return err
	}
	r := &release{root: root, out: *out, version: *version}
	if r.out == "" {
		r.out = filepath.Join(root, "bin", "dist")
	}
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	if err := r.describe(); err != nil {
		return err
	}
	return r.make(strings.Split(*targets, ","))
}

// describe finds the version and the time of the release.
func (r *release) describe() error {
	stamp, err := r.git("log", "-1", "--abbrev=12", "--format=%ct %h")
	if err != nil {
		return err
	}
	seconds, hash, _ := strings.Cut(stamp, " ")
	if given := os.Getenv("SOURCE_DATE_EPOCH"); given != "" {
		seconds = given
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("the time of the release: %w", err)
	}
	r.epoch = time.Unix(n, 0).UTC()
	if r.version == "" {
		r.version = "0.0.0-" + r.epoch.Format("20060102150405") + "." + hash
		if tag, err := r.git("describe", "--exact-match", "--tags", "--match", "v*"); err == nil {
			r.version = strings.TrimPrefix(tag, "v")
		}
	}
	if !semver.MatchString(r.version) {
		return fmt.Errorf("version %q: want one such as 1.2.3 or 1.2.3-rc.1", r.version)
	}
	return nil
}

var semver = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

func (r *release) git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.root
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(text)), nil
}

// make makes everything for the targets, in a fresh folder.
func (r *release) make(targets []string) error {
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "trainerd-dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	texts := filepath.Join(work, "texts")
	if err := r.writeTexts(texts); err != nil {
		return err
	}
	for _, name := range targets {
		goos, arch, ok := strings.Cut(name, "/")
		if !ok {
			return fmt.Errorf("target %q: want one such as linux/amd64", name)
		}
		t := &target{release: r, os: goos, arch: arch, stage: filepath.Join(work, goos+"_"+arch)}
		if err := t.make(texts); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return writeSums(r.out)
}
