package integrity

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/trainerd/trainerd/internal/crc32c"
)

// The manifest of a key-value store of tensorstore (OCDBT), which orbax writes to, has the
// root of its tree. Its length differs from save to save, but it says itself where it ends:
//
//	+0   0c db 3a 2a
//	+4   length of the file        8 bytes, little-endian
//	+12  version, compression, the tree ...
//	-4   CRC-32C of all before it  4 bytes, little-endian
const (
	treeMagic  = "\x0c\xdb\x3a\x2a"
	treeHead   = len(treeMagic) + 8
	treeLength = treeHead + 4 // of one without content
)

// checkTree reads a whole manifest.
func checkTree(f io.ReaderAt, size int64, head []byte) error {
	if size < int64(treeLength) {
		return errCut
	}
	if says := binary.LittleEndian.Uint64(head[len(treeMagic):]); says != uint64(size) {
		return fmt.Errorf("it says %d bytes, and there are %d", says, size)
	}
	var sum [4]byte
	if _, err := f.ReadAt(sum[:], size-4); err != nil {
		return err
	}
	crc, buf := uint32(0), make([]byte, 32<<10)
	for r := io.NewSectionReader(f, 0, size-4); ; {
		n, err := r.Read(buf)
		crc = crc32c.Extend(crc, buf[:n])
		switch {
		case err == io.EOF && crc != binary.LittleEndian.Uint32(sum[:]):
			return errors.New("its checksum is wrong")
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}
