package integrity

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/hdf5"
	"github.com/trainerd/trainerd/ckptfmt/torch"
)

// signed are extensions of files that begin with a signature of their format, and never with zeros.
// Files with those of unsigned may also consist of plain numbers, such as embeddings whose first
// row is padding: only if they are all zeros, they look like what a power cut leaves.
var (
	signed   = []string{".pt", ".pth", ".pkl", ".pickle", ".npz", ".npy", ".zip", ".distcp", ".msgpack", ".ocdbt"}
	unsigned = []string{".ckpt", ".bin", ".model"}
)

// checkContent looks into a file by its extension and its first bytes.
func checkContent(f io.ReaderAt, size int64, ext string) error {
	head := make([]byte, min(size, 512))
	if _, err := f.ReadAt(head, 0); err != nil && err != io.EOF {
		return err
	}
	switch {
	case ext == ".safetensors":
		return checkTensors(f, size)
	case slices.Contains(signed, ext) && len(bytes.Trim(head, "\x00")) == 0:
		return errZeros
	case slices.Contains(unsigned, ext) && len(bytes.Trim(head, "\x00")) == 0:
		return checkZeros(io.NewSectionReader(f, int64(len(head)), size))
	case ext == ".distcp":
		return checkShard(f, size, head)
	case isZip(string(head)):
		return checkZip(f, size)
	case ext == ".h5", ext == ".hdf5", ext == ".keras", bytes.HasPrefix(head, []byte(hdf5.Magic)):
		return checkHDF5(f, size)
	case isCompressed(ext, string(head)):
		return checkCompressed(io.NewSectionReader(f, 0, size), string(head))
	case torch.IsLegacy(head):
		return checkLegacy(f, size)
	case ext == ".npy" && bytes.HasPrefix(head, []byte("\x93NUMPY")[:min(6, len(head))]):
		return checkArray(head, size)
	case isPickle(ext, head):
		return checkPickle(f, size, head)
	case ext == ".npz" || ext == ".zip":
		return errors.New("it is not a zip archive")
	case ext == ".json":
		return checkJSON(io.NewSectionReader(f, 0, size))
	case bytes.HasPrefix(head, []byte(treeMagic)):
		return checkTree(f, size, head)
	case bytes.HasPrefix(head, []byte(boosted)):
		return checkBoosted(io.NewSectionReader(f, 0, size))
	}
	return nil
}

// checkZeros looks for a byte that is not zero in the rest of a file.
func checkZeros(r io.Reader) error {
	buf := make([]byte, entryPiece)
	for {
		n, err := r.Read(buf)
		switch {
		case len(bytes.Trim(buf[:n], "\x00")) > 0:
			return nil
		case err == io.EOF:
			return errZeros
		case err != nil:
			return err
		}
	}
}

// checkZip reads a whole archive. An archive whose entries all have a checksum of
// zero was written without any, as torch can.
func checkZip(f io.ReaderAt, size int64) error {
	r, err := zip.NewReader(f, size)
	if err != nil {
		return err
	}
	summed := slices.ContainsFunc(r.File, func(e *zip.File) bool { return e.CRC32 != 0 })
	for _, e := range r.File {
		if !summed {
			at, err := e.DataOffset()
			if err != nil || at > size || e.CompressedSize64 > uint64(size-at) {
				return fmt.Errorf("%s: %w", e.Name, errors.Join(errCut, err))
			}
			continue
		}
		if err := readEntry(e); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	return nil
}

// entryPiece is read at once: io.Discard takes only 8 KiB at a time.
const entryPiece = 128 << 10

// onlyWriter hides the ReadFrom of io.Discard, with which io.CopyBuffer would do without its buffer.
type onlyWriter struct{ io.Writer }

// readEntry reads an entry to its end, where its reader compares the checksum. A damaged
// entry may claim any size, up to the largest number.
func readEntry(e *zip.File) error {
	r, err := e.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	buf := make([]byte, min(e.UncompressedSize64, entryPiece-1)+1)
	_, err = io.CopyBuffer(onlyWriter{io.Discard}, r, buf)
	return err
}

// checkShard looks at the end of a file of torch.distributed.checkpoint, which is
// a row of zip archives.
func checkShard(f io.ReaderAt, size int64, head []byte) error {
	const endSize = 22
	if !bytes.HasPrefix(head, []byte(zipHead)) {
		return nil // compressed, or of another kind
	}
	var end [endSize]byte
	if size < endSize {
		return errCut
	}
	if _, err := f.ReadAt(end[:], size-endSize); err != nil {
		return err
	}
	if !bytes.HasPrefix(end[:], []byte(zipEnd)) {
		return errCut
	}
	return nil
}

// zipHead begins an entry of a zip archive, and zipEnd its end record, with which an archive
// without entries begins, such as that of an optimizer without state.
const (
	zipHead = "PK\x03\x04"
	zipEnd  = "PK\x05\x06"
)

// isZip reports whether a file begins as a zip archive does.
func isZip(head string) bool {
	return strings.HasPrefix(head, zipHead) || strings.HasPrefix(head, zipEnd)
}

// checkLegacy looks whether a file of the kind that PyTorch wrote before version 1.6 has all of its
// storages.
func checkLegacy(f io.ReaderAt, size int64) error {
	isCut, err := torch.IsCut(f, size)
	if isCut {
		return errCut
	}
	return err
}

// isPickle reports whether a file is a pickle and nothing more. Files of PyTorch before version 1.6
// begin with one, of protocol 2 unless the user chose another: a file that is too short to be
// recognised may be one of them.
func isPickle(ext string, head []byte) bool {
	switch ext {
	case ".pkl", ".pickle", ".joblib", ".metadata":
		return true
	case ".pt", ".pth", ".ckpt":
		return len(head) > 1 && head[1] > 2
	}
	return false
}

// checkPickle looks for the stop of a pickle, its last byte.
func checkPickle(f io.ReaderAt, size int64, head []byte) error {
	if len(head) < 2 || head[0] != 0x80 || head[1] < 2 || head[1] > 5 {
		return nil // protocol 0, or compressed
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], size-1); err != nil {
		return err
	}
	if last[0] != '.' {
		return errCut
	}
	return nil
}

// checkArray looks whether the header of a .npy file is whole.
func checkArray(head []byte, size int64) error {
	if len(head) < 10 {
		return errCut
	}
	n, start := int64(binary.LittleEndian.Uint16(head[8:])), int64(10)
	if head[6] > 1 {
		if len(head) < 12 {
			return errCut
		}
		n, start = int64(binary.LittleEndian.Uint32(head[8:])), 12
	}
	if start+n > size {
		return errCut
	}
	return checkShape(head[start:], size-start-n)
}

// checkJSON reads a text to its end, and checks only that all brackets are closed: Python writes
// NaN and Infinity, which are not JSON.
func checkJSON(r io.Reader) error {
	depth, quoted, escaped := 0, false, false
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		for _, c := range buf[:n] {
			switch {
			case escaped:
				escaped = false
			case quoted:
				escaped, quoted = c == '\\', c != '"'
			case c == '"':
				quoted = true
			case c == '{', c == '[':
				depth++
			case c == '}', c == ']':
				depth--
			case c == 0:
				return errZeros
			}
		}
		switch {
		case err == io.EOF && (depth != 0 || quoted):
			return errCut
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// maxTensorsHeader bounds the header of a .safetensors file.
const maxTensorsHeader = 100 << 20

// checkTensors holds the size of a .safetensors file against its header: a
// length of 8 bytes, JSON of that length, and the tensors.
func checkTensors(f io.ReaderAt, size int64) error {
	var head [8]byte
	if _, err := f.ReadAt(head[:], 0); err == io.EOF {
		return errCut
	} else if err != nil {
		return err
	}
	n := binary.LittleEndian.Uint64(head[:])
	if n > maxTensorsHeader || int64(n) > size-8 {
		return errCut
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
	if end != size-8-int64(n) {
		return fmt.Errorf("%w: its header says %d bytes of tensors, and there are %d", errCut, end, size-8-int64(n))
	}
	return nil
}
