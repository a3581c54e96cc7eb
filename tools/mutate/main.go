// Command mutate tests the tests of a package: it plants small mistakes, one at
// a time, and reports those that no test of the package notices.
//
// Usage: mutate [-jobs N] [-run REGEXP] [-list] [-new LIST] [-v] [-with FOLDER,...] [-tests REGEXP] [-longest 1m] [-disk] ROOT PACKAGE...
//
// The mistakes are: a condition negated; < for <=, and the reverse; && for ||;
// + for -, * for /; an integer one nearer to 0, and 0 one more; true for false; an
// error returned as nil; a statement left out.
//
// All mutants of a package are compiled into one test binary, and an
// environment variable selects one. Each of the package's tests first runs
// alone, without a mutant, and records which mutants it reaches; a mutant is
// then judged by these tests only: those that have killed others of the same
// function come first, then the quick ones. It is killed if one of them fails, or
// takes far longer than it did. Code that no test reaches is the job of the command
// uncovered. An interrupt ends the judging, and what was found is reported.
//
// A mutant that no test can kill, because it changes nothing that anyone can
// observe, has a line with the reason in excused.txt, and is not judged.
//
// Mutants may delete or signal what they please. Where this is permitted, they
// run in namespaces of their own: without the processes of the machine, with
// all file systems read-only but an empty one for temporary files.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/tools/internal/excuse"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

type options struct {
	root    string
	jobs    int
	list    bool
	verbose bool
	with    []string // folders of other packages with tests
	longest time.Duration
	disk    bool            // temporary files are on a disk
	only    *regexp.Regexp  // of the descriptions of mutants; nil means all
	earlier map[string]bool // mutants that are not judged again, by their keys
	tests   *regexp.Regexp  // of the names of tests that judge
}

// run reports whether every mutant is killed or excused.
func run(ctx context.Context, args []string) (bool, error) {
	var o options
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.IntVar(&o.jobs, "jobs", 2, "mutants that run at the same time")
	flags.BoolVar(&o.list, "list", false, "list the mutants and run none")
	flags.BoolVar(&o.verbose, "v", false, "also list the mutants that no test reaches")
	flags.DurationVar(&o.longest, "longest", time.Minute, "leave out tests that take longer")
	flags.BoolVar(&o.disk, "disk", false, "temporary files are on the disk of ROOT, not in memory, for code that asks what a file system can do")
	with := flags.String("with", "", "folders of packages whose tests judge too, separated by commas")
	only := flags.String("run", "", "only mutants whose description matches this")
	earlier := flags.String("new", "", "only mutants that are not in this file, which -list wrote of an earlier commit")
	tests := flags.String("tests", "", "judge by tests of these names only, as by those of a slow package that are new")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if flags.NArg() < 2 {
		return false, fmt.Errorf("usage: mutate [-jobs N] [-run REGEXP] [-list] [-new LIST] [-v] [-with FOLDER,...] [-tests REGEXP] [-longest 1m] [-disk] ROOT PACKAGE...")
	}
	var err error
	if o.root, err = filepath.Abs(flags.Arg(0)); err != nil {
		return false, err
	}
	for folder := range strings.SplitSeq(*with, ",") {
		if folder != "" {
			o.with = append(o.with, filepath.Join(o.root, folder))
		}
	}
	if *only != "" {
		if o.only, err = regexp.Compile(*only); err != nil {
			return false, err
		}
	}
	if o.tests, err = regexp.Compile(*tests); err != nil {
		return false, err
	}
	if o.earlier, err = readKeys(*earlier); err != nil {
		return false, err
	}
	excused, err := excuse.Read(filepath.Join(o.root, "tools", "mutate", "excused.txt"))
	if err != nil {
		return false, err
	}
	ok := true
	for _, pattern := range flags.Args()[1:] {
		fine, err := mutatePackage(ctx, o, pattern, excused)
		if err != nil {
			return false, fmt.Errorf("%s: %w", pattern, err)
		}
		ok = ok && fine
	}
	return ok, nil
}

func mutatePackage(ctx context.Context, o options, pattern string, excused *excuse.List) (bool, error) {
	p, err := load(o.root, pattern)
	if err != nil {
		return false, err
	}
	if o.list {
		for _, m := range p.mutants {
			fmt.Println(m)
		}
		return true, nil
	}
	bin := filepath.Join(o.root, "bin")
	if err := os.MkdirAll(bin, 0o777); err != nil {
		return false, err
	}
	work, err := os.MkdirTemp(bin, "mutate-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(work)
	for i, with := range append([]string{p.dir}, o.with...) {
		folder := filepath.Join(work, strconv.Itoa(i))
		if err := os.Mkdir(folder, 0o777); err != nil {
			return false, err
		}
		b, err := p.build(ctx, folder, with)
		if err != nil {
			return false, err
		}
		b.onDisk = o.disk
		defer b.enterNamespace(ctx)()
		if err := b.measure(ctx, p.mutants, o); err != nil {
			return false, err
		}
	}
	p.judgeAll(ctx, o, excused)
	return p.report(os.Stdout, excused, o.only == nil, o.verbose), ctx.Err()
}
