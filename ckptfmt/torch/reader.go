package torch

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"math"
	"strings"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/internal/openfile"
	"github.com/trainerd/trainerd/ckptfmt/internal/pickle"
)

// Reader reads the tensors of a file. It is safe for concurrent use.
type Reader struct {
	name     string
	from     io.ReaderAt
	size     int64
	file     io.Closer
	members  map[string]*zip.File // by what follows the folder
	storages map[string]*storage
	parts    []ckptfmt.Part
	metadata map[string]string

	unsummed bool // nothing has a checksum

	visited, nameBytes int // by flatten
	named              map[string]bool
}

// storage is where elements are.
type storage struct {
	file  *zip.File // nil in files of the old kind
	at    int64     // in those
	bytes int64
	once  sync.Once
	err   error // of its checksum
}

// Open opens the file of that name and reads its pickle.
func Open(name string) (*Reader, error) {
	r, f, err := openfile.Open(name, NewReader)
	if err != nil {
		return nil, err
	}
	r.file = f
	return r, nil
}

// NewReader reads the pickle in the size bytes of from. name is for errors.
func NewReader(from io.ReaderAt, size int64, name string) (*Reader, error) {
	r := &Reader{
		name: name, from: from, size: size, members: make(map[string]*zip.File), storages: make(map[string]*storage),
		metadata: make(map[string]string), named: make(map[string]bool),
	}
	if isLegacy(from) {
		return r, r.loadLegacy()
	}
	archive, err := zip.NewReader(from, size)
	if err != nil {
		return nil, &ckptfmt.CorruptError{Name: name, Part: "zip archive", Err: err}
	}
	folder, err := r.folder(archive)
	if err != nil {
		return nil, err
	}
	for _, f := range archive.File {
		if base, ok := strings.CutPrefix(f.Name, folder); ok {
			if r.members[base] != nil {
				return nil, r.corrupt(f.Name, errors.New("there are two of that name"))
			}
			r.members[base] = f
		}
	}
	// set_crc32_options(False) leaves 0 for each.
	r.unsummed = r.members["data.pkl"].CRC32 == 0
	if err := r.checkOrder(); err != nil {
		return nil, err
	}
	return r, r.load()
}

// folder returns the folder of the only pickle.
func (r *Reader) folder(archive *zip.Reader) (string, error) {
	found := ""
	for _, f := range archive.File {
		if folder, ok := strings.CutSuffix(f.Name, "data.pkl"); ok && (folder == "" || strings.HasSuffix(folder, "/")) {
			if found != "" {
				return "", r.corrupt(f.Name, errors.New("it is the second pickle"))
			}
			found = f.Name
		}
	}
	if found == "" {
		return "", r.corrupt("data.pkl", errors.New("there is none"))
	}
	return strings.TrimSuffix(found, "data.pkl"), nil
}

// checkOrder refuses big-endian files.
func (r *Reader) checkOrder() error {
	if r.members["byteorder"] == nil {
		return nil
	}
	b, _, err := r.read("byteorder", 16)
	if err == nil && strings.TrimSpace(string(b)) != "little" {
		err = fmt.Errorf("%s: byteorder is %q; only little-endian files are read", r.name, b)
	}
	return err
}

// load reads the pickle and names the tensors in it.
func (r *Reader) load() error {
	b, start, err := r.read("data.pkl", maxPickle)
	if err != nil {
		return err
	}
	value, offset, err := pickle.Load(b, rules)
	if err != nil {
		return &RefusedError{r.name, start + int64(offset), "data.pkl: " + err.Error()}
	}
	return r.flatten("", value, 0)
}

// read returns a whole stored member, and where it begins.
func (r *Reader) read(member string, limit int64) ([]byte, int64, error) {
	s, err := r.open(member)
	if err != nil {
		return nil, 0, err
	}
	if s.bytes > limit {
		return nil, 0, r.corrupt(member, fmt.Errorf("it has %d bytes, more than %d", s.bytes, limit))
	}
	start, err := r.start(s)
	if err != nil {
		return nil, 0, err
	}
	b := make([]byte, s.bytes)
	if _, err := r.from.ReadAt(b, start); err != nil {
		return nil, 0, r.corrupt(member, err)
	}
	if got := crc32.ChecksumIEEE(b); got != s.file.CRC32 && !r.unsummed {
		return nil, 0, r.corrupt(member, sumError(got, s.file.CRC32))
	}
	return b, start, nil
}

// open finds a stored member. Its bytes are bytes of the file, so that none is
// larger than that.
func (r *Reader) open(member string) (*storage, error) {
	f := r.members[member]
	if f == nil {
		return nil, r.corrupt(member, errors.New("there is none"))
	}
	if f.Method != zip.Store || f.CompressedSize64 != f.UncompressedSize64 || f.CompressedSize64 > math.MaxInt64 {
		return nil, r.corrupt(member, errors.New("it is compressed, which torch never does"))
	}
	s := &storage{file: f, bytes: int64(f.CompressedSize64)}
	if s.bytes > r.size {
		return nil, r.corrupt(member, fmt.Errorf("it has %d bytes, the file has %d", s.bytes, r.size))
	}
	return s, nil
}

// start returns where a storage begins, which its own header says: there may be a
// hundred thousand of them, so that is read when it is needed.
func (r *Reader) start(s *storage) (int64, error) {
	if s.file == nil {
		return s.at, nil
	}
	start, err := s.file.DataOffset()
	if err == nil && s.bytes > r.size-start {
		err = fmt.Errorf("it has %d bytes at %d, the file has %d", s.bytes, start, r.size)
	}
	if err != nil {
		return 0, &ckptfmt.CorruptError{Name: r.name, Offset: max(start, 0), Part: fmt.Sprintf("member %q", s.file.Name), Err: err}
	}
	return start, nil
}

func (r *Reader) corrupt(member string, err error) error {
	e := &ckptfmt.CorruptError{Name: r.name, Part: fmt.Sprintf("member %q", member), Err: err}
	if f := r.members[member]; f != nil {
		e.Offset, _ = f.DataOffset() // 0 where that is the damage
	}
	return e
}

// Close closes the file.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// Parts returns the tensors in the order in which they were saved. They are
// valid until the reader is closed.
func (r *Reader) Parts() []ckptfmt.Part { return r.parts }

// Metadata returns the numbers and texts that were saved with the tensors.
func (r *Reader) Metadata() map[string]string { return r.metadata }

// Checks says in words what [Reader.Verify] can find.
func (r *Reader) Checks() string {
	if r.unsummed {
		return "structure and sizes only: the file has no checksums"
	}
	return "CRC-32 of every storage"
}

// Verify reads every tensor, and gives the name of each with what is wrong.
func (r *Reader) Verify(ctx context.Context) iter.Seq2[string, error] {
	return ckptfmt.VerifyParts(ctx, r.parts)
}

// check verifies the CRC-32 of a storage once.
func (r *Reader) check(s *storage) error {
	if r.unsummed {
		return nil
	}
	s.once.Do(func() {
		start, err := r.start(s)
		if err != nil {
			s.err = err
			return
		}
		sum := crc32.NewIEEE()
		if _, err = io.Copy(sum, io.NewSectionReader(r.from, start, s.bytes)); err == nil && sum.Sum32() != s.file.CRC32 {
			err = sumError(sum.Sum32(), s.file.CRC32)
		}
		if err != nil {
			s.err = &ckptfmt.CorruptError{Name: r.name, Offset: start, Part: fmt.Sprintf("member %q", s.file.Name), Err: err}
		}
	})
	return s.err
}

func sumError(got, want uint32) error {
	return fmt.Errorf("%w: CRC-32 is %#08x, stored is %#08x", ckptfmt.ErrChecksum, got, want)
}
