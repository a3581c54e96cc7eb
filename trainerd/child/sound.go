package child

import (
	"archive/zip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/trainerd/trainerd/ckptfmt"
)

var errEmpty = errors.New("it is empty")

// sound returns what shows that a checkpoint was not written to its end. It
// looks at what is cheap to see; only the program can tell whether the numbers
// are right.
func (s *shelf) sound(c Checkpoint) error {
	if c.Size == 0 {
		return errEmpty
	}
	bundle := false
	for _, name := range c.files {
		if shardTail.MatchString(name) {
			bundle = true
			continue
		}
		if err := s.soundFile(name); err != nil {
			return fmt.Errorf("%s: %w", path.Base(name), err)
		}
	}
	if bundle {
		return soundBundle(c)
	}
	return nil
}

// soundBundle looks for the index of a bundle, which is written last, and for its
// data files.
func soundBundle(c Checkpoint) error {
	r, err := ckptfmt.OpenBundle(c.Path)
	if err != nil {
		return err
	}
	defer r.Close()
	for shard := range r.NumShards() {
		if _, err := os.Stat(ckptfmt.DataName(c.Path, shard, r.NumShards())); err != nil {
			return err
		}
	}
	return nil
}

// soundFile looks into a file of a format that says how long it should be.
func (s *shelf) soundFile(name string) error {
	f, err := s.root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		return err
	}
	switch ext := path.Ext(name); {
	case info.Size() == 0:
		return errEmpty
	case ext == ".safetensors":
		return soundTensors(f, info)
	case isZip(f):
		_, err := zip.NewReader(f, info.Size())
		return err
	}
	return nil
}

func isZip(f io.ReaderAt) bool {
	var magic [4]byte
	_, err := f.ReadAt(magic[:], 0)
	return err == nil && string(magic[:]) == "PK\x03\x04"
}

// maxTensorsHeader bounds the header of a .safetensors file.
const maxTensorsHeader = 100 << 20

// soundTensors holds the size of a .safetensors file against its header: a
// length of 8 bytes, JSON of that length, and the tensors.
func soundTensors(f io.ReaderAt, info fs.FileInfo) error {
	var head [8]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return io.ErrUnexpectedEOF
	}
	n := binary.LittleEndian.Uint64(head[:])
	if n > maxTensorsHeader || int64(n) > info.Size()-8 {
		return io.ErrUnexpectedEOF
	}
	var tensors map[string]struct {
		Offsets [2]int64 `json:"data_offsets"`
	}
	if err := json.NewDecoder(io.NewSectionReader(f, 8, int64(n))).Decode(&tensors); err != nil {
		return fmt.Errorf("its header is damaged: %w", err)
	}
	var end int64
	for _, t := range tensors {
		end = max(end, t.Offsets[1])
	}
	if end > info.Size()-8-int64(n) {
		return io.ErrUnexpectedEOF
	}
	return nil
}
