// Package integrity looks for damage in checkpoints of any framework: files and
// folders that a crash, a power cut or a full disk has cut short, or that are not
// complete yet.
//
//	err := integrity.Check(ctx, root, []string{"checkpoint-500"}, nil)
//
// Files with checksums are read and verified: TensorFlow's bundles, zip archives (.pt, .npz, .keras),
// what is compressed by gzip, zlib or zstd, the pieces named in the .metadata of
// torch.distributed.checkpoint, and the manifest.ocdbt of orbax. For other files that declare their
// length, the length is checked: .safetensors by its header, .h5 by its superblock and the headers of
// all its objects, .npy by its shape, files of PyTorch before 1.6 by their storages, pickles by their
// last byte, JSON by its brackets. Folders must have everything that a transformers index, the
// .metadata of torch.distributed.checkpoint, orbax's marks or DeepSpeed's file "latest" list. Only a
// program that loads a checkpoint can tell whether the numbers in it are right.
//
// The forms are those of the formats' public descriptions: APPNOTE.TXT of zip, the
// safetensors README, the HDF5 file format specification, numpy.lib.format, OCDBT of
// tensorstore, and the names that the frameworks' own loaders look for.
//
// Names are below an [os.Root], with slashes: nothing outside it is opened. The
// package has no state, and changes no file. Package hdf5 reads large groups with a
// goroutine for each processor; these have ended when Check returns.
package integrity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// ErrUnmarked says that a folder lacks the file that the program writes last.
var ErrUnmarked = errors.New("unlike the previous checkpoint: the program has not finished writing it")

var (
	errEmpty = errors.New("it is empty")
	errCut   = errors.New("it ends too early")
	errZeros = errors.New("it begins with zeros, which is what a power cut leaves")
	errTemp  = errors.New("a file with a temporary name is in it: the program has not finished writing it")
)

// checker looks into the checkpoints below a folder.
type checker struct {
	ctx     context.Context
	root    *os.Root
	through func(name string, f *os.File) io.ReaderAt // nil for the file itself
}

// Check returns an error if a checkpoint is damaged or incomplete. names are its
// files and folders, which include everything inside them. It must have everything
// that an intact one of the same program has, by its [Markers]. A system error,
// see [ckptdir.IsUnreadable], is not damage.
func Check(ctx context.Context, root *os.Root, names, markers []string) error {
	return CheckThrough(ctx, root, names, markers, nil)
}

// CheckThrough is Check, but reads files through the reader that a function returns, so that it
// sees their bytes, too: all files except those of bundles, and of torch.distributed.checkpoint.
func CheckThrough(ctx context.Context, root *os.Root, names, markers []string, through func(name string, f *os.File) io.ReaderAt) error {
	files, err := Files(root, names)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return errEmpty
	}
	x := &checker{ctx, root, through}
	for _, name := range files {
		if bundleFile().MatchString(name) {
			continue // of a bundle, which is looked into as a whole
		}
		if err := x.checkFile(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := x.checkBundles(files); err != nil {
		return err
	}
	for _, dir := range Folders(names, files) {
		if err := x.checkFolder(dir, files); err != nil {
			return err
		}
	}
	if err := x.checkParent(names); err != nil {
		return err
	}
	return lacksMarker(names, files, markers)
}

// Files returns all files of a checkpoint by name, including those in folders. A
// temporary name is an error. Links are included, but not pipes, sockets and
// devices, since reading them could block.
func Files(root *os.Root, names []string) (files []string, err error) {
	for _, name := range names {
		err := fs.WalkDir(root.FS(), name, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if IsUnfinished(path.Base(name)) {
				return fmt.Errorf("%s: %w", name, errTemp)
			}
			if d.Type().IsRegular() || d.Type() == fs.ModeSymlink {
				files = append(files, name)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// Folders returns the folders of a checkpoint that have files, and those above
// them up to names.
func Folders(names, files []string) (dirs []string) {
	for _, top := range names {
		for _, name := range files {
			for dir := path.Dir(name); dir == top || strings.HasPrefix(dir, top+"/"); dir = path.Dir(dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// bundleFile matches the end of the name of a file of a bundle.
var bundleFile = lazyregexp.New(`\.(?:index|meta|data-\d{5}-of-\d{5})$`)

// checkBundles verifies bundles of TensorFlow, with all their checksums. Files named like those of
// a bundle but without an index, which is written last, are damage.
func (x *checker) checkBundles(files []string) error {
	whole := map[string]bool{}
	for _, name := range files {
		if !bundleFile().MatchString(name) || strings.HasSuffix(name, ".meta") {
			continue
		}
		prefix := bundleFile().ReplaceAllString(name, "")
		if whole[prefix] {
			continue
		}
		whole[prefix] = true
		if !slices.Contains(files, prefix+".index") {
			return fmt.Errorf("%s.index is missing, which is written last", prefix)
		}
		if err := ckptdir.Verify(x.ctx, filepath.Join(x.root.Name(), filepath.FromSlash(prefix))); err != nil {
			return err
		}
	}
	return nil
}

// checkFile looks into a file of a format that says how long it should be. A
// link is looked through if it stays within the root; the blobs of a cache are
// outside, and no part of the checkpoint.
func (x *checker) checkFile(name string) error {
	info, err := x.root.Lstat(name)
	if err != nil || info.Mode().Type() == fs.ModeSymlink {
		return err
	}
	f, err := x.root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return err
	}
	if info.Size() == 0 {
		if mayBeEmpty(name) {
			return nil
		}
		return errEmpty
	}
	from := io.ReaderAt(f)
	if x.through != nil {
		from = x.through(name, f)
	}
	return checkContent(from, info.Size(), strings.ToLower(path.Ext(name)))
}

// emptyMarkers are names that say something by being there.
var emptyMarkers = []string{
	"_success", "success", "committed", "_committed", "commit_success", "complete", "completed", "_complete", "done", "finished", "ready",
	".gitkeep", ".gitignore", ".gitattributes",
}

// mayBeEmpty reports whether an empty file shows nothing: a mark, or a text.
func mayBeEmpty(name string) bool {
	base := strings.ToLower(path.Base(name))
	text := slices.Contains([]string{".txt", ".py", ".md", ".log", ".out", ".err", ".lock", ".done", ".complete", ".yml", ".yaml"}, path.Ext(base))
	return text || slices.Contains(emptyMarkers, base)
}

// tensorflowTemp matches what TensorFlow writes to before it renames or merges it.
var tensorflowTemp = lazyregexp.New(`(?:\.tempstate\d+|\.data-\d{5}-of-\d{5}_temp|_temp(?:_[0-9a-f]{32})?)$`)

// IsUnfinished reports whether a file or folder has a temporary name, as
// programs use before a rename.
func IsUnfinished(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		for _, end := range []string{".tmp", ".part", ".partial", ".incomplete", "~"} {
			if strings.HasSuffix(part, end) {
				return true
			}
		}
		if tensorflowTemp().MatchString(part) || strings.HasPrefix(part, "tmp-checkpoint-") || strings.Contains(part, ".orbax-checkpoint-tmp") || strings.Contains(part, ".tmp-") {
			return true
		}
	}
	return false
}
