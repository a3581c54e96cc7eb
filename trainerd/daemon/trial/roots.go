package trial

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// roots are the folders below which a program may write.
type roots struct {
	dir, logdir string   // in which it works, and the logdir of the trial
	outside     []string // those that its command names, absolute
	named       []string // those that its source names, absolute
}

func (o Options) roots() roots {
	return roots{dir: o.Dir, logdir: o.Logdir, outside: outside(o.Dir, o.Command), named: named(o.Dir, o.Command)}
}

func (r roots) all() []string { return slices.Concat([]string{r.dir, r.logdir}, r.outside, r.named) }

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
		if strings.HasPrefix(word, "-") {
			_, word, _ = strings.Cut(word, "=")
		}
		if !filepath.IsAbs(word) && !strings.HasPrefix(filepath.ToSlash(word), "../") {
			continue
		}
		if !filepath.IsAbs(word) {
			word = filepath.Join(dir, word)
		}
		info, err := os.Stat(word)
		if isThere := err == nil; isThere && !info.IsDir() || filepath.Dir(word) == word {
			continue
		}
		folders = append(folders, word)
	}
	return folders
}

// rootOf returns the folder that a file is below as dir is given, that in which the program
// works for others.
func (r roots) rootOf(name string) string {
	for _, dir := range slices.Concat(r.outside, r.named) {
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
