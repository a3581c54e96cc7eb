package tfrecord

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/trainerd/trainerd/internal/crc32c"
	"github.com/trainerd/trainerd/internal/membound"
	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
)

// verdict is what a reader said about a file.
type verdict struct {
	Records      int
	SHA256Concat string `json:"sha256_concat"`
	Then         string
}

// plainRecords are the records of the set's undamaged files.
func plainRecords() [][]byte {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	text := strings.Repeat("the quick brown fox %d ", 4000)[:9000]
	return [][]byte{{}, []byte("a"), []byte("hello world"), every, eventstest.Splitmix(11, 1000), eventstest.Splitmix(12, 30000), []byte(text)}
}

func TestWriterGolden(t *testing.T) {
	var got bytes.Buffer
	w := NewWriter(&got)
	for _, r := range plainRecords() {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got.Bytes(), eventstest.ReadFile(t, "tfrecord/plain.tfrecord")) {
		t.Error("file differs from TensorFlow's")
	}
}

func TestWriterLarge(t *testing.T) {
	data := eventstest.Splitmix(1, wholeWriteLimit+1)
	var got bytes.Buffer
	if err := NewWriter(&got).Write(data); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), Append(nil, data)) {
		t.Error("a record written in parts differs from one written whole")
	}
}

func TestWriterError(t *testing.T) {
	broken := errors.New("disk full")
	for _, size := range []int{10, wholeWriteLimit + 1} {
		w := NewWriter(&eventstest.FailingWriter{N: 20, Err: broken})
		if err := w.Write(make([]byte, size)); !errors.Is(err, broken) {
			t.Errorf("size %d: error %v, want %v", size, err, broken)
		}
		if err := w.Write(nil); !errors.Is(err, broken) {
			t.Errorf("size %d: error after a failure %v, want %v", size, err, broken)
		}
	}
}

// readAll returns what the reader delivers before its first error, and that.
func readAll(r *Reader) (records [][]byte, err error) {
	for {
		data, err := r.Next()
		if err != nil {
			return records, err
		}
		records = append(records, bytes.Clone(data))
	}
}

// tensorflowError says in TensorFlow's words what err says.
func tensorflowError(err error) string {
	var c *CorruptError
	switch {
	case err == io.EOF:
		return "end"
	case !errors.As(err, &c):
		return err.Error()
	case c.Torn() && c.Part == PartLength:
		return "end" // TensorFlow's reader takes a torn header for the end
	case c.Torn():
		return fmt.Sprintf("DataLossError: truncated record at %d' failed with Read less bytes than requested", c.Offset)
	case c.Part == PartLength:
		return fmt.Sprintf("DataLossError: corrupted record at %d", c.Offset)
	}
	return fmt.Sprintf("DataLossError: corrupted record at %d", c.Offset+HeaderSize)
}

// TestReaderVerdicts compares what is read before the damage, and what
// is said about it, with TensorFlow's reader.
func TestReaderVerdicts(t *testing.T) {
	files := 0
	for _, set := range []string{"tfrecord", "events"} {
		for id, c := range eventstest.Cases(t, set) {
			var expect struct {
				Iterator verdict `json:"tf_record_iterator"`
			}
			if !strings.Contains(id, "/damaged/") || strings.Contains(id, "/z_") {
				continue
			}
			if err := json.Unmarshal(c.Expect, &expect); err != nil {
				t.Fatal(err)
			}
			files++
			t.Run(id, func(t *testing.T) {
				want := expect.Iterator
				if strings.HasSuffix(id, "/huge_length_good_crc") {
					// TensorFlow's process dies of this length.
					want = verdict{Records: 2, Then: "DataLossError: corrupted record at 37"}
				}
				for name, r := range map[string]io.Reader{
					"whole":    bytes.NewReader(eventstest.ReadFile(t, c.Files[0])),
					"one byte": iotest.OneByteReader(bytes.NewReader(eventstest.ReadFile(t, c.Files[0]))),
					"data err": iotest.DataErrReader(bytes.NewReader(eventstest.ReadFile(t, c.Files[0]))),
				} {
					records, err := readAll(NewReader(r))
					if len(records) != want.Records || want.SHA256Concat != "" && eventstest.SHA256(records...) != want.SHA256Concat {
						t.Errorf("%s: %d records, want %d with the same content", name, len(records), want.Records)
					}
					if got := tensorflowError(err); got != want.Then {
						t.Errorf("%s: then %q (%v), want %q", name, got, err, want.Then)
					}
				}
			})
		}
	}
	if files < 30 {
		t.Errorf("the manifests name %d damaged files, want at least 30", files)
	}
}

func TestReaderPart(t *testing.T) {
	base := eventstest.ReadFile(t, "tfrecord/damaged/base.tfrecord")
	for _, tc := range []struct {
		file   string
		part   string
		err    error
		offset int64
		after  int // records that can be read after the damage
	}{
		{"trunc_in_length", PartLength, io.ErrUnexpectedEOF, 37, 0},
		{"trunc_in_length_crc", PartLength, io.ErrUnexpectedEOF, 37, 0},
		{"trunc_after_header", PartData, io.ErrUnexpectedEOF, 37, 0},
		{"trunc_in_data_crc", PartData, io.ErrUnexpectedEOF, 37, 0},
		{"flip_length", PartLength, ErrChecksum, 37, 0},
		{"flip_length_crc", PartLength, ErrChecksum, 37, 0},
		{"huge_length_good_crc", PartLength, ErrTooLarge, 37, 0},
		{"trailing_zeros", PartLength, ErrChecksum, int64(len(base)), 0},
		{"flip_data", PartData, ErrChecksum, 37, 2},
		{"flip_data_crc", PartData, ErrChecksum, 37, 2},
		{"flip_first_record_data", PartData, ErrChecksum, 0, 4},
	} {
		t.Run(tc.file, func(t *testing.T) {
			r := NewReader(bytes.NewReader(eventstest.ReadFile(t, "tfrecord/damaged/"+tc.file+".tfrecord")))
			r.Name = tc.file
			_, err := readAll(r)
			var c *CorruptError
			if !errors.As(err, &c) {
				t.Fatalf("error %v is no CorruptError", err)
			}
			if want := (CorruptError{tc.file, tc.offset, tc.part, c.Lost, c.Err}); *c != want {
				t.Errorf("error %+v, want %+v", *c, want)
			}
			if c.Skippable() != (tc.part == PartData && !c.Torn()) {
				t.Errorf("%d bytes lost", c.Lost)
			}
			if !errors.Is(err, tc.err) || !strings.Contains(err.Error(), fmt.Sprintf("%s: ", tc.file)) {
				t.Errorf("error text %q", err)
			}
			after, end := readAll(r)
			if len(after) != tc.after {
				t.Errorf("%d records behind the damage, want %d", len(after), tc.after)
			}
			if wantEnd := tc.after > 0; wantEnd != (end == io.EOF) {
				t.Errorf("then %v", end)
			}
		})
	}
}

// growing is a stream that grows while it is read.
type growing struct {
	data []byte
	pos  int
	have int
}

func (g *growing) Read(b []byte) (int, error) {
	n := copy(b, g.data[g.pos:g.have])
	g.pos += n
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// TestReaderGrows cuts a file at every byte and lets it grow from there.
func TestReaderGrows(t *testing.T) {
	base := eventstest.ReadFile(t, "tfrecord/damaged/base.tfrecord")
	want, _ := readAll(NewReader(bytes.NewReader(base)))
	ends := map[int]bool{0: true}
	for i := range want {
		ends[len(bytes.Join(want[:i+1], nil))+FrameSize*(i+1)] = true
	}
	for cut := range base {
		g := &growing{data: base, have: cut}
		r := NewReader(g)
		got, err := readAll(r)
		if ends[cut] != (err == io.EOF) || !ends[cut] && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut at %d: error %v", cut, err)
		}
		if r.Offset() > int64(cut) || !ends[int(r.Offset())] {
			t.Fatalf("cut at %d: offset %d", cut, r.Offset())
		}
		g.have = len(base)
		rest, err := readAll(r)
		if err != io.EOF || !bytes.Equal(bytes.Join(append(got, rest...), []byte{0}), bytes.Join(want, []byte{0})) {
			t.Fatalf("cut at %d: after growth %d+%d records, then %v", cut, len(got), len(rest), err)
		}
	}
}

// TestReaderFlips flips every bit of a file: no flip may go unnoticed.
func TestReaderFlips(t *testing.T) {
	base := eventstest.ReadFile(t, "tfrecord/damaged/base.tfrecord")
	for bit := range len(base) * 8 {
		file := bytes.Clone(base)
		file[bit/8] ^= 1 << (bit % 8)
		if _, err := readAll(NewReader(bytes.NewReader(file))); err == io.EOF {
			t.Errorf("flip of bit %d went unnoticed", bit)
		}
	}
}

func TestReaderResync(t *testing.T) {
	base := eventstest.ReadFile(t, "tfrecord/damaged/base.tfrecord")
	all, _ := readAll(NewReader(bytes.NewReader(base)))
	first := len(Append(nil, all[0]))
	for _, tc := range []struct {
		name string
		file []byte
		lost []int64 // of each damage
		want [][]byte
		end  error
	}{
		{"length", eventstest.ReadFile(t, "tfrecord/damaged/flip_length.tfrecord"), []int64{45}, append(all[:2:2], all[3:]...), io.EOF},
		{"length crc", eventstest.ReadFile(t, "tfrecord/damaged/flip_length_crc.tfrecord"), []int64{45}, append(all[:2:2], all[3:]...), io.EOF},
		{"too large", eventstest.ReadFile(t, "tfrecord/damaged/huge_length_good_crc.tfrecord"), []int64{45}, append(all[:2:2], all[3:]...), io.EOF},
		{"zeros in the middle", slices.Insert(bytes.Clone(base), first, make([]byte, 4096)...), []int64{4096}, all, io.EOF},
		{"zeros at the end", eventstest.ReadFile(t, "tfrecord/damaged/trailing_zeros.tfrecord"), []int64{16}, all, io.EOF},
		{"garbage at the end", eventstest.ReadFile(t, "tfrecord/damaged/trailing_garbage.tfrecord"), []int64{23}, all, io.EOF},
		{"hole, then a torn tail", append(append(make([]byte, 100), base...), base[:20]...), []int64{100}, all, io.ErrUnexpectedEOF},
		{"data", eventstest.ReadFile(t, "tfrecord/damaged/flip_data.tfrecord"), []int64{45}, append(all[:2:2], all[3:]...), io.EOF},
		{"nothing but garbage", eventstest.Splitmix(3, 5000), []int64{5000}, nil, io.EOF},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, source := range []io.Reader{bytes.NewReader(tc.file), iotest.OneByteReader(bytes.NewReader(tc.file))} {
				r := NewReader(source)
				r.Resync = true
				var got [][]byte
				var lost []int64
				for {
					data, err := r.Next()
					var c *CorruptError
					if errors.As(err, &c) && c.Skippable() {
						lost = append(lost, c.Lost)
						continue
					}
					if err != nil {
						if !errors.Is(err, tc.end) {
							t.Errorf("then %v, want %v", err, tc.end)
						}
						break
					}
					got = append(got, bytes.Clone(data))
				}
				if !slices.Equal(lost, tc.lost) || !slices.EqualFunc(got, tc.want, bytes.Equal) {
					t.Errorf("lost %v, records %q; want %v and %q", lost, got, tc.lost, tc.want)
				}
			}
		})
	}
}

func TestReaderSkipDataCRC(t *testing.T) {
	r := NewReader(bytes.NewReader(eventstest.ReadFile(t, "tfrecord/damaged/flip_data_crc.tfrecord")))
	r.SkipDataCRC = true
	if got, err := readAll(r); len(got) != 5 || err != io.EOF {
		t.Errorf("%d records, then %v; want all 5", len(got), err)
	}
}

func TestReaderLimit(t *testing.T) {
	file := Append(nil, make([]byte, 100))
	for _, tc := range []struct {
		limit int64
		want  error
	}{{100, io.EOF}, {99, ErrTooLarge}} {
		r := NewReader(bytes.NewReader(file))
		r.MaxSize = tc.limit
		_, err := readAll(r)
		if !errors.Is(err, tc.want) {
			t.Errorf("limit %d: %v, want %v", tc.limit, err, tc.want)
		}
		if err != io.EOF && !strings.Contains(err.Error(), "larger than the limit of 99 bytes") {
			t.Errorf("error %v does not name the limit", err)
		}
	}
}

// zeroReader gives zeros without end.
type zeroReader struct{}

func (zeroReader) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// TestReaderGrowth reads a large record from a stream of unknown size: all buffers
// together take no more than twice its size.
func TestReaderGrowth(t *testing.T) {
	const size = 255 << 20
	var header [HeaderSize]byte
	putHeader(header[:], size)
	r := NewReader(io.MultiReader(bytes.NewReader(header[:]), zeroReader{}))
	r.SkipDataCRC = true
	defer membound.Check(t, size, 2)()
	if data, err := r.Next(); len(data) != size || err != nil {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

// TestReaderClaims gives a header that claims 1 GiB with little after
// it: memory must follow what is there.
func TestReaderClaims(t *testing.T) {
	file := make([]byte, HeaderSize+1000)
	putHeader(file, DefaultMaxSize)
	r := NewReader(bytes.NewReader(file))
	if _, err := r.Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("error %v", err)
	}
	if len(r.buf) > 4*readBufferSize {
		t.Errorf("reader allocated %d bytes for a file of %d", len(r.buf), len(file))
	}
}

func TestReaderReadError(t *testing.T) {
	broken := errors.New("connection lost")
	base := eventstest.ReadFile(t, "tfrecord/damaged/base.tfrecord")
	r := NewReader(io.MultiReader(bytes.NewReader(base[:50]), iotest.ErrReader(broken)))
	if _, err := readAll(r); err != broken {
		t.Errorf("error %v, want the reader's own", err)
	}
}

func TestShortLengthCRC(t *testing.T) {
	for n := range 2 * len(shortLengthCRC) {
		var b [HeaderSize]byte
		putHeader(b[:], n)
		if got, want := b[lengthSize:], crc32c.Masked(b[:lengthSize]); !bytes.Equal(got, []byte{byte(want), byte(want >> 8), byte(want >> 16), byte(want >> 24)}) {
			t.Errorf("length %d: checksum %x, want %#x", n, got, want)
		}
	}
}

func FuzzReader(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(eventstest.Dir(), "tfrecord/damaged/*.tfrecord"))
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		if len(b) < 1000 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		defer membound.Check(t, len(file), 64)()
		r := NewReader(bytes.NewReader(file))
		r.Resync = len(file)%2 == 1
		for {
			at := r.Offset()
			data, err := r.Next()
			var c *CorruptError
			if errors.As(err, &c) && c.Skippable() {
				if c.Offset != at || c.Offset+c.Lost != r.Offset() || r.Offset() > int64(len(file)) {
					t.Fatalf("%+v at %d, then at %d of %d", c, at, r.Offset(), len(file))
				}
				continue
			}
			if err != nil {
				return
			}
			if want := Append(nil, data); !bytes.Equal(file[at:r.Offset()], want) {
				t.Fatalf("record at %d does not encode to its own bytes", at)
			}
		}
	})
}

// TestBeforeHeader holds the fast search against one that tries each byte.
func TestBeforeHeader(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		b := make([]byte, random.IntN(200))
		for range random.IntN(30) {
			if len(b) > 0 {
				b[random.IntN(len(b))] = byte(random.IntN(3))
			}
		}
		if random.IntN(2) == 0 {
			b = append(b, Append(nil, make([]byte, random.IntN(4)))...)
		}
		const limit = 1 << 20
		for i := range b[:beforeHeader(b, limit)] {
			header := append(slices.Clone(b[i:]), make([]byte, HeaderSize)...)
			n := binary.LittleEndian.Uint64(header)
			if n <= limit && i+HeaderSize <= len(b) && lengthCRC(n, header[:lengthSize]) == binary.LittleEndian.Uint32(header[lengthSize:]) {
				t.Fatalf("seed %d: the header at %d is passed over", seed, i)
			}
		}
	}
}
