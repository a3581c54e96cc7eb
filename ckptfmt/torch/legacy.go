package torch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/internal/pickle"
)

// legacyMagic is the magic number of files from before version 1.6, and the end of
// its pickle. Before it is the version of the pickle protocol.
const legacyMagic = "\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."

// legacyVersion is the version of the format; there was never another.
const legacyVersion = 1001

// legacyHead is how much there may be before the end of the magic number.
const legacyHead = 32

// firstRead is how much is read of the pickles at first, whose length nothing says.
const firstRead = 1 << 20

func isLegacy(from io.ReaderAt) bool {
	head := make([]byte, legacyHead)
	n, _ := from.ReadAt(head, 0) // a short one has no magic number
	return IsLegacy(head[:n])
}

// IsLegacy reports whether a file begins like those of PyTorch before version 1.6.
func IsLegacy(head []byte) bool {
	head = head[:min(len(head), legacyHead)]
	return bytes.HasPrefix(head, []byte{0x80}) && bytes.Contains(head, []byte(legacyMagic))
}

// errCutOff says that a file ends before its last storage does.
var errCutOff = errors.New("it was cut off")

// maxChecked is how much of a file [IsCut] reads at most: pickles are as long only if they have
// arrays of NumPy in them.
const maxChecked = 16 << 20

// IsCut reports whether a file from before torch 1.6, see [IsLegacy], ends before its last storage.
// It is not known of a file with something that this package does not read: such a file is not cut.
func IsCut(from io.ReaderAt, size int64) (bool, error) {
	r := &Reader{name: "its structure", from: from, size: size, storages: make(map[string]*storage)}
	_, err := r.findLegacy(maxChecked)
	if errors.As(err, new(*RefusedError)) || errors.As(err, new(*ckptfmt.CorruptError)) {
		return errors.Is(err, errCutOff), nil
	}
	return false, err
}

// loadLegacy reads the pickles, and where the storages are.
func (r *Reader) loadLegacy() error {
	r.unsummed = true
	saved, err := r.findLegacy(maxPickle)
	if err != nil {
		return err
	}
	return r.nameAll(saved)
}

// findLegacy reads at most the given number of bytes of the pickles, finds the storages, and
// returns what was saved.
func (r *Reader) findLegacy(most int64) (saved any, err error) {
	values, end, sizes, err := r.legacyPickles(most)
	if err != nil {
		return nil, err
	}
	if version, _ := values[1].(int64); version != legacyVersion {
		return nil, r.legacyError(0, fmt.Errorf("its version is %d, want %d", version, legacyVersion))
	}
	machine, ok := values[2].(*pickle.Dict)
	r.isBig = ok && machine.Get("little_endian") == any(false)
	keys, ok := values[4].(*pickle.List)
	if !ok {
		return nil, r.legacyError(end, errors.New("there is no list of storages"))
	}
	return values[3], r.findStorages(keys.Items, sizes, end)
}

func (r *Reader) legacyError(at int64, err error) error {
	return &ckptfmt.CorruptError{Name: r.name, Offset: at, Part: "storages", Err: err}
}

// legacyPickles reads the five pickles that a file begins with, and where they end,
// and returns the types of the storages that they name.
func (r *Reader) legacyPickles(most int64) ([]any, int64, map[string]*element, error) {
	for n := int64(firstRead); ; n *= 4 {
		n = min(n, r.size, most)
		b := make([]byte, n)
		if _, err := r.from.ReadAt(b, 0); err != nil && err != io.EOF {
			return nil, 0, nil, fmt.Errorf("%s: %w", r.name, err)
		}
		values, at, sizes, err := fivePickles(string(b))
		switch {
		case err == nil:
			return values, int64(at), sizes, nil
		case errors.Is(err, pickle.ErrShort) && n < min(r.size, most):
			continue // not all of them were read
		case errors.Is(err, pickle.ErrShort) && n == r.size:
			err = fmt.Errorf("%w: %w", err, errCutOff)
			return nil, 0, nil, &ckptfmt.CorruptError{Name: r.name, Offset: int64(at), Part: "pickle", Err: err}
		case errors.Is(err, pickle.ErrShort):
			err = fmt.Errorf("it has more than %d bytes", most)
		}
		return nil, 0, nil, &RefusedError{r.name, int64(at), "pickle: " + err.Error()}
	}
}

func fivePickles(b string) (values []any, at int, sizes map[string]*element, err error) {
	sizes = make(map[string]*element)
	noting := (&maker{types: sizes}).rules()
	for range 5 {
		v, n, err := pickle.Load(b[at:], noting)
		at += n
		if err != nil {
			return nil, at, nil, err
		}
		values = append(values, v)
	}
	return values, at, sizes, nil
}

// findStorages reads the length before each storage.
func (r *Reader) findStorages(keys []any, types map[string]*element, at int64) error {
	for _, k := range keys {
		key, ok := k.(string)
		switch {
		case !ok:
			return r.legacyError(at, errors.New("the key of a storage is not text"))
		case r.storages[key] != nil:
			return r.legacyError(at, fmt.Errorf("storage %q occurs twice", key))
		}
		var head [8]byte
		if at > r.size-int64(len(head)) {
			return r.legacyError(at, fmt.Errorf("the file ends before storage %q: %w", key, errCutOff))
		}
		if _, err := r.from.ReadAt(head[:], at); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		numel := binary.LittleEndian.Uint64(head[:])
		at += int64(len(head))
		of := types[key]
		if of == nil {
			return r.legacyError(at, fmt.Errorf("storage %q has no type", key))
		}
		size := uint64(of.size)
		if left := uint64(r.size - at); numel > left/size {
			return r.legacyError(at, fmt.Errorf("storage %q has %d elements, %d bytes are left: %w", key, numel, left, errCutOff))
		}
		s := &storage{at: at, bytes: int64(numel * size)}
		r.storages[key] = s
		at += s.bytes
	}
	return nil
}
