package table

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// headBytes is how much of a file is looked at to find out how it is written.
const headBytes = 4 << 20

// decompress undoes the compression that the first bytes tell of.
func decompress(r io.Reader) (*bufio.Reader, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	magic, err := b.Peek(4)
	if len(magic) == 0 && err != nil && err != io.EOF {
		return nil, &Error{Reason: "cannot be read", Err: unwrapPath(err)}
	}
	var plain io.Reader
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		plain, err = gzip.NewReader(b)
	case bytes.HasPrefix(magic, []byte("BZh")):
		plain, err = bzip2.NewReader(b), nil
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		// Without goroutines of its own there is nothing to close.
		plain, err = zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	case string(magic) == zipMagic:
		var isText bool
		if plain, isText, err = openZip(b); !isText {
			return b, nil
		}
	default:
		return b, nil
	}
	if e := (*Error)(nil); errors.As(err, &e) {
		return nil, e
	}
	if err != nil {
		return nil, &Error{Reason: "is compressed, but cannot be decompressed", Err: unwrapPath(err), Hint: "the file is damaged; get it again"}
	}
	return bufio.NewReaderSize(plain, 1<<16), nil
}

// decode returns the text of a file as UTF-8, without a byte order mark.
func decode(r io.Reader, encoding string) (*bufio.Reader, error) {
	b, err := decompress(r)
	if err != nil {
		return nil, err
	}
	head, _ := b.Peek(4096)
	if encoding == Latin1 {
		return bufio.NewReaderSize(charmap.Windows1252.NewDecoder().Reader(b), 1<<16), nil
	}
	if encoding != "" {
		return nil, &Error{Reason: fmt.Sprintf("there is no encoding %q", encoding), Hint: `want "latin1", or "" for UTF-8 and UTF-16`}
	}
	if err := notText(head); err != nil {
		return nil, err
	}
	if order, mark, ok := utf16Order(head); ok {
		return bufio.NewReaderSize(unicode.UTF16(order, mark).NewDecoder().Reader(b), 1<<16), nil
	}
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		b.Discard(3) // cannot fail: Peek has buffered these bytes
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return nil, &Error{Reason: "is a binary file, not a table of text", Hint: "give a table of text, or Parquet, TFRecord, IDX or images"}
	}
	return b, nil
}

// utf16Order recognises UTF-16: by its byte order mark, or by the zeros in each
// other byte of mostly Latin text.
func utf16Order(head []byte) (unicode.Endianness, unicode.BOMPolicy, bool) {
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}):
		return unicode.LittleEndian, unicode.UseBOM, true
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return unicode.BigEndian, unicode.UseBOM, true
	case len(head) < 8:
		return unicode.LittleEndian, unicode.IgnoreBOM, false
	}
	var zeros [2]int
	for i, c := range head[:len(head)&^1] {
		if c == 0 {
			zeros[i%2]++
		}
	}
	most := len(head) / 2 * 9 / 10
	switch {
	case zeros[0] == 0 && zeros[1] >= most:
		return unicode.LittleEndian, unicode.IgnoreBOM, true
	case zeros[1] == 0 && zeros[0] >= most:
		return unicode.BigEndian, unicode.IgnoreBOM, true
	}
	return unicode.LittleEndian, unicode.IgnoreBOM, false
}

// head is the beginning of a file's text.
type head struct {
	text  []byte
	whole bool // that is all of it
	// encoding is Latin1 if the text is not UTF-8.
	encoding string
}

// readHead returns the beginning of a file as UTF-8, and a reader of all of the
// file.
func readHead(r io.Reader) (*head, io.Reader, error) {
	var raw bytes.Buffer
	plain, err := decode(io.TeeReader(r, &raw), "")
	if err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(io.LimitReader(plain, headBytes))
	if err != nil {
		return nil, nil, cutShort(err)
	}
	h := &head{text: text, whole: len(text) < headBytes}
	if !validText(text, h.whole) {
		if h.text, err = charmap.Windows1252.NewDecoder().Bytes(text); err != nil {
			return nil, nil, &Error{Reason: "is not text", Err: err}
		}
		h.encoding = Latin1
	}
	if e := notTable(h.text); e != nil {
		return nil, nil, e
	}
	return h, io.MultiReader(&raw, r), nil
}

// validText reports whether a text is UTF-8. Where it is cut, so may a character
// be.
func validText(text []byte, whole bool) bool {
	for n := 0; !whole && n < utf8.UTFMax && len(text) > 0; n++ {
		if r, size := utf8.DecodeLastRune(text); r != utf8.RuneError || size > 1 {
			break
		}
		text = text[:len(text)-1]
	}
	return utf8.Valid(text)
}

// cutShort returns the error of a file whose end cannot be read, unless it is told already why.
func cutShort(err error) *Error {
	if e := (*Error)(nil); errors.As(err, &e) {
		known := *e // the caller adds the line
		return &known
	}
	return &Error{Reason: "cannot be read to the end", Err: unwrapPath(err), Hint: "it may be cut short or damaged; get it again"}
}

// unwrapPath drops the file's name from an error; ours names it already.
func unwrapPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
