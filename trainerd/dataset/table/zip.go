package table

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"path"
	"strings"

	"github.com/klauspost/compress/flate"
)

// A zip archive with a single file is read from beginning to end, so that it may
// come from a pipe. APPNOTE.TXT of PKWARE has the layout: a local header, the
// name, extra fields, the compressed file, then, if flag 8 says so, its checksum and
// sizes; the next signature is that of another file or of the directory.
//
//	0  "PK\x03\x04"      8  method: 0 stored, 8 deflated   26  length of the name
//	4  version           14 CRC-32                         28  length of the extra fields
//	6  flags             18 compressed size                30  name, extra fields, file
const (
	zipMagic      = "PK\x03\x04"
	zipDescriptor = "PK\x07\x08"
	zipHeaderSize = 30
	zipNameSizeAt = 26
	zipStored     = 0
	zipDeflated   = 8
	zipEncrypted  = 1 << 0
	zipSizeAfter  = 1 << 3
	zipUnknown    = 1<<32 - 1 // the size is in the extra fields
)

// zipTexts end the names of files that may be tables of text. Other archives, such
// as those of spreadsheets, are not taken for one.
var zipTexts = []string{".csv", ".tsv", ".tab", ".txt", ".dat", ".data", ".json", ".jsonl", ".ndjson"}

// zipped is the file in an archive.
type zipped struct {
	archive *bufio.Reader
	plain   io.Reader
	flags   uint16
	want    uint32 // the checksum, once it is known
	sum     hash.Hash32
	done    error
}

// openZip begins to read the only file of an archive; false if what it holds is no
// table of text.
func openZip(b *bufio.Reader) (r io.Reader, ok bool, err error) {
	head, err := b.Peek(zipHeaderSize)
	if err != nil {
		return nil, true, cutShort(noEOF(err))
	}
	flags, method := binary.LittleEndian.Uint16(head[6:]), binary.LittleEndian.Uint16(head[8:])
	sum, size := binary.LittleEndian.Uint32(head[14:]), binary.LittleEndian.Uint32(head[18:])
	nameSize, extra := int(binary.LittleEndian.Uint16(head[zipNameSizeAt:])), int(binary.LittleEndian.Uint16(head[28:]))
	head, err = b.Peek(zipHeaderSize + nameSize)
	if err != nil {
		return nil, true, cutShort(noEOF(err))
	}
	name := string(head[zipHeaderSize:])
	isText := false
	for _, end := range zipTexts {
		isText = isText || strings.HasSuffix(strings.ToLower(name), end)
	}
	if !isText {
		return nil, false, nil
	}
	stored := method == zipStored && flags&zipSizeAfter == 0 && size != zipUnknown
	if flags&zipEncrypted != 0 || method != zipDeflated && !stored {
		return nil, true, &Error{Reason: fmt.Sprintf("is a zip archive whose file %s is encrypted, or compressed in a way that is not supported", path.Base(name)), Hint: "unpack it"}
	}
	if _, err := b.Discard(zipHeaderSize + nameSize + extra); err != nil {
		return nil, true, cutShort(noEOF(err))
	}
	z := &zipped{archive: b, flags: flags, want: sum, sum: crc32.NewIEEE(), plain: flate.NewReader(b)}
	if stored {
		z.plain = io.LimitReader(b, int64(size))
	}
	return z, true, nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (z *zipped) Read(p []byte) (int, error) {
	if z.done != nil {
		return 0, z.done
	}
	n, err := z.plain.Read(p)
	z.sum.Write(p[:n])
	if err == io.EOF {
		err = z.end()
	}
	z.done = err
	return n, err
}

// end checks what comes after the file; io.EOF means that it is intact and alone.
func (z *zipped) end() error {
	if z.flags&zipSizeAfter != 0 {
		if next, err := z.archive.Peek(4); err == nil && string(next) == zipDescriptor {
			z.archive.Discard(4) // cannot fail: Peek has buffered these bytes
		}
		sum := make([]byte, 12)
		if _, err := io.ReadFull(z.archive, sum); err != nil {
			return noEOF(err)
		}
		z.want = binary.LittleEndian.Uint32(sum)
	}
	if z.sum.Sum32() != z.want {
		return errors.New("the checksum of the zip archive is wrong")
	}
	next, err := z.archive.Peek(zipHeaderSize)
	if err == nil && string(next[:4]) == zipMagic {
		size := zipHeaderSize + int(binary.LittleEndian.Uint16(next[26:]))
		if next, err = z.archive.Peek(size); err != nil || !strings.HasPrefix(string(next[zipHeaderSize:]), "__MACOSX/") {
			return &Error{Reason: "is a zip archive that holds more than one file", Hint: "unpack it, and give one of its files, or a pattern of several"}
		}
	}
	return io.EOF
}
