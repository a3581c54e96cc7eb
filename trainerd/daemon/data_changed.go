package daemon

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/inspect"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/metagraph"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/model"
)

// savedModel is what the newest readable checkpoint of a logdir knows about the
// data that it was trained with.
type savedModel struct {
	prefix string
	values map[string][]float64 // of the statistics in it, by variable
	meta   *tfpb.MetaGraphDef   // nil if there is none, or it cannot be read
}

// DataChangedError says that a job cannot resume because its data are others.
type DataChangedError struct {
	Checkpoint string
	Reason     string // what differs
	Hint       string
}

func (e *DataChangedError) Error() string {
	return fmt.Sprintf("the data have changed since %s: %s; %s", filepath.Base(e.Checkpoint), e.Reason, e.Hint)
}

// newestSaved returns what the newest readable checkpoint of the logdir knows, or nil if there is
// none. Damaged ones are left for the run to find and report.
func newestSaved(c *config.Config, names []string) *savedModel {
	found, err := checkpoint.Find(c.Logdir, checkpoint.DefaultLatestFilename, c.Supervisor.CheckpointBasename)
	if err != nil {
		return nil
	}
	for _, prefix := range found.Prefixes {
		if s := readSaved(prefix, names); s != nil {
			return s
		}
	}
	return nil
}

// readSaved returns what a checkpoint knows, nil if it cannot be read.
func readSaved(prefix string, names []string) *savedModel {
	r, err := ckptfmt.Open(prefix, nil)
	if err != nil {
		return nil
	}
	defer r.Close()
	s := &savedModel{prefix: prefix, values: make(map[string][]float64), meta: savedMeta(prefix)}
	for _, name := range names {
		t, err := r.Lookup(name)
		if errors.Is(err, ckptfmt.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil
		}
		numbers, err := inspect.NumbersOf(t)
		if err != nil {
			return nil
		}
		for i := range numbers.Len() {
			s.values[name] = append(s.values[name], numbers.At(i))
		}
	}
	return s
}

// schema returns the schema of the data, or nil if the checkpoint does not have it.
func (s *savedModel) schema() *dataset.Schema {
	schema, _ := model.SchemaOf(s.meta)
	return schema
}

// savedMeta returns the MetaGraph of a checkpoint, nil if there is none, or it cannot be read.
func savedMeta(prefix string) *tfpb.MetaGraphDef {
	wire, err := metagraph.ReadSavedMessage(layout.MetaName(prefix))
	if err != nil {
		return nil
	}
	meta := new(tfpb.MetaGraphDef)
	if proto.Unmarshal(wire, meta) != nil {
		return nil
	}
	return meta
}

// check returns an error if the model was trained with other data than it would
// be now.
func (s *savedModel) check(c *config.Config, built *model.Model, d *model.Data, names []string) error {
	schema := s.schema()
	if schema != nil {
		if reason := schemaChange(schema, &d.Schema); reason != "" {
			return &DataChangedError{s.prefix, reason, "use the data that it was trained with, or another logdir"}
		}
	}
	if c.Data.KeepStatistics || c.IsWarm() { // those of a warm start are of other data
		return nil
	}
	g, err := graph.Parse(built.Meta)
	if err != nil {
		return err
	}
	for _, name := range names {
		was, ok := s.values[name]
		if !ok {
			continue
		}
		if reason := valuesChange(g, name, was, &d.Schema); reason != "" {
			return &DataChangedError{s.prefix, reason,
				"use the same data.file, split and seed, or another logdir; with data.keep_statistics = true the training continues with the checkpoint's"}
		}
	}
	if schema == nil {
		return nil
	}
	if reason := splitChange(schema.Split, d.Schema.Split); reason != "" {
		return &DataChangedError{s.prefix, reason,
			"use the same data.file, split and seed, or another logdir; with data.keep_statistics = true the training continues all the same"}
	}
	return nil
}

// schemaChange says how the columns differ, "" if they do not.
func schemaChange(was, is *dataset.Schema) string {
	if len(was.Features) != len(is.Features) {
		return fmt.Sprintf("they had %d features, and have %d", len(was.Features), len(is.Features))
	}
	for i := range was.Features {
		a, b := was.Features[i], is.Features[i]
		switch {
		case a.Name != b.Name:
			return fmt.Sprintf("feature %d was the column %q, and is %q", i, a.Name, b.Name)
		case a.Name == "" && a.Column != b.Column:
			return fmt.Sprintf("feature %d was the column %d, and is %d", i, a.Column, b.Column)
		case a.Kind != b.Kind:
			return fmt.Sprintf("%s was a %s, and is a %s", columnName(b, i), a.Kind, b.Kind)
		case a.Unit != b.Unit && a.Unit != "" && b.Unit != "": // numbers without one are of any
			return fmt.Sprintf("%s was in %s, and is in %s", columnName(b, i), a.Unit, b.Unit)
		case !slices.Equal(a.Parts, b.Parts):
			return fmt.Sprintf("the parts of the dates in %s were %q, and are %q", columnName(b, i), a.Parts, b.Parts)
		case a.IsList() != b.IsList():
			return fmt.Sprintf("the texts of %s had up to %d words, and have up to %d", columnName(b, i), a.Length, b.Length)
		case !slices.Equal(a.Vocabulary, b.Vocabulary):
			return fmt.Sprintf("the words of %s were %s, and are %s", columnName(b, i), someWords(a.Vocabulary), someWords(b.Vocabulary))
		}
	}
	switch a, b := was.Label, is.Label; {
	case a.Name != b.Name && a.Name != "" && b.Name != "": // one that is known by its index, or by default, has none
		return fmt.Sprintf("the label was the column %q, and is %q", a.Name, b.Name)
	case a.Name == "" && b.Name == "" && a.Column != b.Column:
		return fmt.Sprintf("the label was the column %d, and is %d", a.Column, b.Column)
	case a.Unit != b.Unit && a.Unit != "" && b.Unit != "":
		return fmt.Sprintf("the label was in %s, and is in %s", a.Unit, b.Unit)
	}
	if !slices.Equal(was.Label.Vocabulary, is.Label.Vocabulary) {
		return fmt.Sprintf("the classes were %s, and are %s", someWords(was.Label.Vocabulary), someWords(is.Label.Vocabulary))
	}
	return ""
}

// splitChange says why rows that have trained may be in the test part now, which makes the
// model look better than it is; "" if none is.
func splitChange(was, is *dataset.Split) string {
	const leak = ", so that some which have trained may be in the test part"
	switch {
	case was == nil || is == nil || is.Tests == 0 || *was == *is:
		return ""
	case !was.Shuffled && !is.Shuffled && is.Rows-is.Tests >= was.Rows-was.Tests:
		return "" // the first rows train, and more of them
	case was.Rows != is.Rows || was.Tests != is.Tests:
		return fmt.Sprintf("%d of %d rows were for testing, and %d of %d are"+leak, was.Tests, was.Rows, is.Tests, is.Rows)
	case was.Seed != is.Seed && was.Shuffled && is.Shuffled:
		return fmt.Sprintf("the test rows were chosen with data.seed = %d, and are with %d"+leak, was.Seed, is.Seed)
	}
	return "the test rows were chosen with another data.shuffle or data.shuffle_buffer" + leak
}

func columnName(f dataset.Feature, i int) string {
	if f.Name == "" {
		return fmt.Sprintf("feature %d", i)
	}
	return fmt.Sprintf("the column %q", f.Name)
}

// someWords lists the first few words.
func someWords(words []string) string {
	const few, longest = 5, 100
	text := strings.Join(words[:min(few, len(words))], ", ")
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "")
	}
	if len(words) > few {
		text += ", ..."
	}
	return fmt.Sprintf("%d (%s)", len(words), text)
}

// valuesChange says how the initial value of a variable differs from the saved
// one, "" if it does not.
func valuesChange(g *graph.Graph, name string, was []float64, schema *dataset.Schema) string {
	n, err := g.Node(name + "/Initializer/initial_value")
	if err != nil {
		return ""
	}
	is := n.GetAttr()["value"].GetTensor().GetFloatVal()
	if len(is) != len(was) {
		return fmt.Sprintf("%s had %d numbers, and has %d", name, len(was), len(is))
	}
	for i := range is {
		if float64(is[i]) != was[i] {
			return fmt.Sprintf("%s was %.6g, and is %.6g", statisticName(name, i, schema), was[i], is[i])
		}
	}
	return ""
}

func statisticName(name string, i int, schema *dataset.Schema) string {
	if strings.HasPrefix(name, "label/") || strings.HasPrefix(name, "tfidf/") {
		return name
	}
	numbers := slices.DeleteFunc(slices.Clone(schema.Features), func(f dataset.Feature) bool { return f.HasWords() })
	if i >= len(numbers) {
		return name
	}
	return fmt.Sprintf("%s of %s", name, columnName(numbers[i], i))
}
