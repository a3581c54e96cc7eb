package hdf5

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Attrs are string attributes, by the path of a group or dataset, then by name. A path without
// attributes names a group that may be empty.
type Attrs map[string]map[string]string

// Check returns an error that says why a file cannot hold a tensor, or nil if
// it can.
func Check(p ckptfmt.Part) error {
	switch {
	case p.Err != nil:
		return p.Err
	case !p.IsWhole():
		return fmt.Errorf("%w: %q is a slice; HDF5 holds whole tensors", ckptfmt.ErrSlices, p.Name)
	case p.Foreign != "":
		return fmt.Errorf("%w: %q: HDF5 has no %s that h5py reads", ckptfmt.ErrType, p.Name, p.Foreign)
	case len(p.Shape) > maxRank:
		return fmt.Errorf("%q has %d dimensions; HDF5 has at most %d", p.Name, len(p.Shape), maxRank)
	}
	if _, err := typeOf(p.DType); err != nil {
		return fmt.Errorf("%q: %w", p.Name, err)
	}
	for name := range strings.SplitSeq(p.Name, "/") {
		if name == "" || name == "." || strings.ContainsRune(name, 0) {
			return fmt.Errorf("the name %q cannot be a path in HDF5; rename it", p.Name)
		}
	}
	return nil
}

// Write writes tensors to w, each as a dataset whose path is its name, in the oldest
// form of the format, which all programs read. It reads one tensor after another
// and keeps only about a hundred bytes of each. A bfloat16 tensor gets the
// attribute by which Keras recognises it.
func Write(ctx context.Context, w io.Writer, parts []ckptfmt.Part, attrs Attrs) error {
	f := &writer{root: newGroup(), attrs: make(Attrs)}
	for path, list := range attrs {
		f.attrs[path] = make(map[string]string, len(list))
		for name, value := range list {
			f.attrs.set(path, name, value)
		}
	}
	for i := range parts {
		if err := f.add(&parts[i]); err != nil {
			return err
		}
	}
	if err := f.addGroups(); err != nil {
		return err
	}
	head := f.metadata()
	if _, err := w.Write(head); err != nil {
		return err
	}
	for _, d := range f.data {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := d.copyTo(w); err != nil {
			return err
		}
	}
	return nil
}

func (a Attrs) set(path, name, value string) {
	if a[path] == nil {
		a[path] = make(map[string]string)
	}
	a[path][name] = value
}

// writer lays out a file: the superblock, all groups and headers, all elements.
type writer struct {
	root  *group
	attrs Attrs
	data  []*stored
	b     []byte               // metadata so far
	refs  map[string]stringRef // of strings, by their text
}

// group is one that is to be written.
type group struct {
	groups map[string]*group
	data   map[string]*stored
}

func newGroup() *group { return &group{make(map[string]*group), make(map[string]*stored)} }

// stored is a dataset that is to be written.
type stored struct {
	part *ckptfmt.Part
	size int64
	slot int // in the metadata, of its address
}

// add finds the place of a tensor.
func (f *writer) add(p *ckptfmt.Part) error {
	if err := Check(*p); err != nil {
		return err
	}
	size, err := p.Size()
	if err != nil {
		return err
	}
	before, name := cutPath(p.Name)
	g, err := f.group(before)
	if err != nil {
		return err
	}
	if g.data[name] != nil || g.groups[name] != nil {
		return fmt.Errorf("%w: HDF5 cannot hold %q next to a tensor of that name, or within one; rename one of them", ckptfmt.ErrExists, p.Name)
	}
	d := &stored{part: p, size: size}
	g.data[name] = d
	f.data = append(f.data, d)
	if p.DType == tfpb.DataType_DT_BFLOAT16 {
		f.attrs.set(p.Name, "dtype", "bfloat16")
	}
	return nil
}

func cutPath(path string) (before, name string) {
	at := strings.LastIndexByte(path, '/')
	if at < 0 {
		return "", path
	}
	return path[:at], path[at+1:]
}

// group returns the group of a path, and makes it.
func (f *writer) group(path string) (*group, error) {
	g := f.root
	if path == "" {
		return g, nil
	}
	for name := range strings.SplitSeq(path, "/") {
		if g.data[name] != nil {
			return nil, fmt.Errorf("%w: HDF5 cannot hold a tensor %q next to others whose names begin with %q; rename one of them, or leave it out",
				ckptfmt.ErrExists, path, path+"/")
		}
		if g.groups[name] == nil {
			g.groups[name] = newGroup()
		}
		g = g.groups[name]
	}
	return g, nil
}

// addGroups makes the groups that have nothing but attributes.
func (f *writer) addGroups() error {
	for path := range f.attrs {
		before, name := cutPath(path)
		g, err := f.group(before)
		if err != nil {
			return err
		}
		if path != "" && g.data[name] == nil && g.groups[name] == nil {
			g.groups[name] = newGroup()
		}
	}
	return nil
}

// metadata makes all of the file before the elements.
func (f *writer) metadata() []byte {
	f.b = make([]byte, superSize)
	f.strings()
	root := f.writeGroup("", f.root)
	at := uint64(len(f.b))
	for _, d := range f.data {
		if d.size > 0 {
			le.PutUint64(f.b[d.slot:], at)
		}
		at += uint64(d.size + tail(d.size))
	}
	copy(f.b, superblockOf(at, root))
	return f.b
}

// tail is what fills up elements to a multiple of 8 bytes.
func tail(size int64) int64 { return (8 - size%8) % 8 }

// strings writes the values of all attributes, into as few collections as may be.
func (f *writer) strings() {
	const most = 0xffff // objects in a collection
	f.refs = make(map[string]stringRef)
	var texts []string
	for _, list := range f.attrs {
		for _, value := range list {
			texts = append(texts, value)
		}
	}
	slices.Sort(texts)
	texts = slices.Compact(texts)
	for chunk := range slices.Chunk(texts, most-1) {
		at := len(f.b)
		f.b = append(f.b, sigGlobalHeap+"\x01\x00\x00\x00"...)
		f.b = le.AppendUint64(f.b, 0)
		for i, text := range chunk {
			f.refs[text] = stringRef{len(text), uint64(at), i + 1}
			f.b = le.AppendUint16(f.b, uint16(i+1))
			f.b = append(f.b, 0, 0, 0, 0, 0, 0)
			f.b = le.AppendUint64(f.b, uint64(len(text)))
			f.b = padded(append(f.b, text...))
		}
		free := max(heapMinimum-(len(f.b)-at), 16)
		f.b = append(f.b, make([]byte, 8)...) // object 0 is what is free
		f.b = le.AppendUint64(f.b, uint64(free))
		f.b = append(f.b, make([]byte, free-16)...)
		le.PutUint64(f.b[at+8:], uint64(len(f.b)-at))
	}
}

// attributes appends the messages of an object's attributes, and counts them.
func (f *writer) attributes(path string, messages []byte) ([]byte, int) {
	list := f.attrs[path]
	names := make([]string, 0, len(list))
	for name := range list {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		messages = appendMessage(messages, msgAttribute, attributeOf(name, f.refs[list[name]]))
	}
	return messages, len(names)
}

// writeGroup writes the members of a group, then the group, and returns its entry.
func (f *writer) writeGroup(path string, g *group) symbol {
	names := make([]string, 0, len(g.groups)+len(g.data))
	for name := range g.groups {
		names = append(names, name)
	}
	for name := range g.data {
		names = append(names, name)
	}
	slices.Sort(names)
	heap := make([]byte, 8) // the name at 0 is empty
	symbols := make([]symbol, len(names))
	for i, name := range names {
		child := name
		if path != "" {
			child = path + "/" + name
		}
		if d := g.data[name]; d != nil {
			symbols[i] = f.writeDataset(child, d)
		} else {
			symbols[i] = f.writeGroup(child, g.groups[name])
		}
		symbols[i].nameAt = uint64(len(heap))
		heap = padded(append(append(heap, name...), 0))
	}
	s := symbol{tree: f.writeTree(symbols), heap: f.writeHeap(heap)}
	message := le.AppendUint64(le.AppendUint64(nil, s.tree), s.heap)
	messages, n := f.attributes(path, appendMessage(nil, msgSymbolTable, message))
	s.header = uint64(len(f.b))
	f.b = append(f.b, headerOf(n+1, messages)...)
	return s
}

func (f *writer) writeHeap(names []byte) uint64 {
	const noFree = 1
	at := uint64(len(f.b))
	f.b = append(f.b, sigLocalHeap+"\x00\x00\x00\x00"...)
	f.b = le.AppendUint64(f.b, uint64(len(names)))
	f.b = le.AppendUint64(f.b, noFree)
	f.b = le.AppendUint64(f.b, at+32)
	f.b = append(f.b, names...)
	return at
}

// branch is a node with the name that is the last under it.
type branch struct{ at, last uint64 }

// writeTree writes the entries of a group and the tree above them.
func (f *writer) writeTree(symbols []symbol) uint64 {
	var level []branch
	for list := range slices.Chunk(symbols, 2*leafRank) {
		level = append(level, branch{uint64(len(f.b)), list[len(list)-1].nameAt})
		at := len(f.b)
		f.b = append(f.b, sigSymbols+"\x01\x00"...)
		f.b = le.AppendUint16(f.b, uint16(len(list)))
		for _, s := range list {
			f.b = appendSymbol(f.b, s)
		}
		f.b = append(f.b, make([]byte, at+symbolsSize-len(f.b))...)
	}
	if len(level) == 0 {
		return f.writeNode(nil, 0, 0, 0, 1)[0].at
	}
	for height := 0; ; height++ {
		count := (len(level) + 2*innerRank - 1) / (2 * innerRank)
		before := uint64(0) // the last name before the node
		var above []branch
		for i, list := range indexed(slices.Chunk(level, 2*innerRank)) {
			above = append(above, f.writeNode(list, height, before, i, count)...)
			before = list[len(list)-1].last
		}
		if level = above; len(level) == 1 {
			return level[0].at
		}
	}
}

func indexed[T any](seq func(func(T) bool)) func(func(int, T) bool) {
	return func(yield func(int, T) bool) {
		i := 0
		seq(func(v T) bool { i++; return yield(i-1, v) })
	}
}

// writeNode writes a node of a tree, which is one of count in a row.
func (f *writer) writeNode(list []branch, height int, before uint64, i, count int) []branch {
	at := len(f.b)
	left, right := uint64(undefined), uint64(undefined)
	if i > 0 {
		left = uint64(at - nodeSize)
	}
	if i < count-1 {
		right = uint64(at + nodeSize)
	}
	f.b = append(f.b, sigTree...)
	f.b = append(f.b, treeGroups, byte(height))
	f.b = le.AppendUint16(f.b, uint16(len(list)))
	f.b = le.AppendUint64(f.b, left)
	f.b = le.AppendUint64(f.b, right)
	f.b = le.AppendUint64(f.b, before)
	last := before
	for _, c := range list {
		f.b = le.AppendUint64(f.b, c.at)
		f.b = le.AppendUint64(f.b, c.last)
		last = c.last
	}
	f.b = append(f.b, make([]byte, at+nodeSize-len(f.b))...)
	return []branch{{uint64(at), last}}
}

// writeDataset writes a header; the address of the elements is filled in later.
func (f *writer) writeDataset(path string, d *stored) symbol {
	t, _ := typeOf(d.part.DType) // it was checked
	messages := appendMessage(nil, msgDataspace, dataspaceOf(d.part.Shape))
	messages = appendMessage(messages, msgDatatype, t)
	messages = appendMessage(messages, msgFill, []byte{2, 2, 2, 1, 0, 0, 0, 0})
	place := le.AppendUint64([]byte{3, layoutContiguous}, undefined)
	at := len(messages) + 8 + 2
	messages = appendMessage(messages, msgLayout, le.AppendUint64(place, uint64(d.size)))
	messages, n := f.attributes(path, messages)
	s := symbol{header: uint64(len(f.b))}
	d.slot = len(f.b) + 16 + at
	f.b = append(f.b, headerOf(4+n, messages)...)
	return s
}

// copyTo writes the elements.
func (d *stored) copyTo(w io.Writer) error {
	r, err := d.part.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	n, err := io.Copy(w, r)
	if err == nil && n != d.size {
		err = fmt.Errorf("tensor %q has %d bytes, its shape %v needs %d", d.part.Name, n, d.part.Shape, d.size)
	}
	if err != nil {
		return err
	}
	_, err = w.Write(make([]byte, tail(n)))
	return err
}
