// Command uncovered prints the statements of packages that no test of the same
// package runs, but for those in excused.txt, which has a reason for each. It
// fails if there are any. The tests of packages that are joined by commas, such as a
// package and one that was split off, count for all of them.
//
// Usage: uncovered ROOT PACKAGE[,PACKAGE...]...
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/cover"

	"github.com/trainerd/trainerd/tools/internal/excuse"
)

const module = "github.com/trainerd/trainerd/"

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: uncovered ROOT PACKAGE...")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := run(ctx, os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "uncovered:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// run reports whether everything is covered or excused.
func run(ctx context.Context, root string, packages []string) (bool, error) {
	excused, err := excuse.Read(filepath.Join(root, "tools", "uncovered", "excused.txt"))
	if err != nil {
		return false, err
	}
	profiles, err := profile(ctx, root, packages)
	if err != nil {
		return false, err
	}
	count := map[string]*figures{}
	fine := true
	for _, p := range profiles {
		s, err := parse(root, strings.TrimPrefix(p.FileName, module))
		if err != nil {
			return false, err
		}
		f := count[s.pkg]
		if f == nil {
			f = &figures{}
			count[s.pkg] = f
		}
		for _, b := range p.Blocks {
			f.statements += b.NumStmt
			if b.Count > 0 || b.NumStmt == 0 {
				continue
			}
			f.uncovered += b.NumStmt
			function, text := s.block(b)
			if excused.Excused(fmt.Sprintf("%s %s: %s", s.pkg, function, text)) {
				f.excused += b.NumStmt
				continue
			}
			fine = false
			fmt.Printf("%s:%d: %s: %s\n", s.name, b.StartLine, function, text)
		}
	}
	return print(count, excused) && fine, nil
}

// profile runs the tests of the packages.
func profile(ctx context.Context, root string, packages []string) (all []*cover.Profile, err error) {
	alone := slices.DeleteFunc(slices.Clone(packages), func(p string) bool { return strings.Contains(p, ",") })
	if len(alone) > 0 {
		all, err = test(ctx, root, alone)
	}
	for _, joined := range packages {
		if err != nil || !strings.Contains(joined, ",") {
			continue
		}
		var more []*cover.Profile
		more, err = test(ctx, root, append([]string{"-coverpkg", joined}, strings.Split(joined, ",")...))
		all = append(all, more...)
	}
	return all, err
}

// test runs the tests of packages, each of which counts for its own package, unless the
// arguments say otherwise.
func test(ctx context.Context, root string, args []string) ([]*cover.Profile, error) {
	temp, err := os.MkdirTemp("", "uncovered-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	name := filepath.Join(temp, "profile")
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-coverprofile", name}, args...)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return cover.ParseProfiles(name)
}
