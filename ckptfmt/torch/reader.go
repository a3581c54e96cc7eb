package torch

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"strings"
	"sync"
	"unsafe"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/internal/openfile"
	"github.com/trainerd/trainerd/ckptfmt/internal/pickle"
	"github.com/trainerd/trainerd/ckptfmt/internal/readtext"
	"github.com/trainerd/trainerd/ckptfmt/internal/zipdir"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Reader reads the tensors of a file. It is safe for concurrent use.
type Reader struct {
	name     string
	from     io.ReaderAt
	size     int64
	file     io.Closer
	archive  *zipdir.Archive // nil for files of the old kind
	members  members
	entries  []entry
	others   map[int]ckptfmt.Part // the entries that are not tensors of torch
	metadata map[string]string

	mu       sync.Mutex
	storages map[string]*storage // by their keys; those of an archive that were read

	unsummed bool // nothing has a checksum
	isBig    bool // the machine that saved it was big-endian

	visited, nameBytes int            // by flatten
	within             []any          // what flatten is in: dicts, lists and objects
	texts              map[any]string // of whole numbers and words, by their values
	byName             []int32        // places of the entries in the order of their names; nil where they are in it
}

// entry is a tensor under its name.
type entry struct {
	name   string
	tensor *tensor // nil for what is in others
}

// storage is where elements are.
type storage struct {
	file  *zipdir.Member // nil in files of the old kind
	at    int64          // in those
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
		name: name, from: from, size: size, storages: make(map[string]*storage),
		metadata: make(map[string]string), others: make(map[int]ckptfmt.Part), texts: make(map[any]string),
	}
	if isLegacy(from) {
		return r, r.loadLegacy()
	}
	var err error
	if r.archive, err = zipdir.Open(from, size); err != nil {
		return nil, r.corruptArchive(err)
	}
	return r, r.loadArchive()
}

// loadArchive reads the pickle, and meanwhile, by a goroutine that has ended when it
// returns, the directory: as a rule its first member is the pickle.
func (r *Reader) loadArchive() error {
	var rest sync.WaitGroup
	defer rest.Wait() // also of a panic: until then the file has to stay in memory
	var damage error
	rest.Go(func() { damage = openfile.Guard(r.from, r.readMembers) })
	var value any
	var err error
	first := r.archive.First()
	isFirst := first != nil && isPickle(first.Name)
	if isFirst {
		value, err = r.load(first)
	}
	rest.Wait()
	if damage != nil {
		return damage
	}
	if !isFirst {
		value, err = r.load(r.members.find(pickleName))
	}
	if err != nil {
		return err
	}
	return r.nameAll(value)
}

// pickleName is the name of the member that is the pickle, in its folder.
const pickleName = "data.pkl"

func isPickle(name string) bool {
	folder, ok := strings.CutSuffix(name, pickleName)
	return ok && (folder == "" || strings.HasSuffix(folder, "/"))
}

// readMembers reads the directory, and the members other than the pickle and the storages.
func (r *Reader) readMembers() error {
	folder, err := r.folder()
	if err != nil {
		return err
	}
	if r.members, err = readMembers(r.archive, folder); err != nil {
		return r.corruptArchive(err)
	}
	if second := r.members.pickle; second != nil {
		return r.corrupt(second.Name, second, errors.New("it is the second pickle"))
	}
	if twice := r.members.twice; twice != nil {
		return r.corrupt(twice.Name, twice, errors.New("there are two of that name"))
	}
	if script := r.members.script(); script != nil {
		at, _ := r.archive.DataOffset(script) // 0 where that is damaged
		return &RefusedError{r.name, at, "it is a program of torch (TorchScript or torch.export)"}
	}
	// set_crc32_options(False) leaves 0 for each.
	r.unsummed = r.members.find(pickleName).CRC32 == 0
	return r.checkOrder()
}

// folder returns the folder of the first pickle.
func (r *Reader) folder() (string, error) {
	first := r.archive.First()
	if first == nil || !isPickle(first.Name) {
		first = nil
		err := r.archive.Each(func(m *zipdir.Member) {
			if first == nil && isPickle(m.Name) {
				first = m.Clone()
			}
		})
		if err != nil {
			return "", r.corruptArchive(err)
		}
	}
	if first == nil {
		return "", r.corrupt(pickleName, nil, errMissing)
	}
	return strings.TrimSuffix(first.Name, pickleName), nil
}

var errMissing = errors.New("there is none")

// checkOrder finds out in which order the bytes of an element are.
func (r *Reader) checkOrder() error {
	const name = "byteorder"
	m := r.members.find(name)
	if m == nil {
		return nil
	}
	text, _, err := r.read(m, name, 16)
	if err == nil {
		err = r.checkText(m, name, text)
	}
	switch order := strings.TrimSpace(text); {
	case err != nil:
		return err
	case order != "little" && order != "big":
		return r.corrupt(name, m, fmt.Errorf("it is %q", text))
	default:
		r.isBig = order == "big"
	}
	return nil
}

// load reads the pickle, and meanwhile its sum.
func (r *Reader) load(m *zipdir.Member) (value any, err error) {
	storages := r.archive.Most() // a file that has them has a hundred bytes and more for each
	text, start, err := r.read(m, pickleName, maxPickle+morePickle*int64(storages))
	if err != nil {
		return nil, err
	}
	var damage error
	var sum sync.WaitGroup
	sum.Go(func() { damage = openfile.Guard(r.from, func() error { return r.checkText(m, pickleName, text) }) })
	defer func() {
		if sum.Wait(); damage != nil {
			value, err = nil, damage // which is why the pickle may be refused
		}
	}()
	r.entries = make([]entry, 0, storages)
	limited := rules()
	limited.MaxValues = maxValues + moreValues*storages
	limited.Expected, limited.Copy = storages, true
	value, offset, err := pickle.Load(text, limited)
	if err != nil {
		return nil, &RefusedError{r.name, start + int64(offset), pickleName + ": " + err.Error()}
	}
	return value, nil
}

// read returns a whole stored member, without verifying its checksum, and its offset. The bytes are
// valid only until the reader is made.
func (r *Reader) read(m *zipdir.Member, name string, limit int64) (string, int64, error) {
	if _, err := r.stored(m, "", name); err != nil {
		return "", 0, err
	}
	if m.Packed > limit {
		return "", 0, r.corrupt(name, m, fmt.Errorf("it has %d bytes, more than %d", m.Packed, limit))
	}
	start, err := r.startOf(m)
	if err != nil {
		return "", 0, err
	}
	if view := openfile.View(r.from, start, int(m.Packed)); len(view) > 0 {
		return unsafe.String(&view[0], len(view)), start, nil
	}
	text, err := readtext.String(r.from, start, m.Packed)
	if err != nil {
		return "", 0, r.corrupt(name, m, err)
	}
	return text, start, nil
}

// checkText verifies the sum of a whole member. The 0 of files without sums is not a sum.
func (r *Reader) checkText(m *zipdir.Member, name, text string) error {
	if m.CRC32 == 0 {
		return nil
	}
	if got := sumOf(text); got != m.CRC32 {
		return r.corrupt(name, m, sumError(got, m.CRC32))
	}
	return nil
}

// sumOf sums a text in pieces: as a whole it would have to be copied.
func sumOf(text string) uint32 {
	sum, buf := uint32(0), make([]byte, min(len(text), 64<<10))
	for len(text) > 0 {
		n := copy(buf, text)
		sum = crc32.Update(sum, crc32.IEEETable, buf[:n])
		text = text[n:]
	}
	return sum
}

// stored insists that a member is there and stored. Its bytes are bytes of the file, so
// that none is larger than that.
func (r *Reader) stored(f *zipdir.Member, folder, name string) (*zipdir.Member, error) {
	switch {
	case f == nil:
		return nil, r.corrupt(folder+name, nil, errMissing)
	case f.Method != zipdir.Stored || f.Packed != f.Size:
		return nil, r.corrupt(folder+name, f, errors.New("it is compressed, which torch never does"))
	case f.Packed > r.size:
		return nil, r.corrupt(folder+name, f, fmt.Errorf("it has %d bytes, the file has %d", f.Packed, r.size))
	}
	return f, nil
}

// start returns where a storage begins, which its own header says: there may be a
// hundred thousand of them, so that is read when it is needed.
func (r *Reader) start(s *storage) (int64, error) {
	if s.file == nil {
		return s.at, nil
	}
	return r.startOf(s.file)
}

func (r *Reader) startOf(f *zipdir.Member) (int64, error) {
	start, err := r.archive.DataOffset(f)
	if err != nil {
		return 0, &ckptfmt.CorruptError{Name: r.name, Offset: max(start, 0), Part: fmt.Sprintf("member %q", f.Name), Err: err}
	}
	return start, nil
}

func (r *Reader) corruptArchive(err error) error {
	return &ckptfmt.CorruptError{Name: r.name, Part: "zip archive", Err: err}
}

// corrupt locates damage in a member, which may be missing.
func (r *Reader) corrupt(name string, f *zipdir.Member, err error) error {
	e := &ckptfmt.CorruptError{Name: r.name, Part: fmt.Sprintf("member %q", name), Err: err}
	if f != nil {
		e.Offset, _ = r.archive.DataOffset(f) // 0 where that is the damage
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
func (r *Reader) Parts() []ckptfmt.Part { return ckptfmt.AllParts(r) }

// Len implements [ckptfmt.PartList].
func (r *Reader) Len() int { return len(r.entries) }

// Name implements [ckptfmt.PartList].
func (r *Reader) Name(i int) string { return r.entries[i].name }

// ByName returns the places of the tensors in the order of their names, as
// [ckptfmt.PartList] describes it.
func (r *Reader) ByName() []int32 { return r.byName }

// Info implements [ckptfmt.PartList].
func (r *Reader) Info(i int) (ckptfmt.TensorInfo, error) {
	e := &r.entries[i]
	if e.tensor == nil {
		p := r.others[i]
		size, err := p.Size()
		return ckptfmt.TensorInfo{Name: p.Name, DType: p.DType, Foreign: p.Foreign, Shape: p.Shape, Bytes: size}, err
	}
	t := e.tensor
	n, err := dtype.NumElements(t.shape)
	return ckptfmt.TensorInfo{Name: e.name, DType: t.of.dtype, Foreign: t.of.foreign, Shape: t.shape, Bytes: n * t.of.size}, err
}

// Part implements [ckptfmt.PartList].
func (r *Reader) Part(i int) ckptfmt.Part {
	e := &r.entries[i]
	if e.tensor == nil {
		return r.others[i]
	}
	t := e.tensor
	p := ckptfmt.WholePart(e.name, t.of.dtype, t.shape, func() (io.ReadCloser, error) { return r.openEntry(e) })
	if p.Foreign = t.of.foreign; p.Foreign != "" {
		n, _ := dtype.NumElements(t.shape) // which was not an error when it was checked
		p.Bytes = n * t.of.size
	}
	return p
}

func (r *Reader) openEntry(e *entry) (io.ReadCloser, error) {
	s, err := r.storage(e.tensor.key)
	if err != nil {
		return nil, err
	}
	from, err := r.elements(s, e.tensor)
	if err != nil {
		return nil, err
	}
	if e.tensor.of.dtype == tfpb.DataType_DT_BOOL {
		from = &bools{from, e.name, r}
	}
	return io.NopCloser(from), nil
}

// Metadata returns the numbers and texts that were saved with the tensors.
func (r *Reader) Metadata() map[string]string { return r.metadata }

// Checks describes what [Reader.Verify] can find.
func (r *Reader) Checks() string {
	if r.unsummed {
		return "structure and sizes only: the file has no checksums"
	}
	return "CRC-32 of every storage"
}

// Verify reads every tensor, and yields the name of each with its error. Then it yields the errors of
// storages that no tensor has which can be read, without a name.
func (r *Reader) Verify(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for name, err := range ckptfmt.VerifyPartList(ctx, r) {
			if !yield(name, err) || err != nil && err == ctx.Err() {
				return
			}
		}
		for _, key := range r.unread() {
			if ctx.Err() != nil {
				yield("", ctx.Err())
				return
			}
			s, err := r.storage(key)
			if err == nil {
				err = r.check(s)
			}
			if err != nil && !yield("", err) {
				return
			}
		}
	}
}

// unread returns the keys of the storages that nothing has read.
func (r *Reader) unread() (keys []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range r.members.keys() {
		if r.storages[key] == nil {
			keys = append(keys, key)
		}
	}
	return keys
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
