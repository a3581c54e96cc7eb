package layers_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/trainerd/trainerd/"

// layers is the order in which packages may build on each other: a package may
// import packages of the lines above its own, and, on its own line, those in
// its own group, never those across a "|".
const layers = `
	proto proto/tbpb proto/tbdata
	internal/...
	tfevents/... | ckptfmt/...
	trainerd/graph/attr | trainerd/graph/literal
	trainerd/graph
	trainerd/graph/optimizer
	trainerd/session
	trainerd/internal/sessiontest
	trainerd/coord | trainerd/logdir | trainerd/eventlog | trainerd/savedmodel
	trainerd/checkpoint | trainerd/hook | trainerd/variables
	trainerd/child/internal/childtest
	trainerd/child/found
	trainerd/report
	trainerd
	trainerd/dataset/table | trainerd/dataset/crossval | trainerd/child/system
	trainerd/dataset | trainerd/systemd | trainerd/control | trainerd/child | trainerd/recipe
	trainerd/model | trainerd/prove
	trainerd/runtime/internal/philox trainerd/runtime/internal/farmhash trainerd/runtime/internal/cmat
	trainerd/runtime/internal/exec
	trainerd/runtime/internal/kernels/elem trainerd/runtime/internal/kernels/gemm
	trainerd/runtime/internal/kernels/variant
	trainerd/runtime/internal/kernels/array | trainerd/runtime/internal/kernels/audio | trainerd/runtime/internal/kernels/control | trainerd/runtime/internal/kernels/data trainerd/runtime/internal/kernels/queue trainerd/runtime/internal/kernels/parsing | trainerd/runtime/internal/kernels/image | trainerd/runtime/internal/kernels/linalg | trainerd/runtime/internal/kernels/lists | trainerd/runtime/internal/kernels/math | trainerd/runtime/internal/kernels/nn | trainerd/runtime/internal/kernels/random | trainerd/runtime/internal/kernels/sparse | trainerd/runtime/internal/kernels/state | trainerd/runtime/internal/kernels/summary | trainerd/runtime/internal/kernels/text
	trainerd/runtime | trainerd/remote/...
	trainerd/runtime/internal/kerneltest | trainerd/master
	trainerd/target | trainerd/predict
	trainerd/serve
	trainerd/daemon/config | trainerd/daemon/program
	trainerd/daemon/graphrun | trainerd/daemon/cluster | trainerd/daemon/trial
	trainerd/daemon
	examples/... interop/... bench/... | cmd/...
`

type group struct {
	line     int
	patterns []string
}

func parseLayers(text string) []group {
	var groups []group
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		for part := range strings.SplitSeq(line, "|") {
			groups = append(groups, group{line: i, patterns: strings.Fields(part)})
		}
	}
	return groups
}

func (g group) holds(pkg string) bool {
	return slices.ContainsFunc(g.patterns, func(p string) bool {
		dir, tree := strings.CutSuffix(p, "/...")
		return pkg == dir || tree && strings.HasPrefix(pkg, dir+"/")
	})
}

// imports maps each package of the module, by its folder, to what its files
// other than tests import. It reads the files itself, so that a cached test
// result is forgotten when one of them changes.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	pkgs := map[string][]string{}
	walk := func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || name == "tools") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir := path.Dir(filepath.ToSlash(name))
		for _, spec := range f.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			pkgs[dir] = append(pkgs[dir], imported)
		}
		return nil
	}
	if err := filepath.WalkDir(".", walk); err != nil {
		t.Fatal(err)
	}
	return pkgs
}

// TestLayers holds every import inside the module against the order above.
func TestLayers(t *testing.T) {
	groups := parseLayers(layers)
	find := func(pkg string) int {
		return slices.IndexFunc(groups, func(g group) bool { return g.holds(pkg) })
	}
	for name, list := range imports(t) {
		own := find(name)
		if own < 0 {
			t.Errorf("%s has no place in the layers of deps_test.go", name)
			continue
		}
		for _, imported := range list {
			dep, inside := strings.CutPrefix(imported, module)
			if !inside {
				continue
			}
			other := find(dep)
			if other == own || other >= 0 && groups[other].line < groups[own].line {
				continue
			}
			t.Errorf("%s imports %s, which does not stand above it", name, dep)
		}
	}
}

// TestDependencies holds the modules that the product links against the list
// that DESIGN asks for, so that a new one is a decision and not an accident.
func TestDependencies(t *testing.T) {
	allowed := map[string][]string{
		"github.com/BurntSushi/toml":          {"internal/tomlguard", "trainerd/daemon/config", "trainerd/recipe", "ckptfmt/mapping", "bench"},
		"github.com/charmbracelet/bubbletea":  {"cmd/internal/browse"},
		"github.com/fsnotify/fsnotify":        {"tfevents/dataserver"},
		"github.com/golang/protobuf":          {"internal/tfproto"},
		"github.com/klauspost/compress":       {"tfevents", "ckptfmt", "trainerd/dataset", "trainerd/runtime", "internal/picture"},
		"github.com/parquet-go/parquet-go":    {"cmd/tfevents", "trainerd/dataset/table"},
		"github.com/prometheus/client_golang": {"trainerd/control", "trainerd/serve", "tfevents/dataserver"},
		"github.com/schollz/progressbar":      {"trainerd/daemon", "cmd/internal/terminal"},
		"github.com/urfave/cli":               {"cmd"},
		"github.com/xrash/smetrics":           {"cmd"},
		"golang.org/x/sys":                    {"internal", "ckptfmt", "tfevents/dataserver", "trainerd", "bench"},
		"golang.org/x/term":                   {"trainerd/daemon", "cmd"},
		"golang.org/x/text":                   {"trainerd/dataset/table", "trainerd/runtime/internal/kernels/text"},
		"gonum.org/v1/gonum":                  {"internal/blas", "trainerd", "examples", "bench"},
		"google.golang.org/grpc":              {"internal/grpcmethod", "tfevents/dataserver", "trainerd/remote", "trainerd/master"},
		"google.golang.org/protobuf":          {"proto", "internal/tfproto", "internal/opdef", "internal/grpcmethod", "tfevents", "ckptfmt", "trainerd", "cmd", "interop", "bench"},
	}
	for name, list := range imports(t) {
		for _, imported := range list {
			if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") || strings.HasPrefix(imported, module) {
				continue
			}
			if !mayImport(allowed, name, imported) {
				t.Errorf("%s imports %s: not a dependency that deps_test.go allows there", name, imported)
			}
		}
	}
}

func mayImport(allowed map[string][]string, pkg, imported string) bool {
	for dep, users := range allowed {
		if imported != dep && !strings.HasPrefix(imported, dep+"/") {
			continue
		}
		return slices.ContainsFunc(users, func(u string) bool { return pkg == u || strings.HasPrefix(pkg, path.Clean(u)+"/") })
	}
	return false
}
