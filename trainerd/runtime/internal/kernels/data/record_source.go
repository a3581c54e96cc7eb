package data

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/session"
)

// recordFile reads TFRecords; keys are "file:offset".
type recordFile struct {
	*os.File
	work   string
	r      *tfrecord.Reader
	plain  bool  // not compressed
	base   int64 // the offset at which r began to read
	at     int64 // the offset of the last record
	number int
}

func openRecords(b *exec.OpConstruction) func(path, work string) (recordSource, error) {
	return recordOpener(b.String("compression_type"), b.MaxRead())
}

// recordOpener opens files whose records have at most limit bytes, and 1 GiB.
func recordOpener(compression string, limit int64) func(path, work string) (recordSource, error) {
	kind := tfrecord.Compression(compression)
	return func(path, work string) (recordSource, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		r := tfrecord.NewReader(f)
		if kind != "" {
			if r, err = tfrecord.NewCompressedReader(f, kind); err != nil {
				f.Close()
				return nil, err
			}
		}
		r.Name, r.MaxSize = path, min(limit, tfrecord.DefaultMaxSize)
		return &recordFile{File: f, work: work, r: r, plain: kind == ""}, nil
	}
}

func (f *recordFile) next() ([]byte, error) {
	f.at = f.base + f.r.Offset()
	value, err := f.r.Next()
	var corrupt *tfrecord.CorruptError
	if errors.As(err, &corrupt) {
		corrupt.Offset += f.base
	}
	if err == nil {
		f.number++
	}
	return value, damaged(f.work, err)
}

// damaged says which file cannot be decompressed, if that is what an error is about.
func damaged(name string, err error) error {
	var path *fs.PathError
	var op *session.OpError
	var corrupt *tfrecord.CorruptError
	if err == nil || err == io.EOF || errors.Is(err, tfrecord.ErrTooLarge) || errors.As(err, &path) || errors.As(err, &op) || errors.As(err, &corrupt) {
		return err
	}
	return &session.OpError{Code: tfpb.Code_DATA_LOSS, Message: name + ": " + strings.TrimPrefix(err.Error(), "tfrecord: ")}
}

func (f *recordFile) key() string { return fmt.Sprintf("%s:%d", f.work, f.at) }

func (f *recordFile) place() filePlace { return filePlace{f.number, f.base + f.r.Offset()} }

func (f *recordFile) moveTo(to filePlace) error {
	if !f.plain {
		return pass(f, to)
	}
	if err := seek(f.File, to.offset); err != nil {
		return err
	}
	old := f.r
	f.r, f.base, f.number = tfrecord.NewReader(f.File), to.offset, to.record
	f.r.Name, f.r.MaxSize = old.Name, old.MaxSize
	return nil
}

// seek moves a file that was just opened to a place that it must have.
func seek(f *os.File, offset int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if offset < 0 || offset > info.Size() {
		return fmt.Errorf("has %d bytes; byte %d was next", info.Size(), offset)
	}
	_, err = f.Seek(offset, io.SeekStart)
	return err
}

// lineFile reads lines; keys are "file:line".
type lineFile struct {
	*os.File
	work   string
	r      *bufio.Reader
	plain  bool  // not compressed
	limit  int64 // bytes of a line
	line   int
	offset int64
}

// lineBuffer is how much of a file of lines is read at a time.
const lineBuffer = 64 << 10

func openLines(b *exec.OpConstruction) func(path, work string) (recordSource, error) {
	return lineOpener("", b.Int("skip_header_lines"), b.MaxRead())
}

func lineOpener(compression string, skip int, limit int64) func(path, work string) (recordSource, error) {
	return func(path, work string) (recordSource, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		plain, err := decompressed(f, work, compression)
		if err != nil {
			f.Close()
			return nil, err
		}
		l := &lineFile{File: f, work: work, r: bufio.NewReaderSize(plain, lineBuffer), plain: compression == "", limit: limit}
		for range skip {
			_, err := l.next()
			if err == io.EOF {
				break // a file shorter than its header has no lines
			}
			if err != nil {
				f.Close()
				return nil, err
			}
		}
		return l, nil
	}
}

// decompressed returns the plain contents of a file, and that of an empty one is empty.
func decompressed(r io.Reader, name, compression string) (plain io.Reader, err error) {
	switch compression {
	case "":
		return r, nil
	case "GZIP":
		plain, err = gzip.NewReader(r)
	case "ZLIB":
		plain, err = zlib.NewReader(r)
	default:
		return nil, &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Message: fmt.Sprintf("unknown compression %q: it is GZIP, ZLIB or empty", compression)}
	}
	if err == io.EOF {
		return strings.NewReader(""), nil
	}
	return plain, damaged(name, err)
}

func (l *lineFile) next() ([]byte, error) {
	line, err := l.readLine()
	if err != nil && err != io.EOF {
		return nil, damaged(l.work, err)
	}
	read := len(line)
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	if bytes.IndexByte(line, '\r') >= 0 { // TensorFlow leaves them out wherever they are
		line = bytes.ReplaceAll(line, []byte("\r"), nil)
	}
	if err == io.EOF && len(line) == 0 {
		return nil, err
	}
	l.line++
	l.offset += int64(read)
	return line, nil
}

func (l *lineFile) key() string { return fmt.Sprintf("%s:%d", l.work, l.line) }

// readLine returns the next line with its end, if it has one. It is valid until the
// next call.
func (l *lineFile) readLine() (line []byte, err error) {
	for {
		piece, err := l.r.ReadSlice('\n')
		if int64(len(line)+len(piece)) > l.limit {
			return nil, tooLong(fmt.Sprintf("line %d of %s", l.line+1, l.work), l.limit)
		}
		whole := err != bufio.ErrBufferFull
		if whole && line == nil {
			return piece, err
		}
		if line = append(line, piece...); whole {
			return line, err
		}
	}
}

// tooLong says that a value in a file is too large for the session.
func tooLong(what string, limit int64) error {
	return &session.OpError{Code: tfpb.Code_RESOURCE_EXHAUSTED, Message: fmt.Sprintf("%s has more than %d bytes, half of what the session may hold in memory", what, limit)}
}

func (l *lineFile) place() filePlace { return filePlace{l.line, l.offset} }

func (l *lineFile) moveTo(to filePlace) error {
	if !l.plain {
		return pass(l, to)
	}
	if err := seek(l.File, to.offset); err != nil {
		return err
	}
	l.r.Reset(l.File)
	l.line, l.offset = to.record, to.offset
	return nil
}

// single is a source of one record.
type single struct {
	name  string
	value []byte
	done  bool
}

func (s *single) Close() error { return nil }

func (s *single) next() ([]byte, error) {
	if s.done {
		return nil, io.EOF
	}
	s.done = true
	return s.value, nil
}

func (s *single) key() string { return s.name }

func (s *single) place() filePlace {
	if s.done {
		return filePlace{record: 1}
	}
	return filePlace{}
}

func (s *single) moveTo(to filePlace) error { return pass(s, to) }

func openWhole(*exec.OpConstruction) func(path, work string) (recordSource, error) {
	return func(path, work string) (recordSource, error) {
		data, err := os.ReadFile(path)
		return &single{name: work, value: data}, err
	}
}

func openIdentity(*exec.OpConstruction) func(path, work string) (recordSource, error) {
	return func(_, work string) (recordSource, error) {
		return &single{name: work, value: []byte(work)}, nil
	}
}

// fixedFile reads records of one length; keys are "file:number".
type fixedFile struct {
	work        string
	data        []byte
	record, hop int
	whole       bool
	n           int
}

// fixedLayout is the layout of a file of records of one length, in bytes; a
// record begins hop bytes after the one before.
type fixedLayout struct {
	header, record, footer, hop int
	whole                       bool // nothing may be left after the last record
}

func (l *fixedLayout) check() error {
	if l.header < 0 || l.record < 1 || l.footer < 0 || l.hop < 1 {
		return fmt.Errorf("header, record, footer and hop of %d, %d, %d and %d bytes", l.header, l.record, l.footer, l.hop)
	}
	return nil
}

func (l *fixedLayout) opener(compression string, limit int64) func(path, work string) (recordSource, error) {
	return func(path, work string) (recordSource, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		plain, err := decompressed(f, work, compression)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(io.LimitReader(plain, limit+1))
		if err != nil {
			return nil, damaged(work, err)
		}
		if int64(len(data)) > limit {
			return nil, tooLong(work, limit)
		}
		between := len(data) - l.header - l.footer
		if l.whole && compression == "" && between%l.record != 0 {
			return nil, &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Message: fmt.Sprintf("%s: %d bytes between header and footer, in records of %d", work, between, l.record)}
		}
		if between < 0 {
			data = nil
		} else {
			data = data[l.header : l.header+between]
		}
		return &fixedFile{work: work, data: data, record: l.record, hop: l.hop, whole: l.whole}, nil
	}
}

func openFixed(b *exec.OpConstruction) func(path, work string) (recordSource, error) {
	l := fixedLayout{header: b.Int("header_bytes"), record: b.Int("record_bytes"), footer: b.Int("footer_bytes"), hop: b.Int("hop_bytes")}
	if l.hop == 0 {
		l.hop = l.record
	}
	compression := b.String("encoding")
	if compression == "none" {
		compression = ""
	}
	if err := l.check(); err != nil {
		b.Fail("%v", err)
	}
	return l.opener(compression, b.MaxRead())
}

func (f *fixedFile) Close() error { return nil }

func (f *fixedFile) place() filePlace { return filePlace{record: f.n} }

func (f *fixedFile) moveTo(to filePlace) error { return pass(f, to) }

func (f *fixedFile) next() ([]byte, error) {
	if len(f.data) < f.record {
		if f.whole && len(f.data) > 0 {
			return nil, &session.OpError{Code: tfpb.Code_DATA_LOSS, Message: fmt.Sprintf("%s: %d bytes are left after the last record of %d", f.work, len(f.data), f.record)}
		}
		return nil, io.EOF
	}
	value := f.data[:f.record]
	f.data = f.data[min(f.hop, len(f.data)):]
	f.n++
	return value, nil
}

func (f *fixedFile) key() string { return fmt.Sprintf("%s:%d", f.work, f.n-1) }
