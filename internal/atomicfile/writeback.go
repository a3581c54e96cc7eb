package atomicfile

// writebackPiece is how much is written before the disk is set to work on it.
const writebackPiece = 8 << 20

// writebacker is a File that can start writing to the disk early, which is not a sync.
type writebacker interface {
	beginWriteback(offset, size int64)
}

// earlyWriteback lets the disk begin while there is still more to be written,
// so that the sync at the end has less to wait for.
type earlyWriteback struct {
	disk           writebacker // nil where that is not possible
	written, begun int64
}

// wrote records that n more bytes have been written.
func (e *earlyWriteback) wrote(n int) {
	e.written += int64(n)
	if e.disk == nil || e.written-e.begun < writebackPiece {
		return
	}
	e.disk.beginWriteback(e.begun, e.written-e.begun)
	e.begun = e.written
}

// skip records that n more bytes are on the disk.
func (e *earlyWriteback) skip(n int) {
	e.written += int64(n)
	e.begun = e.written
}
