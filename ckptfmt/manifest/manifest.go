// Package manifest reads and writes the manifest of a checkpoint: a side file
// with its step, the metrics of the model, and the SHA-256 of each file. A
// [Record] is the manifest of a checkpoint written by another program.
//
//	err := manifest.Write(ctx, prefix, &manifest.Manifest{Step: 900}, nil)
//	for file, err := range manifest.Verify(ctx, prefix) { ... }
//
// The package has no state. Files are hashed by several goroutines, one per
// processor, which end before the call returns.
package manifest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/jsonfloat"
	"github.com/trainerd/trainerd/internal/parallel"
)

// Manifest holds facts about a checkpoint other than its tensors. It is in the
// file PREFIX.manifest.json, which TensorFlow ignores; a field of our own in
// the state file would make TensorFlow ignore that file.
//
//	{
//	  "version": 1,
//	  "step": 900,
//	  "wall_time": "2026-11-21T14:28:31.5Z",
//	  "metrics": {"loss": 0.25, "auc": "NaN"},
//	  "measured": {"loss": {"step": 900, "source": "eval"}, "auc": {"step": 880, "source": "program"}},
//	  "config_hash": "sha256:9f86…",
//	  "parent": "model.ckpt-800",
//	  "files": [
//	    {"suffix": ".data-00000-of-00001", "bytes": 8192, "sha256": "1b4f…"},
//	    {"suffix": ".index", "bytes": 310, "sha256": "60303…"}
//	  ]
//	}
//
// Files are named by the part after the prefix, so a checkpoint can be moved.
// The manifest is published after them and removed before them: as long as it
// exists, it is correct.
type Manifest struct {
	// Step is the global step, or -1 if there is none.
	Step int64 `json:"step"`
	// WallTime is when the saved state was reached.
	WallTime time.Time `json:"wall_time"`
	// Metrics are values such as a loss; see Value.
	Metrics map[string]Metric `json:"metrics,omitempty"`
	// Measured gives the source of each of Metrics. Manifests of older versions
	// lack it.
	Measured map[string]Measurement `json:"measured,omitempty"`
	// ConfigHash distinguishes runs of different configurations.
	ConfigHash string `json:"config_hash,omitempty"`
	// Parent is the name, within the directory, of the checkpoint that the run
	// started from or saved before this one.
	Parent string `json:"parent,omitempty"`
	// Files are the checkpoint's files in the order in which they were
	// published. [Write] fills it in; a manifest without them says nothing about them.
	Files []File `json:"files,omitempty"`
}

// File is a file of a checkpoint as listed in its manifest.
type File struct {
	Suffix string `json:"suffix"` // of the name, after the prefix
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // hexadecimal
}

// Metric is a number; in JSON it may also be "NaN", "Infinity" or "-Infinity".
type Metric float64

// MarshalJSON implements [json.Marshaler].
func (m Metric) MarshalJSON() ([]byte, error) { return jsonfloat.Marshal(float64(m)) }

// UnmarshalJSON implements [json.Unmarshaler].
func (m *Metric) UnmarshalJSON(b []byte) error {
	switch text, _ := strconv.Unquote(string(b)); text {
	case "NaN", "Infinity", "-Infinity":
		v, _ := strconv.ParseFloat(text, 64)
		*m = Metric(v)
		return nil
	}
	var v float64
	err := json.Unmarshal(b, &v)
	*m = Metric(v)
	return err
}

const (
	version = 1
	maxSize = 64 << 20 // a file for each of the most shards there can be
)

// stored is a manifest in the form of its file.
type stored struct {
	Version int `json:"version"`
	Manifest
}

// Name returns the name of a checkpoint's manifest.
func Name(prefix string) string { return prefix + layout.ManifestSuffix }

// Write publishes m as the manifest of an existing checkpoint, whose MetaGraph,
// if any, is also already written. It reads the files again for their checksums
// and sets m.Files. Code that writes a checkpoint calls it before
// [ckptdir.UpdateState]. o may be nil.
func Write(ctx context.Context, prefix string, m *Manifest, o *ckptfmt.FileOptions) error {
	files, err := describeFiles(ctx, prefix, o.FileSystem())
	if err != nil {
		return fmt.Errorf("writing manifest of checkpoint %s: %w", prefix, err)
	}
	m.Files = files
	return WriteAs(prefix, m, o)
}

// WriteAs publishes m as it is, with the files that it has, if any: reading large ones
// takes longer than a checkpoint should wait until it counts. o may be nil.
func WriteAs(prefix string, m *Manifest, o *ckptfmt.FileOptions) error {
	b, err := json.MarshalIndent(stored{version, *m}, "", "  ")
	if err != nil {
		return fmt.Errorf("writing manifest of checkpoint %s: %w", prefix, err)
	}
	return atomicfile.WriteFile(o.FileSystem(), Name(prefix), append(b, '\n'))
}

// describeFiles returns the files of a checkpoint but the manifest, in the
// order in which they are published.
func describeFiles(ctx context.Context, prefix string, fsys ckptfmt.FS) ([]File, error) {
	if _, err := os.Stat(layout.IndexName(prefix)); err != nil {
		return nil, err
	}
	names, err := layout.Files(prefix)
	if err != nil {
		return nil, err
	}
	var files []File
	for _, name := range slices.Backward(names) {
		if suffix := strings.TrimPrefix(name, filepath.Base(prefix)); suffix != layout.ManifestSuffix {
			files = append(files, File{Suffix: suffix})
		}
	}
	found := make([]File, len(files))
	failed := hashFiles(ctx, fsys, prefix, files, found)
	return found, errors.Join(failed...)
}

// hashFiles reads files and sets the elements of found that are where theirs
// do. Several goroutines read, which have ended when it returns.
func hashFiles(ctx context.Context, fsys ckptfmt.FS, prefix string, files, found []File) []error {
	failed := make([]error, len(files))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(files)) {
		wg.Go(func() {
			for i := range next {
				found[i], failed[i] = hashFile(ctx, fsys, prefix, files[i].Suffix)
			}
		})
	}
	for i := range files {
		next <- i
	}
	close(next)
	wg.Wait()
	return failed
}

// hashPiece is read at once. The scheduler moves a goroutine that computes for
// longer only every 10 ms, which a training would feel.
const hashPiece = 64 << 10

func hashFile(ctx context.Context, fsys ckptfmt.FS, prefix, suffix string) (File, error) {
	f, err := atomicfile.Open(fsys, prefix+suffix)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	size, sum, err := hashOf(ctx, f)
	return File{suffix, size, sum}, err
}

// hashOf reads a file to its end.
func hashOf(ctx context.Context, f io.Reader) (size int64, sum string, err error) {
	h := sha256.New()
	size, err = hashInto(ctx, h, f)
	if err != nil {
		return 0, "", err
	}
	return size, hex.EncodeToString(h.Sum(nil)), nil
}

// hashInto reads a file to its end, and returns how much that was.
func hashInto(ctx context.Context, h hash.Hash, f io.Reader) (size int64, err error) {
	piece := make([]byte, hashPiece)
	var turns parallel.Turns
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n, err := f.Read(piece)
		h.Write(piece[:n])
		size += int64(n)
		turns.GiveWay()
		if err == io.EOF {
			return size, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// Read reads the manifest of a checkpoint. If it is missing, the error matches
// [fs.ErrNotExist]; damage is a [*ckptfmt.CorruptError]. Unknown fields are skipped.
func Read(prefix string) (*Manifest, error) {
	name := Name(prefix)
	b, err := readLimited(name)
	if err != nil {
		return nil, err
	}
	return parse(name, b)
}

// readLimited reads a manifest or a record.
func readLimited(name string) ([]byte, error) {
	return atomicfile.ReadFileLimit(nil, name, maxSize, func(size int64) error {
		return corruptManifest(name, fmt.Errorf("%d bytes are too many", size))
	})
}

func parse(name string, b []byte) (*Manifest, error) {
	var m stored
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, corruptManifest(name, err)
	}
	if m.Version > version {
		return nil, fmt.Errorf("%s: %w: it has version %d, this reads %d", name, ckptfmt.ErrVersion, m.Version, version)
	}
	if m.Version < 1 {
		return nil, corruptManifest(name, errNoVersion)
	}
	for i, f := range m.Files {
		if err := f.check(); err != nil {
			return nil, corruptManifest(name, fmt.Errorf("file %d: %w", i, err))
		}
	}
	return &m.Manifest, nil
}

var errNoVersion = errors.New("it has no version")

func corruptManifest(name string, err error) error {
	return &ckptfmt.CorruptError{Name: name, Part: "manifest", Err: err}
}

// check refuses what is not a file of a checkpoint: nothing outside its directory
// is ever read because a manifest says so.
func (f *File) check() error {
	if rank := layout.PublishRank(f.Suffix); rank < 0 || f.Suffix == layout.ManifestSuffix {
		return fmt.Errorf("%q is not the end of a checkpoint's file's name", f.Suffix)
	}
	if sum, err := hex.DecodeString(f.SHA256); err != nil || len(sum) != sha256.Size {
		return fmt.Errorf("%q is not a SHA-256", f.SHA256)
	}
	if f.Bytes < 0 {
		return fmt.Errorf("%d bytes", f.Bytes)
	}
	return nil
}

// Verify reads the files that a checkpoint's manifest names, and yields the
// name of each with its error, nil if it matches the manifest. If the manifest
// itself cannot be read, it yields only that.
func Verify(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		m, err := Read(prefix)
		if err != nil {
			yield(Name(prefix), err)
			return
		}
		found := make([]File, len(m.Files))
		failed := hashFiles(ctx, nil, prefix, m.Files, found)
		for i, want := range m.Files {
			name := prefix + want.Suffix
			if !yield(name, want.compare(name, found[i], failed[i])) {
				return
			}
		}
	}
}

// compare returns what is wrong with a file that was found, or is missing.
func (f *File) compare(name string, got File, err error) error {
	switch {
	case err != nil:
		return err
	case got.Bytes != f.Bytes:
		err = fmt.Errorf("it has %d bytes, its manifest says %d", got.Bytes, f.Bytes)
	case !strings.EqualFold(got.SHA256, f.SHA256):
		err = fmt.Errorf("SHA-256 %w: its manifest says %s, computed %s", ckptfmt.ErrChecksum, f.SHA256, got.SHA256)
	default:
		return nil
	}
	return &ckptfmt.CorruptError{Name: name, Part: "file", Err: err}
}
