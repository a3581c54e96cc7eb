package model

import (
	"encoding/json"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// TensorFlow's names for the signature of a model that serves requests.
const (
	// ServingKey names it.
	ServingKey = "serving_default"
	// PredictMethod is its method name.
	PredictMethod = "tensorflow/serving/predict"
)

// The outputs of the signature.
const (
	// OutputPrediction is the number that a model of the linear family predicts,
	// float32 [batch].
	OutputPrediction = "prediction"
	// OutputProbabilities has the probability of each class, float32 [batch,
	// classes].
	OutputProbabilities = "probabilities"
	// OutputClasses is the most probable class, int64 [batch].
	OutputClasses = "classes"
	// OutputClassNames is its name, string [batch], of classes with names.
	OutputClassNames = "class_names"
)

// SchemaKey is the collection with the [dataset.Schema] of the examples, in JSON.
const SchemaKey = "trainerd_schema"

// SchemaOf returns the schema of the examples that a MetaGraph was made for, nil
// if it has none.
func SchemaOf(meta *tfpb.MetaGraphDef) (*dataset.Schema, error) {
	all := meta.GetCollectionDef()[SchemaKey].GetBytesList().GetValue()
	if len(all) == 0 {
		return nil, nil
	}
	s := new(dataset.Schema)
	return s, json.Unmarshal(all[0], s)
}

// input adds x. Where columns have words, it is made of one input for each
// column, unless it is fed itself.
func (m *maker) input(t tfpb.DataType, shape graph.Shape) graph.Output {
	b := m.b
	if m.data == nil || !m.data.Schema.HasWords() {
		x := b.Placeholder("x", t, shape)
		m.takes = map[string]graph.Output{"x": x}
		return x
	}
	m.takes = make(map[string]graph.Output)
	columns := make([]graph.Output, len(m.data.Schema.Features))
	var rows graph.Output
	b.Scope("serving", func() {
		names := InputNames(&m.data.Schema)
		for i, f := range m.data.Schema.Features {
			columns[i] = m.column(names[i], f, i)
		}
		rows = m.join(columns)
	})
	return b.PlaceholderWithDefault("x", rows, shape)
}

// join makes rows of columns: of one number in each row, or of several as texts have.
func (m *maker) join(columns []graph.Output) graph.Output {
	b := m.b
	if !slices.ContainsFunc(columns, func(c graph.Output) bool { return c.Shape().Rank() > 1 }) {
		return b.StackColumns("stack", columns...)
	}
	for i, c := range columns {
		if c.Shape().Rank() == 1 {
			columns[i] = b.ExpandLast("column", c)
		}
	}
	return b.ConcatColumns("rows", columns...)
}

// column adds the input of one column, and returns it as a raw row has it.
func (m *maker) column(key string, f dataset.Feature, i int) graph.Output {
	b, t := m.b, tfpb.DataType_DT_FLOAT
	if f.HasWords() {
		t = tfpb.DataType_DT_STRING
	}
	name := nodeName(f, i)
	in := b.Placeholder(name, t, graph.MakeShape(-1))
	m.takes[key] = in
	switch f.Kind {
	case dataset.KindText:
		return m.findWords(name, f, in)
	case dataset.KindCategory:
		table, _ := b.Vocabulary(name+"_vocabulary", f.Vocabulary)
		return b.Cast(name+"_index", b.Find(name+"_lookup", table, in), tfpb.DataType_DT_FLOAT)
	}
	return in
}

// answerClasses adds what the signature answers about classes.
func (m *maker) answerClasses(probabilities, classes graph.Output) {
	m.gives = map[string]graph.Output{OutputProbabilities: probabilities, OutputClasses: classes}
	if m.data == nil || len(m.data.Schema.Label.Vocabulary) != m.cfg.Classes {
		return
	}
	b := m.b
	b.Scope("predictions/", func() {
		names := b.Const("class_names", literal.Strings(m.data.Schema.Label.Vocabulary...))
		m.gives[OutputClassNames] = b.Elements("class_name", names, classes)
	})
}

// sign writes the signature and the schema into the MetaGraph.
func (m *maker) sign(meta *tfpb.MetaGraphDef) error {
	meta.SignatureDef = map[string]*tfpb.SignatureDef{ServingKey: {
		Inputs: tensorInfos(m.takes), Outputs: tensorInfos(m.gives), MethodName: PredictMethod,
	}}
	if m.data == nil {
		return nil
	}
	text, err := json.Marshal(m.data.Schema)
	if err != nil {
		return err
	}
	meta.CollectionDef[SchemaKey] = &tfpb.CollectionDef{
		Kind: &tfpb.CollectionDef_BytesList_{BytesList: &tfpb.CollectionDef_BytesList{Value: [][]byte{text}}},
	}
	return nil
}

func tensorInfos(all map[string]graph.Output) map[string]*tfpb.TensorInfo {
	infos := make(map[string]*tfpb.TensorInfo, len(all))
	for key, t := range all {
		infos[key] = &tfpb.TensorInfo{
			Encoding: &tfpb.TensorInfo_Name{Name: t.Name()}, Dtype: t.DType(), TensorShape: t.Shape().Proto(),
		}
	}
	return infos
}
