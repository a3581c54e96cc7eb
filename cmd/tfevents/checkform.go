package main

import (
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbpb"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
)

// page is what one of TensorBoard's pages needs of the series that it shows.
type page struct {
	class   tfpb.DataClass
	content func() versioned // the message in the metadata
	braces  bool             // "{}", as old writers have it, means no content
	// tensor says what is wrong with a value, in words that follow a number
	// of points; "" if nothing is.
	tensor func(*tfpb.TensorProto) string
}

// versioned is plugin data. No page knows another version than 0.
type versioned interface {
	proto.Message
	GetVersion() int32
}

var pages = map[string]page{
	summary.PluginScalars: {
		class: tfpb.DataClass_DATA_CLASS_SCALAR, content: func() versioned { return new(tbpb.ScalarPluginData) },
	},
	summary.PluginHistograms: {
		class: tfpb.DataClass_DATA_CLASS_TENSOR, content: func() versioned { return new(tbpb.HistogramPluginData) },
		braces: true, tensor: histogramProblem,
	},
	summary.PluginImages: {
		class: tfpb.DataClass_DATA_CLASS_BLOB_SEQUENCE, content: func() versioned { return new(tbpb.ImagePluginData) },
		tensor: imageProblem,
	},
	summary.PluginAudio: {
		class: tfpb.DataClass_DATA_CLASS_BLOB_SEQUENCE, content: func() versioned { return new(tbpb.AudioPluginData) },
		tensor: audioProblem,
	},
	summary.PluginText: {
		class: tfpb.DataClass_DATA_CLASS_TENSOR, content: func() versioned { return new(tbpb.TextPluginData) },
		braces: true, tensor: textProblem,
	},
	summary.PluginPRCurves: {
		class: tfpb.DataClass_DATA_CLASS_TENSOR, content: func() versioned { return new(tbpb.PrCurvePluginData) },
		tensor: curveProblem,
	},
	summary.PluginMesh: {
		class: tfpb.DataClass_DATA_CLASS_TENSOR, content: func() versioned { return new(tbpb.MeshPluginData) },
	},
}

// valueProblem says why a series, or some of its points, are not shown at all.
func (s *checkedSeries) valueProblem() (string, error) {
	class := s.metadata.GetDataClass()
	if s.plugin() == "" && class == tfpb.DataClass_DATA_CLASS_UNKNOWN {
		return "names no plugin: no page shows it", nil
	}
	if class == tfpb.DataClass_DATA_CLASS_UNKNOWN {
		return fmt.Sprintf("plugin %q is not one of TensorBoard's own, and the tag has no data class: the data server does not show it", s.plugin()), nil
	}
	p, known := pages[s.plugin()]
	if known {
		if problem := p.metadataProblem(s.metadata); problem != "" {
			return problem, nil
		}
	}
	if s.plain {
		return "", nil // no rule finds anything in such values
	}
	count := oddValues{series: s, tensor: p.tensor}
	for v, err := range s.values {
		if err != nil {
			return "", err
		}
		count.add(v)
	}
	return count.problem(), nil
}

// oddValues counts the values of a series that the pages do not show as they were
// meant.
type oddValues struct {
	series *checkedSeries
	tensor func(*tfpb.TensorProto) string // of the page, if it has rules

	what        string // is wrong, by the rules of the page
	unshown     int    // values with which that is wrong
	none, wide  int    // scalars that are not single numbers, or not float32
	foreign     int    // scalars of types that no loader reads
	otherPlugin int    // values of another kind than the first
}

func (o *oddValues) add(v *tfpb.Summary_Value) {
	t := v.GetTensor()
	bare := v.GetMetadata() == nil && t != nil // of the kind that was said before
	modern := decode.ModernValue(v)
	if name := modern.GetMetadata().GetPluginData().GetPluginName(); !bare && name != "" && name != o.series.plugin() {
		o.otherPlugin++
	}
	if o.series.metadata.GetDataClass() == tfpb.DataClass_DATA_CLASS_SCALAR && t != nil { // both loaders show a simple_value
		if _, ok := decode.Scalar(v); !ok {
			o.none++
		} else if !pythonReads(t) {
			o.foreign++
		} else if t.GetDtype() != tfpb.DataType_DT_FLOAT || len(t.GetTensorShape().GetDim()) > 0 {
			o.wide++
		}
	}
	if o.tensor == nil || modern.GetTensor() == nil {
		return
	}
	if problem := o.tensor(modern.GetTensor()); problem != "" && (o.what == "" || problem == o.what) {
		o.what = problem
		o.unshown++
	}
}

// pythonReads reports whether the Python loader makes a number of a tensor that holds one.
func pythonReads(t *tfpb.TensorProto) bool {
	switch t.GetDtype() {
	case tfpb.DataType_DT_BFLOAT16:
		return false
	case tfpb.DataType_DT_UINT32, tfpb.DataType_DT_UINT64:
		return len(t.GetTensorContent()) > 0
	}
	return true
}

func (o *oddValues) problem() string {
	switch n := o.series.points; {
	case o.unshown > 0:
		return fmt.Sprintf("%d of %d points %s", o.unshown, n, o.what)
	case o.none > 0:
		return fmt.Sprintf("%d of %d points are not single numbers: the Python loader fails to show the tag, the data server leaves them out", o.none, n)
	case o.foreign > 0:
		return fmt.Sprintf("%d of %d points are of a type that no loader reads (bfloat16, uint32, uint64): the Python loader fails to show the tag, the data server leaves them out; write float32", o.foreign, n)
	case o.wide > 0:
		return fmt.Sprintf("%d of %d points are not single float32 values: the data server does not show them", o.wide, n)
	case o.otherPlugin > 0:
		return fmt.Sprintf("%d of %d points are of another kind than the first, which sets the plugin to %q: they are not shown; give them a tag of their own", o.otherPlugin, n, o.series.plugin())
	}
	return ""
}

// metadataProblem says why the page does not take the series for one of its own.
func (p *page) metadataProblem(m *tfpb.SummaryMetadata) string {
	plugin := m.GetPluginData().GetPluginName()
	if class := m.GetDataClass(); class != p.class {
		return fmt.Sprintf("its data class is %s, the page of plugin %q looks for %s: it is not shown", className(class), plugin, className(p.class))
	}
	content := m.GetPluginData().GetContent()
	if p.braces && string(content) == "{}" {
		return ""
	}
	data := p.content()
	if err := proto.Unmarshal(content, data); err != nil {
		return fmt.Sprintf("its plugin data is not that of plugin %q: the whole page fails, for all runs; delete the tag with `tfevents edit`", plugin)
	}
	if v := data.GetVersion(); v != 0 {
		return fmt.Sprintf("its plugin data has version %d, TensorBoard knows 0: it is not shown", v)
	}
	if mesh, ok := data.(*tbpb.MeshPluginData); ok && len(mesh.GetShape()) == 0 {
		return fmt.Sprintf("its plugin data has no shape: the whole page of plugin %q fails, for all runs; delete the tag with `tfevents edit`", plugin)
	}
	return ""
}

// className is a data class in the words of the format.
func className(c tfpb.DataClass) string { return strings.TrimPrefix(c.String(), "DATA_CLASS_") }

func histogramProblem(t *tfpb.TensorProto) string {
	dims := t.GetTensorShape().GetDim()
	if len(dims) == 2 && dims[1].GetSize() == 3 && t.GetDtype() != tfpb.DataType_DT_STRING {
		return ""
	}
	return "have no rows of three numbers (left, right, count): the page cannot draw them"
}

// leadingStrings are the width and the height before the images of a tensor.
const leadingStrings = 2

func imageProblem(t *tfpb.TensorProto) string {
	if !isStrings(t, 1) || len(t.GetStringVal()) < leadingStrings {
		return "are not lists of width, height and images: they are not shown"
	}
	for _, image := range t.GetStringVal()[leadingStrings:] {
		if !isImage(image) {
			return "hold an image in no format that browsers show"
		}
	}
	return ""
}

// isImage reports whether b begins as an image for browsers. Those made of text
// begin in many ways.
func isImage(b []byte) bool {
	kind := http.DetectContentType(b)
	return strings.HasPrefix(kind, "image/") || strings.HasPrefix(kind, "text/xml") || strings.Contains(string(b[:min(len(b), 512)]), "<svg")
}

func audioProblem(t *tfpb.TensorProto) string {
	dims := t.GetTensorShape().GetDim()
	withLabels := isStrings(t, 2) && dims[1].GetSize() == 2
	switch {
	case !withLabels && !isStrings(t, 1):
		return "are not lists of clips: the data server does not show them"
	case len(t.GetStringVal()) == 0:
		return "hold no clip: the page fails to show the tag"
	}
	return ""
}

func textProblem(t *tfpb.TensorProto) string {
	if t.GetDtype() != tfpb.DataType_DT_STRING {
		return "are not texts: the page fails to show the tag"
	}
	for _, text := range t.GetStringVal() {
		if !utf8.Valid(text) {
			return "hold a text that is not UTF-8: the page fails to show the tag"
		}
	}
	return ""
}

// curveRows are those of a PR curve: true and false positives, true and false
// negatives, precision, recall.
const curveRows = 6

func curveProblem(t *tfpb.TensorProto) string {
	if dims := t.GetTensorShape().GetDim(); len(dims) == 2 && dims[0].GetSize() >= curveRows {
		return ""
	}
	return "are not curves of six rows: the page fails to show the tag"
}

// isStrings reports whether a tensor holds strings in so many dimensions.
func isStrings(t *tfpb.TensorProto, rank int) bool {
	return t.GetDtype() == tfpb.DataType_DT_STRING && len(t.GetTensorShape().GetDim()) == rank
}
