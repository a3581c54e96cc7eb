package atomicfile

import (
	"errors"
	"sync"
	"syscall"
	"unsafe"
)

const (
	// DirectPiece is how much a direct write has: enough for a disk to be at its full
	// speed with one at a time.
	DirectPiece = 8 << 20
	// directAlign divides the address in memory of each. Disks need 512 or 4096.
	directAlign = 4096
)

// DirectFile is a [File] that can be written past the page cache.
type DirectFile interface {
	File
	// Direct begins that where the system and the file system can do it, and returns nil
	// where not. The file is written by it alone until its End.
	Direct() DirectWriter
}

// DirectWriter writes pieces of DirectPiece bytes past the page cache, one at a time and
// while its caller does something else.
type DirectWriter interface {
	// Begin begins to write a piece at a multiple of DirectPiece. It must not change
	// before Wait has returned. After an error nothing was begun.
	Begin(b []byte, offset int64) error
	// Wait waits for what was begun, and returns how many bytes were written.
	Wait() (int, error)
	// End waits for what was begun. It gives the file that size, and Write continues there.
	End(size int64) error
}

// Direct makes the writes of a large file bypass the page cache if possible, except for its first
// and last DirectPiece bytes. That takes a fraction of the processor time of a copy into new pages
// of the cache, none while the disk works, and leaves other programs' pages in the cache; but the
// next reader of the file reads it from the disk. It must be called before the first Write.
func (p *Pending) Direct() {
	if file, ok := p.file.(DirectFile); ok {
		p.direct = &directWrites{file: file}
	}
}

// directWrites is the state of a Pending's direct writes. Small files have none, and no memory for
// it.
type directWrites struct {
	file   DirectFile
	disk   DirectWriter // nil until the file is large
	offset int64        // of what is being written, or else of what is collected
	piece  *directPiece // collects what is written next
	filled int          // of piece
	busy   *directPiece // is being written; nil if none is
}

type directPiece [DirectPiece + directAlign]byte

var directPieces = sync.Pool{New: func() any { return new(directPiece) }}

// bytes returns the part of the memory that a direct write can have.
func (p *directPiece) bytes() []byte {
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
		case d.disk == nil:
			some, err = p.toFile(b[:min(int64(len(b)), DirectPiece-d.offset)])
			if d.offset += int64(some); d.offset == DirectPiece {
				p.beginDirect()
			}
		default:
			some = copy(d.piece.bytes()[d.filled:], b)
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

func (p *Pending) beginDirect() {
	d := p.direct
	if d.disk = d.file.Direct(); d.disk == nil {
		p.direct = nil
		return
	}
	d.piece = directPieces.Get().(*directPiece)
}

// writePiece begins to write the piece that has been collected.
func (p *Pending) writePiece() error {
	d := p.direct
	if err := p.awaitPiece(); err != nil || p.direct == nil {
		return err
	}
	if d.disk.Begin(d.piece.bytes(), d.offset) != nil {
		return p.endDirect(nil) // the page cache will say what is wrong, if anything is
	}
	d.busy, d.piece, d.filled = d.piece, directPieces.Get().(*directPiece), 0
	return nil
}

// awaitPiece waits for the piece that is being written. A file system that refuses it late
// gets it through the page cache, as all that follows.
func (p *Pending) awaitPiece() error {
	d := p.direct
	if d.busy == nil {
		return nil
	}
	n, err := d.disk.Wait()
	d.offset += int64(n)
	p.early.skip(n)
	if n < DirectPiece && (err == nil || errors.Is(err, syscall.EINVAL)) {
		return p.endDirect(d.busy.bytes()[n:])
	}
	directPieces.Put(d.busy)
	d.busy = nil
	return err
}

// endDirect writes through the page cache from now on: first rest, and what is collected.
func (p *Pending) endDirect(rest []byte) error {
	d := p.direct
	p.direct = nil
	err := d.disk.End(d.offset)
	for _, b := range [][]byte{rest, d.piece.bytes()[:d.filled]} {
		if len(b) > 0 && err == nil {
			_, err = p.toFile(b)
		}
	}
	d.free()
	return err
}

// free gives back the memory. Nothing is being written any more.
func (d *directWrites) free() {
	directPieces.Put(d.piece)
	if d.busy != nil {
		directPieces.Put(d.busy)
	}
}

// flush waits for direct writes, and writes what is still to be written.
func (p *Pending) flush() error {
	if p.direct == nil || p.direct.disk == nil {
		return nil
	}
	if err := p.awaitPiece(); err != nil || p.direct == nil {
		return err
	}
	return p.endDirect(nil)
}

// abandon ends direct writes to a file that is to be removed.
func (p *Pending) abandon() {
	if d := p.direct; d != nil && d.disk != nil {
		p.direct = nil
		_ = d.disk.End(0) // the file goes
		d.free()
	}
}
