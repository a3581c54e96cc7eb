package trial

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/internal/lazyregexp"
	"github.com/trainerd/trainerd/trainerd/recipe"
)

// A program may have the folder that it saves in as a text in its script, or in a file of
// settings that its command names, or in a variable of the environment that its script asks
// for, and not below its working directory.

// maxNamed bounds how many such folders are looked at.
const maxNamed = 8

var (
	// namedPath are texts that are an absolute path, or one below the home folder, in quotes
	// or as a value in YAML or TOML.
	namedPath = lazyregexp.New(`(?m)["'](~?/[^"'\n]+)["']|[:=]\s*(~?/[^/\s"'#,;)\]}][^\s"'#,;)\]}]*)`)
	// homeFolder is what a path below the home folder begins with in Python and in the shell.
	homeFolder = lazyregexp.New(`(?:pathlib\.)?Path\.home\(\)\s*/\s*(["'])|(["'])?\$(?:HOME|\{HOME\})/`)
	// variable are a script's ways to ask for a variable of the environment: those of Python,
	// R, C and Go, of Julia and Ruby, of Rust, of JavaScript, and of the shell.
	variable = lazyregexp.New(`(?:[gG]etenv|environ(?:\.get)?|ENV|env::var)\s*[(\[]\s*["'](\w+)["']|process\.env\.(\w+)|\$\{?([A-Z][A-Z0-9_]*)`)
	// systemFolder are folders in which no training saves.
	systemFolder = lazyregexp.New(`^/(?:bin|boot|dev|etc|lib(?:32|64)?|proc|sbin|sys|usr)(?:/|$)|/\.|/site-packages(?:/|$)`)
)

// named returns the folders outside the working directory that a program has in its source.
func named(dir string, command []string) (folders []string) {
	here, err := filepath.Abs(dir)
	if err != nil {
		return nil
	}
	source := homeFolder().ReplaceAllString(recipe.Source(dir, command), "$1$2~/")
	var paths []string
	for _, found := range namedPath().FindAllStringSubmatch(source, -1) {
		paths = append(paths, found[1]+found[2])
	}
	for _, path := range append(paths, variablesOf(source)...) {
		folder := folderOf(path)
		isNew := folder != "" && !slices.Contains(folders, folder)
		if isNew && folder != here && !isBelow(folder, here) && !isBelow(here, folder) && len(folders) < maxNamed {
			folders = append(folders, folder)
		}
	}
	return folders
}

// variablesOf returns the values of the variables of the environment that a script asks for.
// Those that trainerd sets, and lists of folders, are left out.
func variablesOf(source string) (values []string) {
	for _, found := range variable().FindAllStringSubmatch(source, -1) {
		name := found[1] + found[2] + found[3]
		value := os.Getenv(name)
		isList := strings.ContainsRune(value, os.PathListSeparator)
		if name != "PWD" && !strings.HasPrefix(name, "TRAINERD_") && !isList {
			values = append(values, value)
		}
	}
	return values
}

// folderOf returns the folder that a path in a script means, "" for one in which no training
// saves or that has everybody's files. What comes after a placeholder is not known.
func folderOf(path string) string {
	path, hasMore := cutPlaceholder(path)
	home, err := os.UserHomeDir()
	if below, isHome := strings.CutPrefix(path, "~/"); isHome && err == nil {
		path = filepath.Join(home, below)
	}
	if hasMore && !strings.HasSuffix(path, "/") || filepath.Ext(path) != "" {
		path = filepath.Dir(path)
	}
	path = filepath.Clean(path)
	if !filepath.IsAbs(path) || filepath.Dir(path) == path || path == home || path == filepath.Clean(os.TempDir()) || systemFolder().MatchString(path) {
		return ""
	}
	return path
}

// cutPlaceholder returns the part of a path before what a program puts in.
func cutPlaceholder(path string) (before string, has bool) {
	if i := strings.IndexAny(path, "{}$%*<"); i >= 0 {
		return path[:i], true
	}
	return path, false
}
