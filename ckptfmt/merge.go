package ckptfmt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt/internal/retire"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
	tfpb "github.com/trainerd/trainerd/proto"
)

// MergeOptions are the choices of [MergeBundles].
type MergeOptions struct {
	FS FS // nil means the operating system's
	// DeleteOldDirs removes the directories of the merged bundles if nothing
	// else is in them.
	DeleteOldDirs bool
	// AllowMissing skips prefixes under which there is no bundle.
	AllowMissing bool
	// RequireWhole refuses to merge if slices of a partitioned tensor are
	// missing, which TensorFlow's op does not check.
	RequireWhole bool
}

// MergeBundles merges the bundles under prefixes into one under merged, as
// TensorFlow's MergeV2Checkpoints does: the data files are renamed, not
// copied, and get their shard numbers in the order of the prefixes; a new
// index is written; the old ones are removed. Only slices of a tensor may be
// in several bundles.
//
// Nothing is changed until all inputs have been checked. If the disk fails, the data
// files get their old names back; a crash in the middle leaves no index under merged.
func MergeBundles(ctx context.Context, prefixes []string, merged string, o *MergeOptions) error {
	if o == nil {
		o = &MergeOptions{}
	}
	m := &merge{fsys: atomicfile.OrOS(o.FS), to: merged, entries: make(map[string]*bundleEntry), ids: make(map[string]int32)}
	var found []string
	for _, p := range prefixes {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := m.add(p)
		if o.AllowMissing && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("merging checkpoint %s into %s: %w", p, merged, err)
		}
		found = append(found, p)
	}
	if len(found) == 0 {
		return fmt.Errorf("merging into %s: no checkpoint to merge: %w", merged, fs.ErrNotExist)
	}
	if o.RequireWhole {
		if err := m.checkWhole(); err != nil {
			return fmt.Errorf("merging into checkpoint %s: %w", merged, err)
		}
	}
	if err := m.publish(); err != nil {
		return fmt.Errorf("merging into checkpoint %s: %w", merged, err)
	}
	return m.removeInputs(found, o.DeleteOldDirs)
}

// merge is the state of one call of MergeBundles.
type merge struct {
	fsys    FS
	to      string
	header  *tfpb.BundleHeaderProto
	entries map[string]*bundleEntry
	files   []string         // data files in the order of their new numbers
	ids     map[string]int32 // the same by name
}

// add takes the entries of one bundle. A data file gets its number when the
// first entry refers to it.
func (m *merge) add(prefix string) error {
	r, err := OpenBundle(prefix, &ReaderOptions{FS: m.fsys})
	if err != nil {
		return err
	}
	defer r.Close() // it was only read
	if err := m.addHeader(r.header); err != nil {
		return err
	}
	for e, err := range r.entries(nil) {
		if err != nil {
			return err
		}
		old := m.entries[string(e.key)]
		if old != nil && (len(old.slices) == 0 || len(e.slices) == 0) {
			return fmt.Errorf("%w: duplicate tensor keyed by %q", ErrExists, e.key)
		}
		if old != nil {
			old.slices = append(old.slices, e.slices...)
			continue
		}
		fresh := e.bundleEntry
		fresh.shard = m.number(layout.DataName(prefix, int(e.shard), r.NumShards()))
		m.entries[string(e.key)] = &fresh
	}
	return nil
}

func (m *merge) addHeader(h *tfpb.BundleHeaderProto) error {
	if m.header == nil {
		m.header = proto.CloneOf(h)
		return nil
	}
	if h.Endianness != m.header.Endianness || !proto.Equal(h.Version, m.header.Version) {
		return errors.New("byte order or version differs from that of the bundles before it")
	}
	if m.header.NumShards > maxShards-h.NumShards {
		return fmt.Errorf("more than %d shards", maxShards)
	}
	m.header.NumShards += h.NumShards
	return nil
}

func (m *merge) number(file string) int32 {
	id, ok := m.ids[file]
	if !ok {
		id = int32(len(m.files))
		m.ids[file] = id
		m.files = append(m.files, file)
	}
	return id
}

// checkWhole checks that the slices of each partitioned tensor exist and make it up.
func (m *merge) checkWhole() error {
	for _, name := range slices.Sorted(maps.Keys(m.entries)) {
		e := m.entries[name]
		if len(e.slices) == 0 {
			continue
		}
		boxes := make([]box, len(e.slices))
		for i, s := range e.slices {
			se := m.entries[string(sliceKey(name, s))]
			if se == nil {
				return fmt.Errorf("%w: tensor %q lacks its slice %q", ErrSlices, name, s)
			}
			if err := e.holds(s, se); err != nil {
				return fmt.Errorf("%w: tensor %q: %w", ErrSlices, name, err)
			}
			boxes[i] = boxOf(s, e.shape)
		}
		if err := checkCover(boxes, boxOf(FullSlice(len(e.shape)), e.shape)); err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
	}
	return nil
}

// publish renames the data files, then writes the index.
func (m *merge) publish() error {
	dir := filepath.Dir(m.to)
	if err := atomicfile.MkdirSync(m.fsys, dir); err != nil {
		return err
	}
	index, err := prepareIndex(m.fsys, m.to, m.header, m.entries, indexOptions{})
	if err != nil {
		return err
	}
	defer index.Close()
	if err := retire.Checkpoint(m.fsys, m.to); err != nil {
		return err
	}
	for i, file := range m.files {
		if err := m.fsys.Rename(file, m.dataName(i)); err != nil {
			return errors.Join(err, m.giveBack(i))
		}
	}
	err = m.fsys.SyncDir(dir)
	if err == nil {
		err = index.Rename()
	}
	if err != nil {
		return errors.Join(err, m.giveBack(len(m.files)))
	}
	return m.fsys.SyncDir(dir)
}

// dataName returns the new name of a data file.
func (m *merge) dataName(i int) string {
	return layout.DataName(m.to, i, int(m.header.NumShards))
}

// giveBack gives the first n data files their old names, so that the bundles that were to be merged
// are whole again, except those whose file cannot be renamed.
func (m *merge) giveBack(n int) (failed error) {
	for i, file := range m.files[:n] {
		failed = errors.Join(failed, m.fsys.Rename(m.dataName(i), file))
	}
	return failed
}

// removeInputs removes the indexes that name data files which no longer exist.
// Directories that hold anything else stay, without an error.
func (m *merge) removeInputs(prefixes []string, dirs bool) error {
	var failed error
	for _, p := range prefixes {
		for _, name := range []string{p + layout.ManifestSuffix, layout.IndexName(p)} {
			failed = errors.Join(failed, atomicfile.RemoveIfExists(m.fsys, name))
		}
	}
	if !dirs {
		return failed
	}
	for _, p := range prefixes {
		_ = m.fsys.Remove(filepath.Dir(p)) // refused when it is not empty, as that of the merged one
	}
	return failed
}
