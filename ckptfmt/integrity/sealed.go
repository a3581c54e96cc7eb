package integrity

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// lastFiles are files that frameworks write last into the folder of a checkpoint, or
// before they rename it: transformers and orbax.
var lastFiles = []string{"trainer_state.json", "_CHECKPOINT_METADATA"}

// IsSealed reports whether the form of a checkpoint that [Check] finds intact shows by
// itself that its program has finished writing it: it consists of files, or its
// folders have a mark, or what their framework writes last.
func IsSealed(root *os.Root, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		info, err := root.Lstat(name)
		return err != nil || info.IsDir() && !isSealedFolder(root, name)
	})
}

func isSealedFolder(root *os.Root, dir string) bool {
	entries, err := fs.ReadDir(root.FS(), dir)
	if err != nil {
		return false
	}
	var own []string
	for _, e := range entries {
		own = append(own, e.Name())
	}
	has := func(name string) bool { return slices.Contains(own, name) }
	switch {
	case slices.ContainsFunc(lastFiles, has), slices.ContainsFunc(own, isMark), has("manifest.ocdbt") && has("_METADATA"):
		return true
	case deepspeedTag.MatchString(path.Base(dir)):
		_, err := root.Lstat(path.Join(path.Dir(dir), "latest"))
		return err == nil // else it would be damaged
	}
	return has(".metadata") && !slices.ContainsFunc(own, func(name string) bool { return name != ".metadata" && !shardName.MatchString(name) })
}

// isMark reports whether a file says by its name that a checkpoint is complete.
func isMark(name string) bool {
	name = strings.ToLower(name)
	return slices.Contains(emptyMarkers, name) && !strings.HasPrefix(name, ".git")
}
