package dataset

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/internal/picture"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/tfexample"
)

// recordProfile is what was seen of a feature of tf.Example messages.
type recordProfile struct {
	present     int
	kinds       map[string]bool
	least, most int // values of an example; of bytes their length
	example     string
	sizes       [2][]int // heights and widths of images
	grey        bool
	values      []float64 // of a feature of single numbers
}

// recordSurvey reads tf.Example messages.
type recordSurvey struct {
	sample   *Sample
	reader   *recordReader
	features map[string]*recordProfile
}

// sampleRecords reads TFRecord files.
func sampleRecords(ctx context.Context, name, label string, task Task) (*Sample, error) {
	files, err := matching(name)
	if err != nil {
		return nil, err
	}
	v := &recordSurvey{sample: &Sample{Format: FormatTFRecord, File: name}, reader: &recordReader{files: files}, features: make(map[string]*recordProfile)}
	defer v.reader.close()
	for i := range files {
		if err := v.read(ctx, i); err != nil {
			return nil, err
		}
	}
	if v.sample.Rows < 2 {
		return nil, &Error{File: name, Reason: fmt.Sprintf("holds %d examples", v.sample.Rows), Hint: "training needs at least two"}
	}
	if err := v.chooseLabel(label, task); err != nil {
		return nil, err
	}
	return v.sample, v.chooseFeatures()
}

func (v *recordSurvey) read(ctx context.Context, file int) error {
	if err := v.reader.open(file); err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		data, err := v.reader.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		e, err := tfexample.Unmarshal(data)
		if err != nil {
			return v.reader.notExample(err)
		}
		v.sample.Rows++
		for name, f := range e.GetFeatures().GetFeature() {
			p := v.features[name]
			if p == nil {
				p = &recordProfile{kinds: make(map[string]bool), least: -1, grey: true}
				v.features[name] = p
			}
			p.add(f)
		}
	}
}

func (p *recordProfile) add(f *tfpb.Feature) {
	p.present++
	n := 0
	var first string
	switch list := f.GetKind().(type) {
	case *tfpb.Feature_FloatList:
		p.kinds["floats"] = true
		if n = len(list.FloatList.GetValue()); n > 0 {
			first = fmt.Sprint(list.FloatList.GetValue()[0])
			p.number(n, float64(list.FloatList.GetValue()[0]))
		}
	case *tfpb.Feature_Int64List:
		p.kinds["integers"] = true
		if n = len(list.Int64List.GetValue()); n > 0 {
			first = fmt.Sprint(list.Int64List.GetValue()[0])
			p.number(n, float64(list.Int64List.GetValue()[0]))
		}
	case *tfpb.Feature_BytesList:
		for _, b := range list.BytesList.GetValue() {
			n += len(b)
			first = p.bytes(b)
		}
	}
	if p.example == "" {
		p.example = clipPlain(first)
	}
	if p.least < 0 || n < p.least {
		p.least = n
	}
	p.most = max(p.most, n)
}

// number keeps what may be a label.
func (p *recordProfile) number(n int, first float64) {
	if n == 1 {
		p.values = append(p.values, first)
	}
}

func (p *recordProfile) bytes(b []byte) (first string) {
	c, err := picture.ReadConfig(b)
	if err != nil || c.Format != picture.PNG && c.Format != picture.JPEG {
		p.kinds["bytes"] = true
		return strings.Trim(fmt.Sprintf("%q", b[:min(len(b), 20)]), `"`)
	}
	p.kinds["image"] = true
	p.sizes[0], p.sizes[1] = append(p.sizes[0], c.Height), append(p.sizes[1], c.Width)
	p.grey = p.grey && isGrey(c)
	return fmt.Sprintf("%s, %d x %d", strings.ToLower(c.Format.String()), c.Height, c.Width)
}

func (p *recordProfile) kind() string {
	return strings.Join(slices.Sorted(maps.Keys(p.kinds)), " and ")
}

// canBeLabel reports whether each example has one number of the feature.
func (v *recordSurvey) canBeLabel(name string) bool {
	p := v.features[name]
	return p != nil && len(p.values) == v.sample.Rows
}

// chooseLabel takes the feature that is most likely to be predicted.
func (v *recordSurvey) chooseLabel(label string, task Task) error {
	names := slices.Sorted(maps.Keys(v.features))
	candidates := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !v.canBeLabel(n) })
	hint := "name one with --label; the features are " + quoteNames(names)
	if label != "" && !slices.Contains(candidates, label) {
		return &Error{File: v.sample.File, Name: label, Reason: "is not one number in each example", Hint: hint}
	}
	if label == "" {
		label = likelyLabel(candidates)
	}
	if label == "" {
		return &Error{File: v.sample.File, Reason: fmt.Sprintf("%d features are one number in each example, and none is called like a label", len(candidates)), Hint: hint}
	}
	v.sample.Label = label
	p := v.features[label]
	if p.kinds["floats"] {
		if task == Classification {
			return &Error{File: v.sample.File, Name: label, Reason: "the labels are floats, so no classes", Hint: "store classes as an int64_list, or use --task regression"}
		}
		task = Regression
	}
	return v.sample.classify(p.values, task, v.sample.File)
}

// likelyLabel returns the feature called like a label, as in "image/class/label",
// or the only one there is; "" for none.
func likelyLabel(candidates []string) string {
	for _, want := range labelNames {
		for _, name := range candidates {
			if strings.EqualFold(name[strings.LastIndexByte(name, '/')+1:], want) {
				return name
			}
		}
	}
	if len(candidates) == 1 {
		return candidates[0]
	}
	return ""
}

// chooseFeatures says what is done with each feature. Next to an image nothing
// else is learnt from.
func (v *recordSurvey) chooseFeatures() error {
	s := v.sample
	names := slices.Sorted(maps.Keys(v.features))
	for _, name := range names {
		if p := v.features[name]; p.kind() == "image" && len(p.sizes[0]) == s.Rows && s.Image == nil && name != s.Label {
			s.Image = []int{trainingSize(p.sizes[0]), trainingSize(p.sizes[1]), map[bool]int{true: 1, false: 3}[p.grey]}
		}
	}
	for _, name := range names {
		p := v.features[name]
		f := SampleFeature{Name: name, Kind: p.kind(), Shape: p.shape(), Example: p.example}
		if name == s.Label {
			f.Rule = s.labelRule()
		} else {
			f.Rule = v.whyNot(p)
			f.Drop = f.Rule != ""
			v.noteFewLacking(name, p)
		}
		s.Features = append(s.Features, f)
	}
	used := s.Used()
	if len(used) == 0 {
		return &Error{File: s.File, Reason: "no feature is left to learn from", Hint: "examples need numbers, as many in each, or images"}
	}
	s.Bytes = !slices.ContainsFunc(used, func(n string) bool { k := v.features[n].kind(); return k != "bytes" && k != "image" })
	return nil
}

// noteFewLacking notes that a feature is left out for a few examples alone.
func (v *recordSurvey) noteFewLacking(name string, p *recordProfile) {
	const few = 20 // one of so many
	if lack := v.sample.Rows - p.present; lack > 0 && few*lack <= v.sample.Rows && v.sample.Note == "" {
		v.sample.Note = fmt.Sprintf("%s is left out because %d of %d examples lack it; without them it is learnt from", name, lack, v.sample.Rows)
	}
}

func (p *recordProfile) shape() string {
	switch {
	case p.kind() == "image":
		return "1"
	case p.least == p.most:
		return fmt.Sprint(p.most)
	}
	return fmt.Sprintf("%d to %d", p.least, p.most)
}

// fewestBytes is how many make an array of numbers.
const fewestBytes = 16

// whyNot returns why a feature is left out, "" if it is not.
func (v *recordSurvey) whyNot(p *recordProfile) string {
	isImage := p.kind() == "image"
	switch {
	case p.present < v.sample.Rows:
		return fmt.Sprintf("left out: %d examples lack it", v.sample.Rows-p.present)
	case len(p.kinds) > 1:
		return "left out: not of one kind"
	case v.sample.Image != nil && !isImage:
		return "left out: next to the image"
	case isImage:
		return ""
	case p.least != p.most:
		return "left out: not as many in each example"
	case p.most == 0:
		return "left out: empty"
	case p.kind() == "bytes" && p.most < fewestBytes:
		return "left out: a text"
	}
	return ""
}
