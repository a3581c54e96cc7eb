package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/picture"
)

// maxPixels bounds the images that are decoded: what one of them takes in
// memory is four times as many bytes.
const maxPixels = 1 << 26

// imageRows are files of images, decoded and brought to one size when they are
// asked for, unless all are held in memory.
type imageRows struct {
	files []string
	size  [3]int // height, width, channels
	pixel []byte // of the last image
	found foundImages
	labels
}

func (r *imageRows) count() int { return len(r.files) }

func (r *imageRows) features(x []float32, i int) ([]float32, error) {
	var err error
	if r.pixel, err = readImage(r.pixel[:0], r.files[i], r.size); err != nil {
		return x, err
	}
	for _, v := range r.pixel {
		x = append(x, float32(v))
	}
	return x, nil
}

// openImages reads a folder of classes, or of images that a table of labels names.
func openImages(ctx context.Context, dir, labelFile string, o Options) (*source, error) {
	if len(o.Image) != 3 || o.Image[2] != 1 && o.Image[2] != 3 {
		return nil, &Error{File: dir, Reason: fmt.Sprintf("the size of images is %v", o.Image), Hint: "set data.image to height, width and channels (1 or 3), as in [32, 32, 3]"}
	}
	r := &imageRows{size: [3]int(o.Image)}
	var known []string
	if o.Fit != nil {
		known = o.Fit.Label.Vocabulary
	}
	names, err := r.listBy(ctx, dir, labelFile, o.Numbers, known)
	if err != nil {
		return nil, err
	}
	if o.Classes > 0 && len(names) > o.Classes {
		return nil, &Error{File: dir, Reason: fmt.Sprintf("has %d classes, but model.classes = %d", len(names), o.Classes), Hint: "correct model.classes, or remove a folder"}
	}
	width := o.Image[0] * o.Image[1] * o.Image[2]
	s := &source{rows: r, name: dir, width: width, image: o.Image, classes: max(o.Classes, len(names)), classNames: names, close: noClose}
	s.place = func(row, _ int) *Error { return &Error{File: r.files[row]} }
	if int64(len(r.files))*int64(width) > o.MemoryLimit {
		return s, r.check(ctx)
	}
	if s.rows, err = r.load(ctx, dir, width); err != nil {
		return nil, err
	}
	return s, nil
}

// listBy finds the files, and returns the names of their classes: those of their folders, or, with
// a table of labels, the words in it.
func (r *imageRows) listBy(ctx context.Context, dir, labelFile string, numbers bool, known []string) (names []string, err error) {
	if labelFile == "" {
		return r.list(ctx, dir, known)
	}
	return r.listTable(ctx, dir, labelFile, numbers, known)
}

// list finds the files of each class. Those of a test part have the numbers that
// the classes have in the training.
func (r *imageRows) list(ctx context.Context, dir string, known []string) (names []string, err error) {
	folders, err := os.ReadDir(dir)
	if err != nil {
		return nil, openError(dir, err)
	}
	names = known
	errs := &Errors{File: dir}
	for _, folder := range folders {
		path := filepath.Join(dir, folder.Name())
		if isHiddenFolder(folder.Name()) || !isFolder(path, folder) {
			continue
		}
		class := slices.Index(known, folder.Name())
		switch {
		case known == nil:
			class, names = len(names), append(names, folder.Name())
		case class < 0:
			errs.add(&Error{File: path, Reason: "is not one of the classes of data.file", Hint: "remove the folder; the classes are " + quoteNames(known)})
		}
		n := len(r.files)
		found, err := r.listClass(ctx, path, int64(class))
		if err != nil {
			return nil, err
		}
		if known == nil && len(r.files) == n {
			errs.add(found.noImages(path))
		}
	}
	if e := errs.err(); e != nil && (len(r.files) > 0 || r.found.other > 0 && len(tablesIn(dir)) == 0) {
		return nil, e
	}
	if known == nil && len(names) < 2 || len(r.files) == 0 {
		return nil, noClasses(dir, len(names), len(r.files))
	}
	return names, errs.err()
}

// listClass finds the files of a class, also in folders of its folder.
func (r *imageRows) listClass(ctx context.Context, dir string, class int64) (foundImages, error) {
	found, err := imagesBelow(ctx, dir)
	if err != nil {
		return found, err
	}
	r.found.add(found)
	for _, name := range found.files {
		r.files = append(r.files, name)
		r.labels = append(r.labels, class)
	}
	return found, nil
}

// load decodes all images, as many at once as there are processors.
func (r *imageRows) load(ctx context.Context, dir string, width int) (*byteRows, error) {
	values, faults := make([]byte, len(r.files)*width), make([]error, len(r.files))
	parallel.Each(ctx, len(r.files), func(i int) {
		_, faults[i] = readImage(values[i*width:i*width:(i+1)*width], r.files[i], r.size)
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	errs := &Errors{File: dir}
	for _, err := range faults {
		if err != nil {
			errs.add(err.(*Error))
		}
	}
	return &byteRows{values: values, width: width, labels: r.labels}, errs.err()
}

// check looks at the head of each file.
func (r *imageRows) check(ctx context.Context) error {
	errs := &Errors{File: filepath.Dir(filepath.Dir(r.files[0]))}
	for _, name := range r.files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, e := imageHead(name); e != nil {
			errs.add(e)
		}
	}
	return errs.err()
}

// headBytes is how much of a file is read for its head at first.
const headBytes = 1 << 16

// imageHead reads the head of a file.
func imageHead(name string) (picture.Config, *Error) {
	f, err := os.Open(name)
	if err != nil {
		return picture.Config{}, openError(name, err)
	}
	defer f.Close()
	var data bytes.Buffer
	n, err := io.CopyN(&data, f, headBytes)
	c, e := checkImage(name, data.Bytes())
	if e == nil || n < headBytes {
		if err != nil && err != io.EOF {
			return c, imageError(name, err)
		}
		return c, e
	}
	if _, err := io.Copy(&data, f); err != nil {
		return c, imageError(name, err)
	}
	return checkImage(name, data.Bytes())
}

// checkImage reads the head of an image, and checks that it can be decoded to
// memory.
func checkImage(name string, data []byte) (picture.Config, *Error) {
	if f := picture.FormatOf(data); f == picture.Unknown {
		if len(data) == 0 {
			return picture.Config{}, imageError(name, errors.New("it is empty"))
		}
		return picture.Config{}, imageError(name, fmt.Errorf("%s, want PNG, JPEG, GIF or BMP", f))
	}
	c, err := picture.ReadConfig(data)
	switch {
	case err != nil:
		return c, imageError(name, err)
	case c.Width <= 0 || c.Height <= 0 || c.Width > maxPixels/c.Height:
		return c, &Error{File: name, Reason: fmt.Sprintf("the image has %dx%d pixels; the limit is %d", c.Width, c.Height, maxPixels), Hint: "make it smaller"}
	case c.Frames > maxPixels/c.Width/c.Height:
		return c, &Error{File: name, Reason: fmt.Sprintf("the image has %d frames of %dx%d pixels; the limit is %d pixels", c.Frames, c.Width, c.Height, maxPixels), Hint: "keep the first frame alone"}
	}
	return c, nil
}

func imageError(name string, err error) *Error {
	return &Error{File: name, Reason: "is not an intact image", Err: unwrapPath(err), Hint: "remove the file or get it again"}
}

// readImage appends an image of the given size. Its errors are of type *Error.
func readImage(pixels []byte, name string, size [3]int) ([]byte, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return pixels, openError(name, err)
	}
	return decodeImage(pixels, name, data, size)
}

// decodeImage appends an image with the pixels that TensorFlow's decoders give for
// its number of channels, which leave transparency out, brought to a size.
func decodeImage(pixels []byte, name string, data []byte, size [3]int) ([]byte, error) {
	head, e := checkImage(name, data)
	if e != nil {
		return pixels, e
	}
	channels := size[2]
	switch {
	case head.Format == picture.JPEG && head.Channels == 4, head.Format == picture.GIF, head.Format == picture.BMP:
		channels = 3 // which is all that TensorFlow makes of them
	}
	m, err := picture.DecodeFirst(data, channels)
	if err != nil {
		return pixels, imageError(name, err)
	}
	return resize(pixels, m, size), nil
}

// resize appends m, brought to a size: each pixel is the mean of those that it
// covers, each by the part that it covers, where m is larger, and lies between
// its neighbours where m is smaller.
func resize(pixels []byte, m *picture.Image, size [3]int) []byte {
	channels := size[2]
	ys, xs := spans(m.Height, size[0]), spans(m.Width, size[1])
	rows := make([]float64, m.Height*size[1]*channels) // resized across, not yet down
	line := make([]float64, m.Width*channels)
	for y := range m.Height {
		readLine(line, m, y, channels)
		for x, s := range xs {
			for c := range channels {
				rows[(y*size[1]+x)*channels+c] = s.sum(line, c, channels)
			}
		}
	}
	stride := size[1] * channels
	for _, s := range ys {
		for at := range stride {
			pixels = append(pixels, byte(s.sum(rows, at, stride)+0.5))
		}
	}
	return pixels
}

// readLine reads a line of an image as numbers from 0 to 255.
func readLine(line []float64, m *picture.Image, y, channels int) {
	from, n := y*m.Width*m.Channels, m.Width*m.Channels
	switch {
	case m.Bits == 16:
		for i, v := range m.Pix16[from : from+n] {
			line[i] = float64(v >> 8)
		}
	case channels < m.Channels:
		for x := range line {
			p := m.Pix[from+3*x : from+3*x+3]
			line[x] = 0.2989*float64(p[0]) + 0.587*float64(p[1]) + 0.114*float64(p[2])
		}
	default:
		for i, v := range m.Pix[from : from+n] {
			line[i] = float64(v)
		}
	}
}

// span is the source of one pixel along one axis: weights of consecutive
// pixels.
type span struct {
	first   int
	weights []float64 // their sum is 1
}

func (s span) sum(values []float64, offset, stride int) float64 {
	total := 0.0
	for i, w := range s.weights {
		total += w * values[(s.first+i)*stride+offset]
	}
	return total
}

// spans returns the source of each of to pixels along an axis of from pixels.
func spans(from, to int) []span {
	all := make([]span, to)
	scale := float64(from) / float64(to)
	for i := range all {
		low, high := float64(i)*scale, float64(i+1)*scale
		if scale < 1 {
			middle := (low + high) / 2
			low, high = middle-.5, middle+.5
		}
		all[i] = cover(max(low, 0), min(high, float64(from)))
	}
	return all
}

// cover returns how much of each pixel lies between low and high.
func cover(low, high float64) span {
	s := span{first: int(low)}
	for p := s.first; float64(p) < high; p++ {
		part := min(high, float64(p+1)) - max(low, float64(p))
		s.weights = append(s.weights, part/(high-low))
	}
	return s
}
