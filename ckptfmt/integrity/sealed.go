package integrity

import (
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// lastFiles are files that frameworks write last into the folder of a checkpoint, or
// before they rename it: transformers and orbax.
var lastFiles = []string{"trainer_state.json", "_CHECKPOINT_METADATA"}

// IsSealed reports whether a checkpoint that [Check] finds intact is evidently
// finished: it consists of files, or its folders have a mark, or the file that their
// framework writes last.
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
	case deepspeedTag().MatchString(path.Base(dir)):
		_, err := root.Lstat(path.Join(path.Dir(dir), "latest"))
		return err == nil // else it would be damaged
	case has(".metadata") && path.Ext(dir) == ".ckpt": // of Lightning, which writes the rest of its state after that
		return has("meta.pt")
	}
	return has(".metadata") && !slices.ContainsFunc(own, func(name string) bool { return name != ".metadata" && !shardName().MatchString(name) })
}

// isMark reports whether a file says by its name that a checkpoint is complete.
func isMark(name string) bool {
	name = strings.ToLower(name)
	return slices.Contains(emptyMarkers, name) && !strings.HasPrefix(name, ".git")
}

// IsWhole reports whether a checkpoint that [Check] finds intact is evidently
// complete to the last byte: it is sealed, see [IsSealed], and each of its files has
// checksums, or a format in which a half-written file is noticed.
func IsWhole(root *os.Root, names []string) bool {
	files, err := Files(root, names)
	return err == nil && IsSealed(root, names) && !slices.ContainsFunc(files, func(name string) bool { return !IsWholeFile(root, names, name) })
}

// IsWholeFile reports whether the format of a file, of a checkpoint that [Check] finds
// intact, shows that its end is not missing. A text in a folder has none; one that is a
// checkpoint itself may have been cut, unless it is a model of LightGBM.
func IsWholeFile(root *os.Root, names []string, name string) bool {
	base := path.Base(name)
	switch ext := strings.ToLower(path.Ext(name)); {
	case bundleFile().MatchString(name), shardName().MatchString(base), base == ".metadata", ext == ".safetensors", ext == ".json", mayBeEmpty(name) && !slices.Contains(names, name):
		return true
	}
	f, err := root.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(boosted))
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.ErrUnexpectedEOF {
		return false
	}
	begins := func(with string) bool { return strings.HasPrefix(string(head[:n]), with) }
	return isZip(string(head[:n])) || begins(treeMagic) || begins(boosted) || isCompressed(strings.ToLower(path.Ext(name)), string(head[:n]))
}
