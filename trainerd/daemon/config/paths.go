package config

import (
	"path/filepath"
	"reflect"

	"github.com/trainerd/trainerd/trainerd/recipe"
)

// The values of the tag path, which a key has whose value is a path.
const (
	fromWorkingDir = "working" // a relative path starts at the working directory
	fromConfig     = "config"  // it starts at the config's folder, or, if a flag has set it, at the working directory
	orName         = "or name" // as fromConfig, unless it is one of the names that the program knows
)

// pathValue is a path in the config.
type pathValue struct {
	key   string
	value *string
	from  string // as the tag says
}

// paths returns the values of all keys that are paths.
func (c *Config) paths() []pathValue { return pathsIn("", reflect.ValueOf(c).Elem()) }

func pathsIn(path string, table reflect.Value) (all []pathValue) {
	for i, key := range keysOf(table) {
		field := table.Field(i)
		if from := table.Type().Field(i).Tag.Get("path"); from != "" {
			all = append(all, pathValue{join(path, key), field.Addr().Interface().(*string), from})
		} else if isTableField(field) {
			all = append(all, pathsIn(join(path, key), field)...)
		}
	}
	return all
}

// isName reports whether a value is the name of something that the program has.
func (p *pathValue) isName() bool {
	switch p.key {
	case "warm_start.map":
		return isReadyMap(*p.value)
	case "child.recipe":
		return !recipe.IsFile(*p.value)
	}
	return false
}

// ResolvePath returns a path of the config: a relative one starts at the config's
// folder, unless a flag has set it.
func (c *Config) ResolvePath(key, path string) string {
	if path == "" || filepath.IsAbs(path) || c.origins[key].flag != "" {
		return path
	}
	return filepath.Join(filepath.Dir(c.file), path)
}

// OtherLogdirs returns what a relative logdir is for those who start the job in its config's
// folder, or in one above it, nearest first; nil for any other logdir.
func (c *Config) OtherLogdirs() (all []string) {
	own := Absolute(c.Logdir)
	if c.file == "" || filepath.IsAbs(c.Logdir) || c.origins["logdir"].flag != "" {
		return nil
	}
	for dir := filepath.Dir(Absolute(c.file)); ; dir = filepath.Dir(dir) {
		if other := filepath.Join(dir, c.Logdir); other != own {
			all = append(all, other)
		}
		if dir == filepath.Dir(dir) {
			return all
		}
	}
}

// Absolute returns path from the root, or unchanged if there is no working
// directory.
func Absolute(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return abs
}

// ClientFiles returns the directories that clients may use files in, nil for
// any.
func (c *Config) ClientFiles() []string {
	if c.Cluster.ListenFiles == filesAll || c.Cluster.ListenFiles == "" && !c.Cluster.ListenPublic {
		return nil
	}
	return []string{Absolute(c.Logdir)}
}
