package atomicfile

import (
	"errors"
	"sync"
	"syscall"
	"unsafe"
)

const (
	// directAlign divides the offset, the length and the address in memory of each
	// direct write. Disks need 512 or 4096.
	directAlign = 4096
	// DirectPiece is how much a direct write has. The thread waits for the disk that
	// long, so a program with few processors should not do it often; a larger piece
	// gains nothing more.
	DirectPiece = 8 << 20
)

// DirectFile is a [File] that can be written past the page cache.
type DirectFile interface {
	File
	// SetDirect begins or ends that, and reports whether writes are direct from now
	// on: then offset, length and address of each are multiples of 4096.
	SetDirect(on bool) bool
}

// Direct lets what comes after the first DirectPiece bytes be written past the page
// cache, in pieces of that size, where the system and the file system can do that. That
// takes a fraction of the time of a copy into new pages of the cache, and leaves to other
// programs what they have there; but who reads the file soon reads it from the disk.
// It is called before the first Write.
func (p *Pending) Direct() {
	if file, ok := p.file.(DirectFile); ok {
		p.direct = &directWrites{file: file}
	}
}

// directWrites are those of a Pending, which writes what does not fill a piece through
// the page cache: the beginning, to which small files are limited, and the end.
type directWrites struct {
	file   DirectFile
	begun  int    // bytes before the first direct write
	piece  *piece // nil before it
	filled int    // of piece
}

type piece [DirectPiece + directAlign]byte

var directPieces = sync.Pool{New: func() any { return new(piece) }}

// aligned returns the part of the memory that a direct write can have.
func (p *piece) aligned() []byte {
	from := -uintptr(unsafe.Pointer(p)) % directAlign
	return p[from : from+DirectPiece]
}

// write appends b.
func (p *Pending) write(b []byte) (n int, err error) {
	for {
		var some int
		switch d := p.direct; {
		case d == nil:
			some, err = p.toFile(b)
		case d.piece == nil:
			some, err = p.toFile(b[:min(len(b), DirectPiece-d.begun)])
			if d.begun += some; d.begun == DirectPiece {
				p.beginDirect()
			}
		default:
			some = copy(d.piece.aligned()[d.filled:], b)
			if d.filled += some; d.filled == DirectPiece {
				err = p.writePiece()
			}
		}
		n += some
		b = b[some:]
		if err != nil || len(b) == 0 {
			return n, err
		}
	}
}

// beginDirect makes direct writes from now on, unless the file system refuses.
func (p *Pending) beginDirect() {
	if !p.direct.file.SetDirect(true) {
		p.direct = nil
		return
	}
	p.direct.piece = directPieces.Get().(*piece)
}

// writePiece writes what has been collected. What is no multiple of directAlign is the
// end of the file.
func (p *Pending) writePiece() (err error) {
	d := p.direct
	b := d.piece.aligned()[:d.filled]
	n, whole := 0, len(b)/directAlign*directAlign
	if whole > 0 {
		n, err = p.toFile(b[:whole])
	}
	if err != nil && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	d.filled = 0
	if n < len(b) {
		return p.endDirect(b[n:]) // the end, or the file system refuses after all
	}
	return nil
}

// endDirect writes the rest through the page cache, and all that comes later.
func (p *Pending) endDirect(rest []byte) (err error) {
	d := p.direct
	p.direct = nil
	d.file.SetDirect(false)
	if len(rest) > 0 {
		_, err = p.toFile(rest)
	}
	directPieces.Put(d.piece)
	return err
}

// flush writes what is still to be written of the last piece.
func (p *Pending) flush() error {
	if p.direct == nil || p.direct.piece == nil {
		return nil
	}
	return p.writePiece()
}
