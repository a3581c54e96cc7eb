package main

import (
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbpb"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
)

// page is what one of TensorBoard's pages needs of the series that it shows.
type page struct {
	class   tfpb.DataClass
	content func() versioned // the message in the metadata
	braces  bool             // "{}", as old writers have it, stands for no content
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

// formProblem says why a series, or some of its points, are not shown at all.
func formProblem(s *tfevents.Series) string {
	if s.Plugin() == "" && s.Metadata.GetDataClass() == tfpb.DataClass_DATA_CLASS_UNKNOWN {
		return "names no plugin: no page shows it"
	}
	if s.Metadata.GetDataClass() == tfpb.DataClass_DATA_CLASS_UNKNOWN {
		return fmt.Sprintf("plugin %q is not one of TensorBoard's own, and the tag has no data class: the data server does not show it", s.Plugin())
	}
	if p, known := pages[s.Plugin()]; known {
		if problem := p.metadataProblem(s); problem != "" {
			return problem
		}
		if p.tensor != nil {
			return p.tensorProblem(s)
		}
	}
	if s.Metadata.GetDataClass() == tfpb.DataClass_DATA_CLASS_SCALAR {
		return scalarProblem(s)
	}
	return ""
}

// metadataProblem says why the page does not take the series for one of its own.
func (p *page) metadataProblem(s *tfevents.Series) string {
	if class := s.Metadata.GetDataClass(); class != p.class {
		return fmt.Sprintf("its data class is %s, the page of plugin %q looks for %s: it is not shown", className(class), s.Plugin(), className(p.class))
	}
	content := s.Metadata.GetPluginData().GetContent()
	if p.braces && string(content) == "{}" {
		return ""
	}
	m := p.content()
	if err := proto.Unmarshal(content, m); err != nil {
		return fmt.Sprintf("its plugin data is not that of plugin %q: the whole page fails, for all runs; delete the tag with `tfevents edit`", s.Plugin())
	}
	if v := m.GetVersion(); v != 0 {
		return fmt.Sprintf("its plugin data has version %d, TensorBoard knows 0: it is not shown", v)
	}
	if mesh, ok := m.(*tbpb.MeshPluginData); ok && len(mesh.GetShape()) == 0 {
		return fmt.Sprintf("its plugin data has no shape: the whole page of plugin %q fails, for all runs; delete the tag with `tfevents edit`", s.Plugin())
	}
	return ""
}

// className is a data class in the words of the format.
func className(c tfpb.DataClass) string { return strings.TrimPrefix(c.String(), "DATA_CLASS_") }

// tensorProblem says what is wrong with points of the series, by the first that
// the page cannot show.
func (p *page) tensorProblem(s *tfevents.Series) string {
	what, n := "", 0
	for _, point := range s.Points {
		t := summary.ModernValue(point.Value).GetTensor()
		if t == nil {
			continue
		}
		if problem := p.tensor(t); problem != "" && (what == "" || problem == what) {
			what = problem
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d points %s", n, len(s.Points), what)
}

// scalarProblem says what is wrong with points of scalars. Both loaders show a
// simple_value.
func scalarProblem(s *tfevents.Series) string {
	odd, none := 0, 0
	for _, p := range s.Points {
		t := p.Value.GetTensor()
		if t == nil {
			continue
		}
		if _, ok := summary.ScalarOf(p.Value); !ok {
			none++
		} else if t.GetDtype() != tfpb.DataType_DT_FLOAT || len(t.GetTensorShape().GetDim()) > 0 {
			odd++
		}
	}
	switch n := len(s.Points); {
	case none > 0:
		return fmt.Sprintf("%d of %d points are not single numbers: the Python loader fails to show the tag, the data server leaves them out", none, n)
	case odd > 0:
		return fmt.Sprintf("%d of %d points are not single float32 values: the data server does not show them", odd, n)
	}
	return ""
}

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
