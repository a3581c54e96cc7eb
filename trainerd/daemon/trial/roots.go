package trial

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/trainerd/recipe"
)

// roots are the folders below which a program may write.
type roots struct {
	dir, logdir string   // in which it works, and the logdir of the trial
	outside     []string // those that its command names, absolute
	named       []string // those that its source names, absolute
}

// roots reads the scripts of the program.
func (o Options) roots() roots {
	return roots{dir: o.Dir, logdir: o.Logdir, outside: outside(o.Dir, o.Command), named: named(o.Dir, o.Command)}
}

// elsewhere returns those outside the working directory.
func (r roots) elsewhere() []string { return slices.Concat(r.outside, r.named) }

func (r roots) all() []string { return append([]string{r.dir, r.logdir}, r.elsewhere()...) }

// near returns the files that are not only below folders that the source names: what the
// program has there may be its data.
func (r roots) near(files []string) []string {
	return slices.DeleteFunc(slices.Clone(files), func(name string) bool {
		above := func(dir string) bool {
			abs, err := filepath.Abs(dir)
			return err == nil && isBelow(abs, name)
		}
		return !slices.ContainsFunc(slices.Concat([]string{r.dir, r.logdir}, r.outside), above)
	})
}

// outside returns the folders, there or not, that a command names and that are not below the
// working directory: a program may write there.
func outside(dir string, command []string) (folders []string) {
	for _, word := range command {
		_, name, ok := recipe.PathIn(word, dir)
		if !ok || filepath.Dir(name) == name {
			continue
		}
		if info, err := os.Stat(name); err == nil && !info.IsDir() {
			continue
		}
		folders = append(folders, name)
	}
	return folders
}

// rootOf returns the folder that a file is below as dir is given, that in which the program
// works for others.
func (r roots) rootOf(name string) string {
	for _, dir := range r.elsewhere() {
		if abs, err := filepath.Abs(r.dir); err == nil && !isBelow(abs, name) && isBelow(dir, name) {
			return dir
		}
	}
	return r.dir
}

// isBelow reports whether a file is below a folder, by their absolute names.
func isBelow(dir, name string) bool {
	return strings.HasPrefix(name, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}
