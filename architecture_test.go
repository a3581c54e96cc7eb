package layers_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	goFile    = regexp.MustCompile(`[A-Za-z0-9_/*]+\.go\b`)
	backticks = regexp.MustCompile("`[^`\n]+`")
)

// TestArchitectureNamesFilesThatExist holds doc/architecture.md against the tree: a
// reader who follows it finds each file, by its whole path or by the end of one, and
// each package.
func TestArchitectureNamesFilesThatExist(t *testing.T) {
	text, err := os.ReadFile("doc/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	paths := goPaths(t)
	for _, name := range goFile.FindAllString(string(text), -1) {
		if !slices.ContainsFunc(paths, func(p string) bool { return endsIn(p, name) }) {
			t.Errorf("doc/architecture.md names %s, which is not there", name)
		}
	}
	for _, quoted := range backticks.FindAllString(string(text), -1) {
		name := strings.Trim(quoted, "`")
		if root, _, _ := strings.Cut(name, "/"); root != "trainerd" && root != "cmd" && root != "internal" || strings.ContainsAny(name, "* .") {
			continue
		}
		if _, err := os.Stat(name); err != nil {
			t.Errorf("doc/architecture.md names %s: %v", name, err)
		}
	}
}

// TestArchitectureNamesEachPackage holds the diagram against the tree the other way round: it
// has each package that a program may import.
func TestArchitectureNamesEachPackage(t *testing.T) {
	text, err := os.ReadFile("doc/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```\n")
	diagram, _, _ := strings.Cut(rest, "```\n")
	for pkg := range imports(t) {
		root, _, _ := strings.Cut(pkg, "/")
		if !slices.Contains([]string{"tfevents", "ckptfmt", "trainerd"}, root) || strings.Contains(pkg, "internal/") {
			continue
		}
		if !regexp.MustCompile(`\b` + path.Base(pkg) + `\b`).MatchString(diagram) {
			t.Errorf("the diagram of doc/architecture.md lacks %s", pkg)
		}
	}
}

// endsIn reports whether a path ends in a pattern of as many folders or fewer.
func endsIn(name, pattern string) bool {
	for {
		if ok, err := filepath.Match(pattern, name); ok || err != nil {
			return ok
		}
		_, rest, more := strings.Cut(name, "/")
		if !more {
			return false
		}
		name = rest
	}
}

func goPaths(t *testing.T) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if strings.HasSuffix(name, ".go") {
			paths = append(paths, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
