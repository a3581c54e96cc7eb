package manifest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

// RecordsDir is the folder of a logdir with the records of checkpoints written
// by another program. They are not next to the checkpoints, because a program
// may take any file there for its own.
const RecordsDir = "trainerd.manifests"

// recordSuffix ends the names of records in RecordsDir.
const recordSuffix = ".json"

// Record is the manifest of a checkpoint that another program has written, and
// that was found complete, intact and durable. It is in the file STEP.json of
// [RecordsDir], or NAME.json if the checkpoint has no step.
//
//	{
//	  "version": 1,
//	  "name": "checkpoint-500",
//	  "format": "transformers",
//	  "step": 500,
//	  "wall_time": "2026-11-21T14:28:31.5Z",
//	  "verified": "2026-11-21T14:28:33.1Z",
//	  "metrics": {"loss": 0.25},
//	  "measured": {"loss": {"step": 500, "source": "program"}},
//	  "parts": ["checkpoint-500"],
//	  "files": [
//	    {"name": "checkpoint-500/model.safetensors", "bytes": 8192, "modified": "2026-11-21T14:28:31Z", "sha256": "1b4f…"}
//	  ]
//	}
//
// Names are below the logdir, with slashes, so the logdir can be moved. A record is
// about files with those times: if a file is newer, it was rewritten, and the
// record is out of date.
type Record struct {
	// Name is a file, a folder, or the common prefix of several files.
	Name   string `json:"name"`
	Format string `json:"format"`
	Step   int64  `json:"step"` // -1 if there is none
	// Reported is the step that the program had reported when it wrote the
	// checkpoint, if the name may not have it: its number counts epochs, or saves; 0 if
	// unknown.
	Reported int64 `json:"reported,omitempty"`
	// Counted says that the number in the name counts something else than the reports
	// do, which later checkpoints have shown.
	Counted bool `json:"counted,omitempty"`
	// Numbers says how the program uses the numbers in its names again, [NumbersBegin] or [NumbersTurn]; "" if it
	// does not. A record has no Step then.
	Numbers string `json:"numbers,omitempty"`
	// Untried says that no start of the program had continued from it yet: if that fails with it, it may not
	// have been finished.
	Untried bool `json:"untried,omitempty"`
	// WallTime is when it was last written, Verified when it was found intact.
	WallTime time.Time `json:"wall_time"`
	Verified time.Time `json:"verified"`
	// Boot names the run of the machine, from its start to its end, in which it was; "" if that is not known.
	Boot string `json:"boot,omitempty"`

	Metrics  map[string]Metric      `json:"metrics,omitempty"` // as in [Manifest]
	Measured map[string]Measurement `json:"measured,omitempty"`

	// Copy is a folder with a copy of the files, under the same names, of a
	// checkpoint that the program overwrites; "" for none.
	Copy string `json:"copy,omitempty"`

	Parts []string     `json:"parts"` // its files and folders
	Files []RecordFile `json:"files"` // all files, also those in folders
}

// RecordFile is a file of a checkpoint in its [Record].
type RecordFile struct {
	Name     string    `json:"name"`
	Bytes    int64     `json:"bytes"`
	Modified time.Time `json:"modified"`
	// Changed is the time of the file's last change, according to the kernel, when it was read; zero
	// if that is not known.
	Changed time.Time `json:"changed,omitzero"`
	SHA256  string    `json:"sha256,omitempty"` // "" where Entries alone were taken
	// Entries is the sum of the checksums that an archive has of its entries, "" for other files.
	Entries string `json:"entries,omitempty"`
}

// How a program may use the numbers in the names of its checkpoints again.
const (
	NumbersBegin = "begin again" // steps, with each epoch
	NumbersTurn  = "take turns"  // of a few names
)

// storedRecord is a record as its file has it.
type storedRecord struct {
	Version int `json:"version"`
	Record
}

// Bytes returns the size of the checkpoint.
func (r *Record) Bytes() (n int64) {
	for _, f := range r.Files {
		n += f.Bytes
	}
	return n
}

// Manifest returns the record's facts about the model, without files.
func (r *Record) Manifest() *Manifest {
	return &Manifest{Step: r.Step, WallTime: r.WallTime, Metrics: r.Metrics, Measured: r.Measured}
}

// RecordName returns the name of a record's file within a logdir. If the name of the checkpoint
// would make it too long, as a path with three-byte characters may, it has a checksum instead.
func RecordName(name string, step int64) string {
	key := strconv.FormatInt(step, 10)
	if step < 0 {
		key = "name-" + url.PathEscape(name)
		if len(key)+len(recordSuffix) > atomicfile.LongestName {
			key = fmt.Sprintf("name-%x", sha256.Sum256([]byte(name)))
		}
	}
	return filepath.Join(RecordsDir, key+recordSuffix)
}

// Describe reads files below a root, and returns their entries for a record.
// Links and anything that is not a regular file are left out.
func Describe(ctx context.Context, root *os.Root, names []string) (files []RecordFile, err error) {
	return new(Tees).Describe(ctx, root, names)
}

func hashIn(ctx context.Context, root *os.Root, name string) (size int64, sum string, err error) {
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	return hashOf(ctx, f)
}

// Write publishes a record in a logdir, in place of the previous one.
func (r *Record) Write(fsys ckptfmt.FS, logdir string) error {
	b, err := json.MarshalIndent(storedRecord{version, *r}, "", "  ")
	if err != nil {
		return fmt.Errorf("writing manifest of checkpoint %s: %w", r.Name, err)
	}
	if err := atomicfile.MkdirSync(fsys, filepath.Join(logdir, RecordsDir)); err != nil {
		return fmt.Errorf("writing manifest of checkpoint %s: %w", r.Name, err)
	}
	return atomicfile.WriteFile(fsys, filepath.Join(logdir, RecordName(r.Name, r.Step)), append(b, '\n'))
}

// Records reads all records of a logdir, ordered by step, then by name. Those
// that cannot be read are left out; bad says why.
func Records(logdir string) (all []*Record, bad []error) {
	entries, err := os.ReadDir(filepath.Join(logdir, RecordsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, []error{err}
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !strings.HasSuffix(e.Name(), recordSuffix) || layout.IsTemp(e.Name()) {
			continue
		}
		r, err := readRecord(filepath.Join(logdir, RecordsDir, e.Name()))
		if err != nil {
			bad = append(bad, err)
			continue
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *Record) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), a.WallTime.Compare(b.WallTime), strings.Compare(a.Name, b.Name))
	})
	return all, bad
}

func readRecord(name string) (*Record, error) {
	b, err := readLimited(name)
	if err != nil {
		return nil, err
	}
	var r storedRecord
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, corruptManifest(name, err)
	}
	if r.Version > version {
		return nil, fmt.Errorf("%s: %w: it has version %d, this reads %d", name, ckptfmt.ErrVersion, r.Version, version)
	}
	if r.Version < 1 {
		return nil, corruptManifest(name, errNoVersion)
	}
	names := append([]string{r.Name, cmp.Or(r.Copy, ".")}, r.Parts...)
	for _, f := range r.Files {
		names = append(names, f.Name)
	}
	for _, n := range names {
		if !filepath.IsLocal(filepath.FromSlash(n)) {
			return nil, corruptManifest(name, fmt.Errorf("%q is not a name below the logdir", n))
		}
	}
	return &r.Record, nil
}

// ErrOutdated says that the files of a checkpoint have been rewritten since
// its record.
var ErrOutdated = errors.New("its files were written again")

// Compare compares the files of a checkpoint with its record, by name, size and
// time. The error matches [ErrOutdated] if the record does not describe them; any
// other error is damage: a file is gone, and the others are unchanged.
func (r *Record) Compare(root *os.Root, files []string) error {
	var missing []string
	same, known := 0, make(map[string]bool, len(r.Files))
	for _, f := range r.Files {
		known[f.Name] = true
		info, err := root.Lstat(filepath.FromSlash(f.Name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, f.Name)
		case err != nil:
			return err
		case info.Size() == f.Bytes && info.ModTime().Equal(f.Modified):
			same++
		default:
			return ErrOutdated
		}
	}
	if len(missing) > 0 && same > 0 {
		return &ckptfmt.CorruptError{Name: missing[0], Part: "file", Err: errors.New("it is gone, and its manifest names it")}
	}
	for _, name := range files {
		if info, err := root.Lstat(filepath.FromSlash(name)); err == nil && info.Mode().IsRegular() && !known[name] {
			return ErrOutdated
		}
	}
	if same == 0 {
		return ErrOutdated
	}
	return nil
}

// SameContent reports whether files have the names and the content in the record,
// whatever their times.
func (r *Record) SameContent(files []RecordFile) bool {
	return slices.EqualFunc(r.Files, files, func(a, b RecordFile) bool {
		if a.SHA256 == "" || b.SHA256 == "" {
			return a.Name == b.Name && a.Bytes == b.Bytes && a.Entries != "" && a.Entries == b.Entries
		}
		return a.Name == b.Name && a.Bytes == b.Bytes && a.SHA256 == b.SHA256
	})
}

// HasSums reports whether all files have a SHA-256. Others are archives with checksums of their own.
func (r *Record) HasSums() bool {
	return !slices.ContainsFunc(r.Files, func(f RecordFile) bool { return f.SHA256 == "" })
}

// Verify reads the files of a checkpoint that have a SHA-256 and compares them with its record.
func (r *Record) Verify(ctx context.Context, root *os.Root) error { return r.verifyIn(ctx, root, ".") }

// VerifyCopy does the same for the copy.
func (r *Record) VerifyCopy(ctx context.Context, root *os.Root) error {
	return r.verifyIn(ctx, root, r.Copy)
}

func (r *Record) verifyIn(ctx context.Context, root *os.Root, dir string) error {
	for _, f := range r.Files {
		if f.SHA256 == "" {
			continue
		}
		size, sum, err := hashIn(ctx, root, path.Join(dir, f.Name))
		want := File{Bytes: f.Bytes, SHA256: f.SHA256}
		if err := want.compare(f.Name, File{Bytes: size, SHA256: sum}, err); err != nil {
			return err
		}
	}
	return nil
}
