// Package zipdir reads zip archives with very many members: it reads the directory in large pieces,
// and allocates the memory of all names together. archive/zip needs several allocations for each
// member, and a second for an archive of a million.
//
// # Format
//
//	members        50 4b 03 04 | ... | lengths of name and extra: uint16 | name | extra | bytes
//	directory      50 4b 01 02 | ... | name | extra | comment, for each member
//	end            50 4b 05 06 | numbers of disks and members | size, offset of the directory | comment
//
// Larger archives (zip64) have a second end record before that one, 50 4b 06 06, to which a locator
// of 20 bytes, 50 4b 06 07, points, and 64-bit sizes in the extra fields. All numbers are
// little-endian. The layout is that of PKWARE's APPNOTE.
//
// The directory decides: only the lengths in a member's own header are used. A member's CRC-32 is
// verified after its last byte.
//
// An Archive is safe for concurrent use.
package zipdir

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unsafe"

	"github.com/trainerd/trainerd/ckptfmt/internal/readahead"
	"github.com/trainerd/trainerd/ckptfmt/internal/slab"
)

// Wire format.
const (
	memberSize   = 30
	nameLengthAt = 26 // of a member's header

	directorySize       = 46
	endSize             = 22
	locatorSize         = 20
	end64Size           = 56
	maxComment          = 1<<16 - 1
	sigMember           = 0x04034b50
	sigDirectory        = 0x02014b50
	sigEnd              = "PK\x05\x06"
	sigLocator          = 0x07064b50
	sigEnd64            = 0x06064b50
	extra64             = 1
	none32              = math.MaxUint32 // what the extra field has
	none16              = math.MaxUint16
	maxDirectory  int64 = 1 << 30
)

// Methods of compression.
const (
	Stored   = 0
	Deflated = 8
)

// ErrFormat matches the errors of what is no intact archive.
var ErrFormat = errors.New("it is not a whole zip archive")

// Member is a file in an archive.
type Member struct {
	Name, Comment string
	Method        uint16
	CRC32         uint32
	// Size is that of the content, Packed that of the bytes in the archive.
	Size, Packed int64

	Header int64 // where its own header is
}

// Archive is a zip archive.
type Archive struct {
	Members []Member // in the order of the directory
	from    io.ReaderAt
	size    int64
	end     end
}

// Read reads the directory of an archive in the size bytes of from.
func Read(from io.ReaderAt, size int64) (*Archive, error) {
	a, err := Open(from, size)
	if err != nil {
		return nil, err
	}
	return a, a.ReadMembers()
}

// Each calls f with each member of an archive, and keeps none: f may not keep the name and the
// comment of one, which are views of what is read.
func Each(from io.ReaderAt, size int64, f func(m *Member)) error {
	a, err := Open(from, size)
	if err != nil {
		return err
	}
	return a.Each(f)
}

// Each is the function of that name, of an open archive.
func (a *Archive) Each(f func(m *Member)) error {
	return a.each(func(m *Member) bool { f(m); return true })
}

// Open finds the directory, and reads none of it.
func Open(from io.ReaderAt, size int64) (*Archive, error) {
	e, err := findEnd(from, size)
	if err != nil {
		return nil, err
	}
	if e.size > maxDirectory {
		return nil, fmt.Errorf("%w: its directory has %d bytes, at most %d are read", ErrFormat, e.size, maxDirectory)
	}
	return &Archive{from: from, size: size, end: e}, nil
}

// First returns the first member, nil where there is none.
func (a *Archive) First() (first *Member) {
	_ = a.each(func(m *Member) bool { first = m.Clone(); return false }) // Each says what is wrong
	return first
}

// Most returns how many members there are at most.
func (a *Archive) Most() int { return int(min(a.end.members, uint64(a.end.size/directorySize))) }

// ReadMembers makes Members of the directory. All but these can be used meanwhile.
func (a *Archive) ReadMembers() error {
	a.Members = make([]Member, 0, a.Most())
	var texts slab.Texts
	return a.each(func(m *Member) bool {
		a.Members = append(a.Members, *m)
		last := &a.Members[len(a.Members)-1]
		last.Name, last.Comment = texts.KeepString(m.Name), texts.KeepString(m.Comment)
		return true
	})
}

// Clone returns a copy of a member that can be kept.
func (m *Member) Clone() *Member {
	c := *m
	c.Name, c.Comment = strings.Clone(m.Name), strings.Clone(m.Comment)
	return &c
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// end is where the directory is.
type end struct {
	at, size int64
	base     int64 // that offsets count from
	members  uint64
}

// findEnd reads the end of an archive, which a comment may follow.
func findEnd(from io.ReaderAt, size int64) (end, error) {
	var b []byte
	at := -1
	for _, n := range []int64{1 << 10, endSize + maxComment} {
		n = min(n, size)
		b = make([]byte, n)
		if _, err := from.ReadAt(b, size-n); err != nil && err != io.EOF {
			return end{}, err
		}
		if at = lastEnd(b); at >= 0 || n == size {
			break
		}
	}
	if at < 0 {
		return end{}, fmt.Errorf("%w: it has no directory at its end, so it was cut off", ErrFormat)
	}
	offset := size - int64(len(b)) + int64(at)
	b = b[at:]
	e := end{
		members: uint64(binary.LittleEndian.Uint16(b[10:])),
		size:    int64(binary.LittleEndian.Uint32(b[12:])), at: int64(binary.LittleEndian.Uint32(b[16:])),
	}
	if e.members == none16 || e.size == none32 || e.at == none32 {
		var err error
		if offset, err = e.read64(from, offset); err != nil {
			return end{}, err
		}
	}
	return e, e.place(from, offset)
}

// lastEnd returns where the last end of a directory begins whose comment is within
// the bytes, or -1.
func lastEnd(b []byte) int {
	for i := len(b); i > 0; {
		if i = bytes.LastIndex(b[:i], []byte(sigEnd)); i < 0 {
			break
		}
		if len(b)-i >= endSize && int(binary.LittleEndian.Uint16(b[i+20:])) <= len(b)-i-endSize {
			return i
		}
	}
	return -1
}

// read64 reads the second end, if there is one, and returns where the first of both
// begins.
func (e *end) read64(from io.ReaderAt, offset int64) (int64, error) {
	var b [end64Size]byte
	if offset < locatorSize {
		return offset, nil
	}
	if _, err := from.ReadAt(b[:locatorSize], offset-locatorSize); err != nil {
		return 0, noEOF(err)
	}
	if binary.LittleEndian.Uint32(b[:]) != sigLocator || binary.LittleEndian.Uint32(b[4:]) != 0 || binary.LittleEndian.Uint32(b[16:]) != 1 {
		return offset, nil
	}
	at := binary.LittleEndian.Uint64(b[8:])
	if at > uint64(offset) {
		return 0, fmt.Errorf("%w: its second end is at %d, after the first", ErrFormat, at)
	}
	if _, err := from.ReadAt(b[:], int64(at)); err != nil {
		return 0, noEOF(err)
	}
	if binary.LittleEndian.Uint32(b[:]) != sigEnd64 {
		return 0, fmt.Errorf("%w: there is no second end at %d", ErrFormat, at)
	}
	size, start := binary.LittleEndian.Uint64(b[40:]), binary.LittleEndian.Uint64(b[48:])
	if size > at || start > at {
		return 0, fmt.Errorf("%w: its directory is after the end", ErrFormat)
	}
	e.members, e.size, e.at = binary.LittleEndian.Uint64(b[32:]), int64(size), int64(start)
	return int64(at), nil
}

// place finds the directory, which ends where its end begins at offset. Bytes before
// the archive, such as a program that unpacks it, move everything, unless the offsets
// count them.
func (e *end) place(from io.ReaderAt, offset int64) error {
	base := offset - e.size - e.at
	if base < 0 {
		return fmt.Errorf("%w: a directory of %d bytes at %d does not end at %d", ErrFormat, e.size, e.at, offset)
	}
	if base > 0 && e.members > 0 {
		var b [4]byte
		if _, err := from.ReadAt(b[:], e.at); err == nil && binary.LittleEndian.Uint32(b[:]) == sigDirectory {
			base = 0
		}
	}
	e.base = base
	e.at += base
	return nil
}

// each calls f with each member in the directory, which f may not keep: all of them
// have the same memory, and their texts that of what is read. It ends where f returns
// false. The number of members is one of 16 bits in the archives of some programs, however
// many there are.
func (a *Archive) each(f func(m *Member) bool) error {
	ahead := readahead.New(a.from, a.size)
	m, count, end := new(Member), uint64(0), a.end.at+a.end.size
	for at := a.end.at; end-at >= directorySize; count++ {
		head, err := ahead.Peek(at, directorySize)
		if err != nil {
			return noEOF(err)
		}
		if u32(head) != sigDirectory {
			break
		}
		n := memberLength(head)
		entry, err := ahead.Peek(at, int(min(n, end-at)))
		if err != nil {
			return noEOF(err)
		}
		if n > end-at {
			return fmt.Errorf("%w: member %d: %w", ErrFormat, count, io.ErrUnexpectedEOF)
		}
		if *m, err = parseMember(entry); err != nil {
			return fmt.Errorf("%w: member %d: %w", ErrFormat, count, err)
		}
		m.Header += a.end.base
		if !f(m) {
			return nil
		}
		at += n
	}
	if uint16(count) != uint16(a.end.members) {
		return fmt.Errorf("%w: its directory has %d members of %d", ErrFormat, count, a.end.members)
	}
	return nil
}

func u16(b []byte) int    { return int(binary.LittleEndian.Uint16(b)) }
func u32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
func u64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// memberLength returns the length of an entry of the directory.
func memberLength(b []byte) int64 {
	return int64(directorySize + u16(b[28:]) + u16(b[30:]) + u16(b[32:]))
}

// parseMember reads an entry of the directory.
func parseMember(b []byte) (Member, error) {
	name, extra := u16(b[28:]), u16(b[30:])
	rest := b[directorySize:]
	m := Member{
		Method: uint16(u16(b[10:])), CRC32: u32(b[16:]), Packed: int64(u32(b[20:])), Size: int64(u32(b[24:])), Header: int64(u32(b[42:])),
		Name: view(rest[:name]), Comment: view(rest[name+extra:]),
	}
	if m.Packed == none32 || m.Size == none32 || m.Header == none32 {
		return m, m.parse64(rest[name : name+extra])
	}
	return m, nil
}

// view returns bytes as a text that is valid as long as they are.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// parse64 takes from the extra fields what does not fit into 32 bits.
func (m *Member) parse64(extra []byte) error {
	for len(extra) >= 4 {
		kind, n := u16(extra), u16(extra[2:])
		if extra = extra[4:]; n > len(extra) {
			break
		}
		field := extra[:n]
		extra = extra[n:]
		if kind != extra64 {
			continue
		}
		for _, v := range []*int64{&m.Size, &m.Packed, &m.Header} {
			if *v != none32 {
				continue
			}
			if len(field) < 8 || u64(field) > math.MaxInt64/2 {
				return errors.New("its sizes of 64 bits are missing, or larger than any file")
			}
			*v, field = int64(u64(field)), field[8:]
		}
		return nil
	}
	return nil
}
