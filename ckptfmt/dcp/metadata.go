package dcp

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/internal/pickle"
	"github.com/trainerd/trainerd/ckptfmt/torch"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Classes in the pickle.
const (
	classes       = "torch.distributed.checkpoint.metadata."
	classMetadata = classes + "Metadata"
	classTensor   = classes + "TensorStorageMetadata"
	classBytes    = classes + "BytesStorageMetadata"
	classChunk    = classes + "ChunkStorageMetadata"
	classIndex    = classes + "MetadataIndex"
	classInfo     = "torch.distributed.checkpoint.filesystem._StorageInfo"
	torchSize     = "torch.Size"
)

// made are the classes whose objects the pickle has.
var made = map[string]bool{
	classMetadata: true, classTensor: true, classBytes: true, classChunk: true, classIndex: true, classInfo: true,
	classes + "TensorProperties": true, classes + "StorageMeta": true,
}

// called are the globals that it calls. All except torch.Size say nothing about tensors: a layout,
// a memory format, a path.
var called = map[string]bool{
	torchSize: true, "torch.serialization._get_layout": true, classes + "_MEM_FORMAT_ENCODING": true,
	"pathlib.PosixPath": true, "pathlib.PurePosixPath": true, "pathlib.WindowsPath": true,
	"pathlib._local.PosixPath": true, "pathlib._local.WindowsPath": true,
}

var rules = pickle.Rules{
	Allowed: func(name string) bool {
		return elementOf(name) != element{} || made[name] || called[name]
	},
	New: func(class string, args pickle.Tuple) (any, error) {
		if !made[class] || len(args) > 0 {
			return nil, fmt.Errorf("an object of %s is made", class)
		}
		return &pickle.Object{Class: pickle.Global(class)}, nil
	},
	Call: func(name string, args pickle.Tuple) (any, error) {
		switch {
		case !called[name]:
			return nil, fmt.Errorf("%s is called", name)
		case name != torchSize:
			return nil, nil
		case len(args) == 0:
			return pickle.Tuple(nil), nil
		}
		if l, ok := args[0].(*pickle.List); ok {
			return pickle.Tuple(l.Items), nil
		}
		return args[0], nil
	},
}

// chunk is a part of a tensor, with its location.
type chunk struct {
	offsets, sizes []int64
	piece          piece
}

// tensor is one as the pickle describes it.
type tensor struct {
	name   string
	of     element
	shape  []int64
	chunks []chunk
}

// element is the type of the elements, as [torch.DType] has it.
type element struct {
	dtype   tfpb.DataType
	foreign string
	size    int64 // 0 of a type that is not known
}

func elementOf(global string) element {
	d, foreign, size := torch.DType(global)
	return element{d, foreign, size}
}

// whole returns a part that is the whole tensor, and that cannot be read.
func (t *tensor) whole(err error) ckptfmt.Part {
	p := ckptfmt.WholePart(t.name, t.of.dtype, t.shape, nil)
	n, _ := dtype.NumElements(t.shape) // which was not an error when the chunks were counted
	p.Foreign, p.Bytes, p.Err = t.of.foreign, n*t.of.size, err
	return p
}

// parser reads the object in a pickle.
type parser struct {
	r      *Reader
	name   string                      // of the file
	pieces map[string]map[string]piece // by name, then by offsets
	sizes  map[string]int64            // of files, -1 of those that are missing
	left   int                         // numbers of shapes that there may still be
}

// spareNumbers is how many numbers of shapes there may be in addition to one for each byte: chunks
// of a hostile pickle may share theirs.
const spareNumbers = 4096

func (r *Reader) parse(name string, b []byte) error {
	value, offset, err := pickle.Load(string(b), rules)
	if err != nil {
		return &torch.RefusedError{Name: name, Offset: int64(offset), What: err.Error()}
	}
	p := &parser{r: r, name: name, pieces: make(map[string]map[string]piece), sizes: make(map[string]int64), left: len(b) + spareNumbers}
	top := stateOf(value, classMetadata)
	entries, ok := field(top, "state_dict_metadata").(*pickle.Dict)
	if !ok {
		return p.corrupt("", errors.New("it has no state_dict_metadata"))
	}
	if err := p.readPieces(field(top, "storage_data")); err != nil {
		return err
	}
	for i, key := range entries.Keys {
		name, ok := key.(string)
		if !ok || name == "" {
			return p.corrupt("", errors.New("a tensor has no name"))
		}
		if err := p.entry(name, entries.Values[i]); err != nil {
			return err
		}
	}
	r.files = []string{name}
	for _, file := range slices.Sorted(maps.Keys(p.sizes)) {
		r.files = append(r.files, filepath.Join(r.dir, file))
	}
	return nil
}

func (p *parser) corrupt(tensor string, err error) error {
	part := "pickle"
	if tensor != "" {
		part = fmt.Sprintf("tensor %q", tensor)
	}
	return &ckptfmt.CorruptError{Name: p.name, Part: part, Err: err}
}

// stateOf returns the attributes of an object of that class, or nil.
func stateOf(v any, class string) *pickle.Dict {
	o, ok := v.(*pickle.Object)
	if !ok || string(o.Class) != class {
		return nil
	}
	d, _ := o.State.(*pickle.Dict)
	return d
}

// field returns an attribute, or nil if there is none.
func field(d *pickle.Dict, name string) any {
	if d == nil {
		return nil
	}
	return d.Get(name)
}

// numbers reads a torch.Size.
func (p *parser) numbers(v any) ([]int64, bool) {
	t, ok := v.(pickle.Tuple)
	if p.left -= len(t); p.left < 0 {
		return nil, false
	}
	out := make([]int64, len(t))
	for i, n := range t {
		v, isNumber := n.(int64)
		if !isNumber || v < 0 {
			return nil, false
		}
		out[i] = v
	}
	return out, ok
}

// readPieces takes where everything is.
func (p *parser) readPieces(v any) error {
	d, ok := v.(*pickle.Dict)
	if !ok {
		return p.corrupt("", errors.New("it has no storage_data: the folder was not written by the file system writer"))
	}
	for i, key := range d.Keys {
		index, info := stateOf(key, classIndex), stateOf(d.Values[i], classInfo)
		name, isName := field(index, "fqn").(string)
		file, isFile := field(info, "relative_path").(string)
		offset, hasOffset := field(info, "offset").(int64)
		size, hasSize := field(info, "length").(int64)
		if !isName || !isFile || !hasOffset || !hasSize || offset < 0 || size < 0 {
			return p.corrupt(name, errors.New("its place has no file, offset or length"))
		}
		at := ""
		if v := field(index, "offset"); v != nil {
			offsets, ok := p.numbers(v)
			if !ok {
				return p.corrupt(name, errors.New("a chunk has no offsets"))
			}
			at = fmt.Sprint(offsets)
		}
		lost, err := p.checkPlace(name, file, offset, size)
		if err != nil {
			return err
		}
		if p.pieces[name] == nil {
			p.pieces[name] = make(map[string]piece)
		}
		p.pieces[name][at] = piece{file, offset, size, field(info, "transform_descriptors") != nil, lost}
	}
	return nil
}

// gone is the size of a file that is missing.
const gone = -1

// checkPlace insists that a piece is in a file of the folder. Where that is missing or too short, the piece
// is lost, and hinders no other.
func (p *parser) checkPlace(name, file string, offset, size int64) (lost, err error) {
	if !filepath.IsLocal(file) || strings.ContainsAny(file, `/\`) || file == "." {
		return nil, p.corrupt(name, fmt.Errorf("%q is not a file of the folder", file))
	}
	have, ok := p.sizes[file]
	if !ok {
		info, err := os.Stat(filepath.Join(p.r.dir, file))
		switch {
		case err == nil:
			have = info.Size()
		case errors.Is(err, fs.ErrNotExist):
			have = gone
		default:
			return nil, fmt.Errorf("%s: tensor %q: %w", p.name, name, err)
		}
		p.sizes[file] = have
	}
	switch {
	case have == gone:
		return &ckptfmt.CorruptError{Name: filepath.Join(p.r.dir, file), Part: "file", Err: fs.ErrNotExist}, nil
	case size > have || offset > have-size:
		return p.corrupt(name, fmt.Errorf("it has %d bytes at %d of %s, which has %d", size, offset, file, have)), nil
	}
	return nil, nil
}

// entry reads a tensor, or something else that was saved.
func (p *parser) entry(name string, v any) error {
	o, _ := v.(*pickle.Object)
	switch {
	case o != nil && string(o.Class) == classBytes:
		if at, ok := p.pieces[name][""]; ok {
			p.r.items = append(p.r.items, item{name, at})
			return nil
		}
		return p.corrupt(name, errors.New("nothing says where it is"))
	case stateOf(v, classTensor) == nil:
		return p.corrupt(name, errors.New("it is neither a tensor nor bytes"))
	}
	t, err := p.tensor(name, stateOf(v, classTensor))
	if err != nil {
		return p.corrupt(name, err)
	}
	if t.of.size == 0 {
		p.r.parts = append(p.r.parts, t.whole(fmt.Errorf("%s: tensor %q: %w: it is of torch.%s, which TensorFlow and this package do not have", p.name, name, ckptfmt.ErrType, t.of.foreign)))
		return nil
	}
	list := make([]ckptfmt.Part, len(t.chunks))
	for i, c := range t.chunks {
		if c.piece.lost != nil {
			p.r.parts = append(p.r.parts, t.whole(c.piece.lost))
			return nil
		}
		list[i] = p.r.slice(t, c)
	}
	p.r.parts = append(p.r.parts, ckptfmt.JoinParts(list))
	return nil
}

// dtypeOf reads the properties of a tensor: a tuple that begins with the type, or
// its attributes.
func dtypeOf(v any) element {
	o, _ := v.(*pickle.Object)
	if o == nil {
		return element{}
	}
	var global pickle.Global
	switch state := o.State.(type) {
	case pickle.Tuple:
		if len(state) > 0 {
			global, _ = state[0].(pickle.Global)
		}
	case *pickle.Dict:
		global, _ = state.Get("dtype").(pickle.Global)
	}
	return elementOf(string(global))
}

func (p *parser) tensor(name string, state *pickle.Dict) (*tensor, error) {
	of := dtypeOf(state.Get("properties"))
	if of == (element{}) {
		return nil, fmt.Errorf("%w: it has a type that is not known", ckptfmt.ErrType)
	}
	shape, ok := p.numbers(state.Get("size"))
	list, isList := state.Get("chunks").(*pickle.List)
	if !ok || !isList || len(list.Items) == 0 {
		return nil, errors.New("it has no size or chunks")
	}
	t := &tensor{name: name, of: of, shape: shape}
	total := int64(0)
	for _, v := range list.Items {
		c, err := p.chunk(t, stateOf(v, classChunk))
		if err != nil {
			return nil, err
		}
		n, err := dtype.NumElements(c.sizes)
		if err != nil || n*of.size > c.piece.size || n > 1<<50 {
			return nil, fmt.Errorf("a chunk of shape %v is larger than its piece of %d bytes", c.sizes, c.piece.size)
		}
		total += n
		t.chunks = append(t.chunks, c)
	}
	if n, err := dtype.NumElements(shape); err != nil || n != total {
		return nil, fmt.Errorf("%w: the chunks have %d elements, shape %v does not", ckptfmt.ErrSlices, total, shape)
	}
	return t, nil
}

func (p *parser) chunk(t *tensor, state *pickle.Dict) (chunk, error) {
	offsets, ok := p.numbers(field(state, "offsets"))
	sizes, hasSizes := p.numbers(field(state, "sizes"))
	if !ok || !hasSizes || len(offsets) != len(t.shape) || len(sizes) != len(t.shape) {
		return chunk{}, errors.New("a chunk has no offsets or sizes")
	}
	for i := range sizes {
		if sizes[i] > t.shape[i] || offsets[i] > t.shape[i]-sizes[i] {
			return chunk{}, fmt.Errorf("a chunk of shape %v at %v is outside of shape %v", sizes, offsets, t.shape)
		}
	}
	at, ok := p.pieces[t.name][fmt.Sprint(offsets)]
	if !ok && !slices.ContainsFunc(offsets, func(n int64) bool { return n != 0 }) {
		at, ok = p.pieces[t.name][""] // of a tensor that is not sharded
	}
	if !ok {
		return chunk{}, fmt.Errorf("nothing says where the chunk at %v is", offsets)
	}
	return chunk{offsets, sizes, at}, nil
}
