package table

import (
	"archive/zip"
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"testing"
)

// archive returns a zip archive of files, given as name and text in turn.
func archive(t *testing.T, method uint16, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		f, err := w.CreateHeader(&zip.FileHeader{Name: files[i], Method: method})
		if err == nil {
			_, err = io.WriteString(f, files[i+1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestZip(t *testing.T) {
	text := "a,b\n" + strings.Repeat("1,x\n2,y\n", 5000)
	for _, c := range []struct {
		name  string
		bytes []byte
		want  string // the error, "" for none
	}{
		{"deflated", archive(t, zip.Deflate, "data/t.CSV", text), ""},
		{"of a Mac", archive(t, zip.Deflate, "t.csv", text, "__MACOSX/._t.csv", "\x00\x05"), ""},
		{"of two", archive(t, zip.Deflate, "t.csv", text, "u.csv", text), "is a zip archive that holds more than one file; unpack it, and give one"},
		{"of a spreadsheet", archive(t, zip.Deflate, "[Content_Types].xml", "<Types/>"), "as those of spreadsheets are"},
		{"of NumPy", archive(t, zip.Store, "x.npy", "\x93NUMPY"), "holds arrays of numpy"},
		{"of PyTorch", archive(t, zip.Store, "model/data.pkl", "\x80\x02"), "is a file of PyTorch"},
		{"stored", stored("t.csv", text), ""},
		{"with a wrong byte", []byte(strings.Replace(string(stored("t.csv", text)), "2,y", "3,y", 1)), "the checksum of the zip archive is wrong"},
		{"cut", archive(t, zip.Deflate, "t.csv", text)[:60], "unexpected EOF"},
		{"cut in its header", archive(t, zip.Deflate, "t.csv", text)[:20], "unexpected EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows := 0
			tab, err := New(bytes.NewReader(c.bytes), Options{Sniff: true})
			for err == nil {
				if _, err = tab.Next(); err == nil {
					rows++
				}
			}
			if c.want == "" && (!errors.Is(err, io.EOF) || rows != 10000) {
				t.Errorf("%d rows, %v; want 10000", rows, err)
			}
			if c.want != "" && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}

// stored returns an archive of a file that is not compressed, whose size comes
// first, as some programs write it.
func stored(name, text string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	h := &zip.FileHeader{Name: name, Method: zip.Store, UncompressedSize64: uint64(len(text)), CompressedSize64: uint64(len(text)), CRC32: crc32.ChecksumIEEE([]byte(text))}
	f, err := w.CreateRaw(h)
	if err == nil {
		_, err = io.WriteString(f, text)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		panic(err) // a buffer takes all
	}
	return b.Bytes()
}
