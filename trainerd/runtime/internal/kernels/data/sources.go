package data

import (
	"io"
	"os"
	"slices"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/philox"
)

// Data sets that do not come from other data sets.
var sourceOps = exec.OpTable{
	"TensorDataset":              datasetOp(buildTensorDataset),
	"TensorSliceDataset":         datasetOp(buildSliceDataset),
	"RangeDataset":               datasetOp(buildRangeDataset),
	"RandomDataset":              datasetOp(buildRandomDataset),
	"RandomDatasetV2":            datasetOp(buildRandomDataset),
	"TFRecordDataset":            datasetOp(buildFilesDataset(recordFiles)),
	"TFRecordDatasetV2":          datasetOp(buildFilesDataset(recordFiles)),
	"TextLineDataset":            datasetOp(buildFilesDataset(lineFiles)),
	"FixedLengthRecordDataset":   datasetOp(buildFilesDataset(fixedFiles)),
	"FixedLengthRecordDatasetV2": datasetOp(buildFilesDataset(fixedFiles)),
	"MatchingFilesDataset":       datasetOp(buildMatchingDataset),

	"AnonymousSeedGenerator": {Flags: exec.Stateful, Build: buildSeedGenerator},
	"DummySeedGenerator":     {Flags: exec.Stateful, Build: exec.WithoutAttrs(func(c *exec.KernelContext) error { c.SetHandle(0, nil); return nil })},
	"DummyMemoryCache":       {Flags: exec.Stateful, Build: exec.WithoutAttrs(func(c *exec.KernelContext) error { c.SetHandle(0, nil); return nil })},
	"AnonymousMemoryCache":   {Flags: exec.Stateful, Build: buildMemoryCache},
	"DeleteMemoryCache":      {Flags: exec.Stateful, Build: exec.WithoutAttrs(func(*exec.KernelContext) error { return nil })},
}

func buildTensorDataset(*exec.OpConstruction) func(c *exec.KernelContext) (variant.Dataset, error) {
	return func(c *exec.KernelContext) (variant.Dataset, error) {
		el := copies(c, 0, c.NumInputs())
		return variant.NewTupleList(1, func(int) variant.Tuple { return el }), nil
	}
}

func buildSliceDataset(*exec.OpConstruction) func(c *exec.KernelContext) (variant.Dataset, error) {
	return func(c *exec.KernelContext) (variant.Dataset, error) {
		all := copies(c, 0, c.NumInputs())
		n := -1
		for i, t := range all {
			if len(t.Shape) == 0 || n >= 0 && t.Shape[0] != n {
				return nil, c.Invalid("component %d, %s, does not have the %d slices of the others", i, t.Describe(), n)
			}
			n = t.Shape[0]
		}
		return variant.NewTupleList(n, func(i int) variant.Tuple { return tupleAt(all, i) }), nil
	}
}

// tupleAt returns row i of each tensor.
func tupleAt(all variant.Tuple, i int) variant.Tuple {
	el := make(variant.Tuple, len(all))
	for k, t := range all {
		el[k] = variant.Rows(t, i, 1, t.Shape[1:])
	}
	return el
}

func buildRangeDataset(b *exec.OpConstruction) func(c *exec.KernelContext) (variant.Dataset, error) {
	dt := exec.Int64
	if types := b.Types("output_types"); len(types) == 1 && exec.Indices.Has(types[0]) {
		dt = types[0]
	}
	return func(c *exec.KernelContext) (variant.Dataset, error) {
		start, stop, step := c.MustInt(0, "the start"), c.MustInt(1, "the end"), c.MustInt(2, "the step")
		if step == 0 {
			return nil, c.Invalid("a range with a step of 0")
		}
		return variant.OpenFunc(func(*variant.IteratorContext) (variant.Iterator, error) {
			return &rangeIterator{dt, start, stop, step}, nil
		}), nil
	}
}

type rangeIterator struct {
	dtype          tfpb.DataType
	at, stop, step int
}

func (w *rangeIterator) Next(*variant.IteratorContext) (variant.Tuple, error) {
	if w.step > 0 && w.at >= w.stop || w.step < 0 && w.at <= w.stop {
		return nil, io.EOF
	}
	t := exec.NewTensor(w.dtype, nil)
	exec.SetInt(t, 0, w.at)
	w.at += w.step
	return variant.Tuple{t}, nil
}

func (w *rangeIterator) Save(sw *variant.StateWriter) {
	sw.Kind("range")
	sw.Int(w.at)
}

func (w *rangeIterator) Load(_ *variant.IteratorContext, r *variant.StateReader) {
	r.Kind("range")
	w.at = r.Int()
}

// buildRandomDataset builds the op whose walks have the same numbers each; others in its second
// version, if it is told so.
func buildRandomDataset(b *exec.OpConstruction) func(c *exec.KernelContext) (variant.Dataset, error) {
	change := b.BoolOr("rerandomize_each_iteration", false)
	return func(c *exec.KernelContext) (variant.Dataset, error) {
		s := newSeeds(uint64(c.MustInt(0, "the seed")), uint64(c.MustInt(1, "the second seed")), change)
		if change {
			if given, ok := c.In(2).Value.(*seeds); ok {
				s = given
			}
		}
		return variant.OpenFunc(func(*variant.IteratorContext) (variant.Iterator, error) {
			return &randomIterator{s, s.begin()}, nil
		}), nil
	}
}

type randomIterator struct {
	seeds *seeds
	words *philox.Words
}

func (w *randomIterator) Next(*variant.IteratorContext) (variant.Tuple, error) {
	t := exec.NewTensor(exec.Int64, nil)
	exec.SetInt(t, 0, int(w.words.Next()))
	return variant.Tuple{t}, nil
}

func (w *randomIterator) Save(sw *variant.StateWriter) {
	sw.Kind("random")
	sw.Words(w.words)
	if w.seeds.words != nil {
		w.seeds.save(sw)
	}
}

func (w *randomIterator) Load(_ *variant.IteratorContext, r *variant.StateReader) {
	r.Kind("random")
	r.Words(w.words)
	if w.seeds.words != nil {
		w.seeds.load(r)
	}
}

// filesOpener reads what a data set of files needs to know from the inputs
// after the file names, and returns what opens a file.
type filesOpener func(c *exec.KernelContext) (func(path, work string) (recordSource, error), error)

func buildFilesDataset(o filesOpener) func(*exec.OpConstruction) func(c *exec.KernelContext) (variant.Dataset, error) {
	return func(*exec.OpConstruction) func(c *exec.KernelContext) (variant.Dataset, error) {
		return func(c *exec.KernelContext) (variant.Dataset, error) {
			open, err := o(c)
			if err != nil {
				return nil, err
			}
			var names []string
			for _, name := range c.In(0).Strings {
				names = append(names, string(name))
			}
			offsets, err := byteOffsets(c)
			if err != nil {
				return nil, err
			}
			return variant.OpenFunc(func(*variant.IteratorContext) (variant.Iterator, error) {
				return &fileIterator{names: names, offsets: offsets, openFile: open}, nil
			}), nil
		}
	}
}

// fileIterator goes through the records of files.
type fileIterator struct {
	names    []string
	offsets  []int // of the first record, of as many files as have one
	begun    int   // of the files
	openFile func(path, work string) (recordSource, error)
	file     recordSource // nil between files
}

func (w *fileIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	for {
		if w.file == nil {
			if w.begun == len(w.names) {
				return nil, io.EOF
			}
			if err := w.begin(p, w.begun); err != nil {
				return nil, p.FileError(err)
			}
			w.begun++
		}
		value, err := w.file.next()
		if err == nil {
			return stringElement(value), nil
		}
		p.Files.Remove(w.file)
		w.file = nil
		if err != io.EOF {
			return nil, readError(p.KernelContext, err)
		}
	}
}

// stringElement returns an element that is a copy of a string.
func stringElement(value []byte) variant.Tuple {
	var e struct {
		tensor exec.Tensor
		one    [1][]byte
		tuple  [1]*exec.Tensor
	}
	p := &e
	p.one[0] = append(make([]byte, 0, len(value)), value...)
	p.tensor.DType, p.tensor.Strings = exec.String, p.one[:]
	p.tuple[0] = &p.tensor
	return p.tuple[:]
}

// begin opens file i.
func (w *fileIterator) begin(p *variant.IteratorContext, i int) error {
	path, err := p.ResolvePath(w.names[i])
	if err != nil {
		return err
	}
	f, err := w.openFile(path, w.names[i])
	if err != nil {
		return err
	}
	if i < len(w.offsets) && w.offsets[i] != 0 {
		if err := skipTo(f, path, int64(w.offsets[i])); err != nil {
			f.Close()
			return err
		}
	}
	w.file = f
	p.Files.Add(f)
	return nil
}

// skipTo moves to a byte of the file, or to its end if it is shorter.
func skipTo(f recordSource, path string, offset int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return f.moveTo(filePlace{offset: min(offset, info.Size())})
}

func (w *fileIterator) Save(sw *variant.StateWriter) {
	sw.Kind("files")
	sw.Int(w.begun)
	if sw.Bool(w.file != nil) {
		sw.Bytes([]byte(w.names[w.begun-1]))
		savePlace(sw, w.file.place())
	}
}

func (w *fileIterator) Load(p *variant.IteratorContext, r *variant.StateReader) {
	r.Kind("files")
	if w.begun = r.Int(); w.begun < 0 || w.begun > len(w.names) {
		r.Fail("%d files were begun, of %d that there are now", w.begun, len(w.names))
	}
	if !r.Bool() || r.Err != nil {
		return
	}
	name, at := string(r.Bytes()), loadPlace(r)
	if w.begun == 0 || w.names[w.begun-1] != name {
		r.Fail("file %d was %q, and is another one now", w.begun, name)
		return
	}
	if err := w.begin(p, w.begun-1); err != nil {
		r.Fail("%v", err)
		return
	}
	if err := w.file.moveTo(at); err != nil {
		r.Fail("%s: %v", name, err)
	}
}

func recordFiles(c *exec.KernelContext) (func(path, work string) (recordSource, error), error) {
	kind, err := c.StringScalar(1, "the compression")
	if err != nil {
		return nil, err
	}
	return recordOpener(kind, c.MaxRead()), nil
}

// byteOffsets returns where the first record of each file is, for the op that
// is told so.
func byteOffsets(c *exec.KernelContext) ([]int, error) {
	if c.Op() != "TFRecordDatasetV2" || c.In(3).NumElements() == 0 {
		return nil, nil
	}
	offsets := append([]int(nil), c.IntsOf(0, c.In(3))...)
	for _, at := range offsets {
		if at != 0 && c.In(1).NumElements() == 1 && len(c.In(1).Strings[0]) > 0 {
			return nil, c.Errorf(tfpb.Code_UNIMPLEMENTED, "no kernel for byte_offsets in compressed files")
		}
	}
	return offsets, nil
}

func lineFiles(c *exec.KernelContext) (func(path, work string) (recordSource, error), error) {
	kind, err := c.StringScalar(1, "the compression")
	if err != nil {
		return nil, err
	}
	return lineOpener(kind, 0, c.MaxRead()), nil
}

func fixedFiles(c *exec.KernelContext) (func(path, work string) (recordSource, error), error) {
	kind := ""
	if c.NumInputs() > 5 {
		var err error
		if kind, err = c.StringScalar(5, "the compression"); err != nil {
			return nil, err
		}
	}
	l := fixedLayout{header: c.MustInt(1, "the header's length"), record: c.MustInt(2, "the record's length"), footer: c.MustInt(3, "the footer's length")}
	l.hop, l.whole = l.record, true
	if err := l.check(); err != nil {
		return nil, c.Invalid("%v", err)
	}
	return l.opener(kind, c.MaxRead()), nil
}

func buildMatchingDataset(*exec.OpConstruction) func(c *exec.KernelContext) (variant.Dataset, error) {
	return func(c *exec.KernelContext) (variant.Dataset, error) {
		var found []string
		for _, pattern := range c.In(0).Strings {
			names, err := c.MatchingFiles(string(pattern))
			if err != nil {
				return nil, err
			}
			slices.Sort(names)
			for _, name := range names {
				if !strings.Contains(name, "/") {
					name = "./" + name // as TensorFlow does here even without a wildcard
				}
				found = append(found, name)
			}
		}
		return variant.NewTupleList(len(found), func(i int) variant.Tuple {
			t := exec.NewTensor(exec.String, nil)
			t.Strings[0] = []byte(found[i])
			return variant.Tuple{t}
		}), nil
	}
}
