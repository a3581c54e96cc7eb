package torch

import (
	"archive/zip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
)

// The folder of the members, and the multiple at which elements begin, so that
// torch.load(mmap=True) can use them where they are.
const (
	folder    = "archive/"
	alignment = 64
)

// typeName returns the name of a type in torch, or "" if it has none.
func typeName(p *ckptfmt.Part) string {
	for name, of := range dtypes {
		if of.dtype == p.DType && of.foreign == p.Foreign {
			return name[len("torch."):]
		}
	}
	return ""
}

// storageName returns the storage of a type in torch, or "" if it has none: then the storage is one
// of bytes, and the type is stored separately.
func storageName(typeName string) string {
	for storage, of := range storageTypes {
		if of == "torch."+typeName && storage != untypedStorage && !strings.HasPrefix(storage, quantised) {
			return storage[len("torch."):]
		}
	}
	return ""
}

// Check returns an error that says why a state dict cannot hold a tensor, or
// nil if it can.
func Check(p ckptfmt.Part) error {
	switch {
	case p.Err != nil:
		return p.Err
	case !p.IsWhole():
		return fmt.Errorf("%w: %q is a slice; a state dict holds whole tensors", ckptfmt.ErrSlices, p.Name)
	case typeName(&p) == "":
		return fmt.Errorf("%w: a state dict cannot hold %q of %s", ckptfmt.ErrType, p.Name, p.TypeName())
	case p.Name == "" || !utf8.ValidString(p.Name):
		return fmt.Errorf("the name %q cannot be that of a tensor of torch; rename it", p.Name)
	}
	return nil
}

// Write writes tensors to w as a state dict, an OrderedDict of their names, which
// torch.load reads with weights_only=True. It reads one tensor after another and
// keeps none in memory.
func Write(ctx context.Context, w io.Writer, parts []ckptfmt.Part) error {
	pickle, err := stateDict(parts)
	if err != nil {
		return err
	}
	to := &counter{w: w}
	a := &archive{Writer: zip.NewWriter(to), to: to}
	if err := a.add("data.pkl", int64(len(pickle)), strings.NewReader(string(pickle))); err != nil {
		return err
	}
	if err := a.add("byteorder", 6, strings.NewReader("little")); err != nil {
		return err
	}
	for i := range parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := a.addPart(storageFolder+strconv.Itoa(i), &parts[i]); err != nil {
			return err
		}
	}
	if err := a.add("version", 2, strings.NewReader("3\n")); err != nil {
		return err
	}
	return a.Close()
}

// archive is one that is being written.
type archive struct {
	*zip.Writer
	to *counter
	// descriptor is what the zip package will still write of the last member,
	// when the next one begins: its size and checksum.
	descriptor int64
}

// counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// add adds a member of that size, whose content begins at a multiple of alignment:
// an extra field fills its header up, as in files of torch.
func (a *archive) add(name string, size int64, from io.Reader) error {
	const header, fieldHead = 30, 4
	if err := a.Flush(); err != nil {
		return err
	}
	h := &zip.FileHeader{Name: folder + name, Method: zip.Store}
	begin := a.to.n + a.descriptor + header + int64(len(h.Name)) + fieldHead
	fill := (alignment - begin%alignment) % alignment
	h.Extra = binary.LittleEndian.AppendUint16([]byte("FB"), uint16(fill))
	for range fill {
		h.Extra = append(h.Extra, 'Z')
	}
	w, err := a.CreateHeader(h)
	if err != nil {
		return err
	}
	a.descriptor = 16
	if size > math.MaxUint32 {
		a.descriptor = 24
	}
	n, err := io.Copy(w, from)
	if err == nil && n != size {
		err = fmt.Errorf("%d bytes, its shape needs %d", n, size)
	}
	return err
}

func (a *archive) addPart(name string, p *ckptfmt.Part) error {
	size, err := p.Size()
	if err != nil {
		return err
	}
	r, err := p.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	if err := a.add(name, size, r); err != nil {
		return fmt.Errorf("tensor %q: %w", p.Name, err)
	}
	return nil
}

// stateDict makes the pickle, of protocol 2.
func stateDict(parts []ckptfmt.Part) ([]byte, error) {
	seen := make(map[string]bool, len(parts))
	w := &pickler{b: []byte{0x80, 2}, places: make(map[string]byte)}
	w.global("collections\nOrderedDict")
	w.b = append(w.b, ")R("...)
	for i, p := range parts {
		if err := Check(p); err != nil {
			return nil, err
		}
		if seen[p.Name] {
			return nil, fmt.Errorf("%w: %q", ckptfmt.ErrExists, p.Name)
		}
		seen[p.Name] = true
		if i > 0 && i%batch == 0 { // as Python does, so that no reader needs a large stack
			w.b = append(w.b, "u("...)
		}
		w.text(p.Name)
		if err := w.tensor(&p, strconv.Itoa(i)); err != nil {
			return nil, err
		}
	}
	if len(w.b) > maxPickle+morePickle*len(parts) {
		return nil, fmt.Errorf("a pickle of %d bytes is larger than this package reads; convert fewer tensors at once", len(w.b))
	}
	return append(w.b, "u."...), nil
}

// batch is how many tensors are put into the dict at once.
const batch = 1000

// pickler makes a pickle. The words that all tensors have are in it once, and then in
// the memo.
type pickler struct {
	b      []byte
	places map[string]byte // in the memo
}

// once writes an opcode with a word, or fetches what that made.
func (w *pickler) once(text string) {
	if at, ok := w.places[text]; ok {
		w.b = append(w.b, 'h', at)
		return
	}
	at := byte(len(w.places)) // there are a few dozen at most
	w.places[text] = at
	w.b = append(append(w.b, text...), 'q', at)
}

func (w *pickler) global(lines string) { w.once("c" + lines + "\n") }

func (w *pickler) text(s string) { w.b = appendText(w.b, s) }

// tensor writes the call that makes a tensor of its storage.
func (w *pickler) tensor(p *ckptfmt.Part, key string) error {
	n, err := dtype.NumElements(p.Shape)
	if err != nil {
		return err
	}
	of := typeName(p)
	function, storage := "torch._utils\n_rebuild_tensor_v2", "torch\n"+storageName(of)
	isTyped := storage != "torch\n"
	if !isTyped {
		n *= dtypes["torch."+of].size
		function, storage = "torch._utils\n_rebuild_tensor_v3", "torch.storage\nUntypedStorage"
	}
	w.global(function)
	w.b = append(w.b, "(("...)
	w.once(string(appendText(nil, "storage")))
	w.global(storage)
	w.text(key)
	w.once(string(appendText(nil, "cpu")))
	w.b = append(appendNumber(w.b, n), "tQ"...)
	w.b = appendNumber(w.b, 0)
	w.b = appendTuple(appendTuple(w.b, p.Shape), strides(p.Shape))
	w.b = append(w.b, 0x89)
	w.global("collections\nOrderedDict")
	w.b = append(w.b, ")R"...)
	if !isTyped {
		w.global("torch\n" + of)
	}
	w.b = append(w.b, "tR"...)
	return nil
}

// strides are those of elements in row-major order.
func strides(shape []int64) []int64 {
	list := make([]int64, len(shape))
	next := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		list[i] = next
		next *= max(shape[i], 1)
	}
	return list
}

func appendTuple(b []byte, list []int64) []byte {
	b = append(b, '(')
	for _, n := range list {
		b = appendNumber(b, n)
	}
	return append(b, 't')
}

func appendNumber(b []byte, n int64) []byte {
	if n < 1<<31 {
		return binary.LittleEndian.AppendUint32(append(b, 'J'), uint32(n))
	}
	return binary.LittleEndian.AppendUint64(append(b, 0x8a, 8), uint64(n))
}

func appendText(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint32(append(b, 'X'), uint32(len(s)))
	return append(b, s...)
}
