package manifest

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// Sum is the SHA-256 that a file should have, according to another file near
// it.
type Sum struct {
	File   string
	SHA256 string // in hexadecimal
	Source string // the file that says so, for messages

	// Bytes is its size, -1 if unknown. Modified is the file's time when the sum was
	// taken, zero if unknown: a file with another time may have been rewritten.
	Bytes    int64
	Modified time.Time
}

// SumFiles are the names of lists of sums as sha256sum prints them. A file may
// also have its own, with ".sha256" added to its name.
var SumFiles = []string{"SHA256SUMS", "SHA256SUMS.txt", "sha256sums.txt", "sha256sum.txt", "checksums.txt"}

// maxAbove bounds how many folders above a file may hold its record.
const maxAbove = 8

// SumFinder finds the sums that are recorded for files. It reads each record and each
// list once, however many files are asked for. The zero value is ready; it is for one
// goroutine at a time.
type SumFinder struct {
	records map[string][]*Record // by logdir
	lists   map[string]map[string]Sum
	bad     []error
}

// Find returns the sums recorded for files: in trainerd's records in a folder above them, in a list
// of sums next to them, or in the Hugging Face hub's notes on its downloads. It returns at most one
// for each file, in that order of preference. bad has the files that cannot be read and that no
// earlier call has reported.
func (x *SumFinder) Find(files []string) (sums []Sum, bad []error) {
	if x.records == nil {
		x.records, x.lists = make(map[string][]*Record), make(map[string]map[string]Sum)
	}
	x.bad = nil
	for _, file := range files {
		full, err := filepath.Abs(file)
		if err != nil {
			x.bad = append(x.bad, err)
			continue
		}
		s, ok := x.inRecords(full)
		if !ok {
			s, ok = x.inLists(full)
		}
		if !ok {
			s, ok = ofHub(full)
		}
		if ok {
			s.File = file
			sums = append(sums, s)
		}
	}
	return sums, x.bad
}

// inRecords looks into the folders above a file for records of it, or of a copy.
func (x *SumFinder) inRecords(full string) (Sum, bool) {
	dir := filepath.Dir(full)
	for range maxAbove {
		all, known := x.records[dir]
		if !known {
			var bad []error
			all, bad = Records(dir)
			x.records[dir] = all
			x.bad = append(x.bad, bad...)
		}
		rel, err := filepath.Rel(dir, full)
		if err != nil {
			return Sum{}, false
		}
		if s, ok := sumIn(all, dir, filepath.ToSlash(rel)); ok {
			return s, true
		}
		above := filepath.Dir(dir)
		if above == dir {
			break
		}
		dir = above
	}
	return Sum{}, false
}

// sumIn returns the sum of a file in its newest record.
func sumIn(all []*Record, logdir, name string) (found Sum, ok bool) {
	for _, r := range all {
		for _, f := range r.Files {
			if f.SHA256 == "" {
				continue
			}
			s := Sum{SHA256: f.SHA256, Bytes: f.Bytes, Source: filepath.Join(logdir, RecordName(r.Name, r.Step))}
			switch {
			case f.Name == name:
				s.Modified = f.Modified
			case r.Copy == "" || r.Copy+"/"+f.Name != name:
				continue
			}
			found, ok = s, true
		}
	}
	return found, ok
}

// inLists looks for lists of sums next to a file.
func (x *SumFinder) inLists(full string) (Sum, bool) {
	dir, base := filepath.Split(full)
	for _, name := range append([]string{base + ".sha256"}, SumFiles...) {
		list := filepath.Join(dir, name)
		sums, known := x.lists[list]
		if !known {
			var err error
			if sums, err = readSums(list); err != nil && !errors.Is(err, fs.ErrNotExist) {
				x.bad = append(x.bad, err)
			}
			x.lists[list] = sums
		}
		if s, ok := sums[base]; ok {
			return s, true
		}
		if s, ok := sums[""]; ok && name == base+".sha256" { // the sum alone
			return s, true
		}
	}
	return Sum{}, false
}

// sumLine is a line of sha256sum: the sum, a blank, a blank or an asterisk, the
// name; or what BSD prints: SHA256 (name) = sum.
var sumLine = lazyregexp.New(`^(?:\\?([0-9a-fA-F]{64})(?:[ \t]+\*?(.*))?|SHA256 \((.*)\) = ([0-9a-fA-F]{64}))$`)

// readSums reads a list of sums. Lines of another form are skipped: lists of
// other sums may have the same name.
func readSums(name string) (map[string]Sum, error) {
	f, err := atomicfile.Open(nil, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sums := make(map[string]Sum)
	lines := bufio.NewScanner(io.LimitReader(f, maxSize))
	for lines.Scan() {
		m := sumLine().FindStringSubmatch(strings.TrimRight(lines.Text(), "\r"))
		if m == nil {
			continue
		}
		file := strings.TrimPrefix(cmp.Or(m[2], m[3]), "./")
		sums[file] = Sum{SHA256: strings.ToLower(cmp.Or(m[1], m[4])), Bytes: -1, Source: name}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return sums, nil
}

var sumAlone = lazyregexp.New(`^[0-9a-f]{64}$`)

// ofHub returns the sum that the Hugging Face hub records for a large file: in its cache the file
// is a link to one whose name is the sum; in any other folder the sum is in the second line of
// .cache/huggingface/download/NAME.metadata, after the revision and before the time of the
// download.
func ofHub(full string) (Sum, bool) {
	if target, _ := filepath.EvalSymlinks(full); target != full {
		if base := filepath.Base(target); sumAlone().MatchString(base) && filepath.Base(filepath.Dir(target)) == "blobs" {
			return Sum{SHA256: base, Bytes: -1, Source: "its name in the cache of the Hugging Face hub"}, true
		}
	}
	note := filepath.Join(filepath.Dir(full), ".cache", "huggingface", "download", filepath.Base(full)+".metadata")
	b, err := atomicfile.ReadFileLimit(nil, note, 4096, nil)
	if err != nil {
		return Sum{}, false
	}
	lines := strings.Split(string(b), "\n")
	if len(lines) < 2 || !sumAlone().MatchString(strings.TrimSpace(lines[1])) {
		return Sum{}, false // a small file has the sum of Git
	}
	return Sum{SHA256: strings.TrimSpace(lines[1]), Bytes: -1, Source: note}, true
}

// Verify reads a file and compares it with its sum. The error matches [ErrOutdated]
// if the file was rewritten since the sum was taken; any other means damage, or
// that it cannot be read.
func (s *Sum) Verify(ctx context.Context) error {
	f, err := atomicfile.Open(nil, s.File)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size, sum, err := hashOf(ctx, f)
	same := strings.EqualFold(sum, s.SHA256) && (s.Bytes < 0 || size == s.Bytes)
	switch {
	case err != nil || same:
		return err
	case !s.Modified.IsZero() && !info.ModTime().Equal(s.Modified):
		return fmt.Errorf("%s: %w, after %s", s.File, ErrOutdated, s.Source)
	case s.Bytes >= 0 && size != s.Bytes:
		err = fmt.Errorf("it has %d bytes, %s says %d", size, s.Source, s.Bytes)
	default:
		err = fmt.Errorf("SHA-256 %w: %s says %s, computed %s", ckptfmt.ErrChecksum, s.Source, s.SHA256, sum)
	}
	return &ckptfmt.CorruptError{Name: s.File, Part: "file", Err: err}
}
