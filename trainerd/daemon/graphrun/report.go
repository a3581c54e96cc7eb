package graphrun

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/internal/opdef"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/runtime"
)

// Report is what a MetaGraphDef needs and offers. Its JSON is an interface
// for scripts.
type Report struct {
	File              string                `json:"file"`
	TensorFlowVersion string                `json:"tensorflow_version"`
	Nodes             int                   `json:"nodes"`
	Functions         int                   `json:"functions"`
	Placeholders      []Tensor              `json:"placeholders"` // to be fed
	Variables         []Variable            `json:"variables"`
	VariableElements  int64                 `json:"variable_elements"` // of all variables whose shape is known
	Ops               map[string]int        `json:"ops"`               // nodes by op
	Unsupported       []Unsupported         `json:"unsupported"`       // what the embedded runtime has no kernel for
	Signatures        []Signature           `json:"signatures"`        // of a SavedModel, by key
	TrainOp           string                `json:"train_op"`          // "" for none, as those below
	InitOp            string                `json:"init_op"`
	LocalInitOp       string                `json:"local_init_op"`
	ReadyOp           string                `json:"ready_op"`
	SummaryOp         string                `json:"summary_op"`
	GlobalStep        string                `json:"global_step"`
	Savers            []Saver               `json:"savers"`
	QueueRunners      []QueueRunner         `json:"queue_runners"`
	Collections       map[string]Collection `json:"collections"`
}

// Tensor describes a tensor.
type Tensor struct {
	Name  string  `json:"name"`
	DType string  `json:"dtype"`
	Shape []int64 `json:"shape"` // -1 for a dimension that is not known, null when none is
}

// Variable describes a variable.
type Variable struct {
	Tensor           // Name is the one that a checkpoint has
	Elements  *int64 `json:"elements"` // null when it is not known
	Trainable bool   `json:"trainable"`
	Local     bool   `json:"local"` // set up again at every start, in no checkpoint
	Resource  bool   `json:"resource"`
}

// Unsupported is a node that the embedded runtime has no kernel for.
type Unsupported struct {
	Node   string `json:"node"`
	Op     string `json:"op"`
	Reason string `json:"reason,omitempty"` // "" when the op is not known at all
}

// Saver names the tensors and the op of a saver.
type Saver struct {
	Filename string `json:"filename"`
	Save     string `json:"save"`
	Restore  string `json:"restore"`
}

// QueueRunner names what fills a queue.
type QueueRunner struct {
	Queue   string   `json:"queue"`
	Enqueue []string `json:"enqueue"`
	Close   string   `json:"close"`
	Cancel  string   `json:"cancel"`
}

// Collection is a collection: how many items it has, and those that JSON
// can show. Messages are counted alone.
type Collection struct {
	Kind   string `json:"kind"` // "nodes", "bytes", "ints", "floats" or "any"
	Count  int    `json:"count"`
	Values any    `json:"values,omitempty"`
}

// Inspect reports on the MetaGraphDef in a file.
func Inspect(name string) (*Report, error) {
	g, err := loadGraph(name)
	if err != nil {
		return nil, err
	}
	def := g.Meta.GetGraphDef()
	r := &Report{
		File:              name,
		TensorFlowVersion: g.Meta.GetMetaInfoDef().GetTensorflowVersion(),
		Nodes:             len(def.GetNode()),
		Functions:         len(def.GetLibrary().GetFunction()),
		Placeholders:      []Tensor{},
		Ops:               g.Ops(),
		InitOp:            g.InitOp(),
		LocalInitOp:       g.LocalInitOp(),
		ReadyOp:           g.ReadyOp(),
		SummaryOp:         g.SummaryOp(),
		Collections:       map[string]Collection{},
	}
	r.TrainOp, _ = g.trainOp()
	for _, p := range g.placeholders {
		r.Placeholders = append(r.Placeholders, newTensor(p.Name, p.DType, p.Shape))
	}
	if _, variable, ok := g.GlobalStep(); ok {
		r.GlobalStep = variable
	}
	r.addVariables(g.Graph)
	for _, name := range g.Collections() {
		r.Collections[name] = newCollection(g.Meta.GetCollectionDef()[name])
	}
	r.addSignatures(g.Meta)
	if err := r.addParts(g.Graph); err != nil {
		return nil, &program.FileError{File: name, Err: err}
	}
	return r, nil
}

func newTensor(name string, dt tfpb.DataType, shape graph.Shape) Tensor {
	t := Tensor{Name: name, DType: dtype.Name(dt)}
	if !shape.UnknownRank {
		t.Shape = append([]int64{}, shape.Dims...)
	}
	return t
}

func (r *Report) addVariables(g *graph.Graph) {
	trainable := map[string]bool{}
	for _, v := range g.TrainableVariables() {
		trainable[v.Name()] = true
	}
	r.Variables = []Variable{}
	seen := map[string]bool{}
	add := func(refs []graph.VariableRef, local bool) {
		for _, ref := range refs {
			if seen[ref.Name()] {
				continue // programs may add a variable to a collection twice
			}
			seen[ref.Name()] = true
			v := Variable{Tensor: newTensor(ref.Name(), ref.DType, ref.Shape),
				Trainable: trainable[ref.Name()], Local: local, Resource: ref.Def.GetIsResource()}
			if n, ok := ref.Shape.NumElements(); ok {
				v.Elements = &n
				r.VariableElements += n
			}
			r.Variables = append(r.Variables, v)
		}
	}
	add(g.Variables(), false)
	add(g.LocalVariables(), true)
	if len(r.Variables) == 0 {
		r.addHandles(g.Meta.GetGraphDef())
	}
}

// addHandles adds the variables of a graph of TensorFlow 2, which has no collection
// of them: their handles.
func (r *Report) addHandles(def *tfpb.GraphDef) {
	for _, n := range def.GetNode() {
		if n.GetOp() != "VarHandleOp" {
			continue
		}
		shape := graph.ShapeFromProto(opdef.Attr(n, "shape").GetShape())
		v := Variable{Tensor: newTensor(n.GetName(), opdef.Attr(n, "dtype").GetType(), shape), Resource: true}
		if elements, ok := shape.NumElements(); ok {
			v.Elements = &elements
			r.VariableElements += elements
		}
		r.Variables = append(r.Variables, v)
	}
}

// addParts adds what may turn out to be faulty.
func (r *Report) addParts(g *graph.Graph) error {
	savers, err := g.Savers()
	if err != nil {
		return err
	}
	r.Savers = []Saver{}
	for _, s := range savers {
		r.Savers = append(r.Savers, Saver{s.GetFilenameTensorName(), s.GetSaveTensorName(), s.GetRestoreOpName()})
	}
	runners, err := g.QueueRunners()
	if err != nil {
		return err
	}
	r.QueueRunners = []QueueRunner{}
	for _, q := range runners {
		r.QueueRunners = append(r.QueueRunners, QueueRunner{q.GetQueueName(), q.GetEnqueueOpName(), q.GetCloseOpName(), q.GetCancelOpName()})
	}
	sess, err := runtime.New(g.Meta.GetGraphDef(), nil)
	if err != nil {
		return err
	}
	defer sess.Close()
	r.Unsupported = []Unsupported{}
	for _, e := range sess.Unsupported() {
		r.Unsupported = append(r.Unsupported, Unsupported{e.Node, e.Op, e.Message})
	}
	return nil
}

func newCollection(c *tfpb.CollectionDef) Collection {
	switch v := c.GetKind().(type) {
	case *tfpb.CollectionDef_NodeList_:
		list := v.NodeList.GetValue()
		return Collection{"nodes", len(list), list}
	case *tfpb.CollectionDef_BytesList_:
		return Collection{"bytes", len(v.BytesList.GetValue()), nil}
	case *tfpb.CollectionDef_Int64List_:
		list := v.Int64List.GetValue()
		return Collection{"ints", len(list), list}
	case *tfpb.CollectionDef_FloatList_:
		return Collection{"floats", len(v.FloatList.GetValue()), nil}
	}
	return Collection{"any", len(c.GetAnyList().GetValue()), nil}
}

// WriteJSON writes the report as one JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteText writes the report for a person.
func (r *Report) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	version := ""
	if r.TensorFlowVersion != "" {
		version = ", made by TensorFlow " + r.TensorFlowVersion
	}
	fmt.Fprintf(t, "graph: %s, %d nodes of %d ops%s\n", r.File, r.Nodes, len(r.Ops), version)
	r.textSignatures(t)
	r.textTensors(t)
	r.textOps(t)
	return t.Flush()
}

func (r *Report) textTensors(w io.Writer) {
	fmt.Fprintf(w, "\nplaceholders: %d\n", len(r.Placeholders))
	for _, p := range r.Placeholders {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", p.Name, p.DType, shapeOf(p))
	}
	fmt.Fprintf(w, "\nvariables: %d, %d elements\n", len(r.Variables), r.VariableElements)
	for _, v := range r.Variables {
		fmt.Fprintf(w, "  %s\t%s\t%s", v.Name, v.DType, shapeOf(v.Tensor))
		if notes := v.notes(); notes != "" {
			fmt.Fprintf(w, "\t%s", notes)
		}
		fmt.Fprintln(w)
	}
}

func shapeOf(t Tensor) string {
	return graph.Shape{Dims: t.Shape, UnknownRank: t.Shape == nil}.String()
}

func (v Variable) notes() string {
	var notes []string
	if v.Trainable {
		notes = append(notes, "trainable")
	}
	if v.Local {
		notes = append(notes, "local")
	}
	return strings.Join(notes, ", ")
}

func (r *Report) textOps(w io.Writer) {
	if len(r.Unsupported) == 0 {
		fmt.Fprintf(w, "\nunsupported: nothing; the embedded runtime has all ops\n")
	} else {
		fmt.Fprintf(w, "\nunsupported: %d nodes of ops that the embedded runtime does not have\n", len(r.Unsupported))
	}
	for _, u := range r.Unsupported {
		fmt.Fprintf(w, "  %s\t%s", u.Node, u.Op)
		if u.Reason != "" {
			fmt.Fprintf(w, "\t%s", u.Reason)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, "\noffers:")
	for _, o := range [][2]string{
		{"train_op", r.TrainOp}, {"init_op", r.InitOp}, {"local_init_op", r.LocalInitOp},
		{"ready_op", r.ReadyOp}, {"summary_op", r.SummaryOp}, {"global_step", r.GlobalStep},
	} {
		if o[1] != "" {
			fmt.Fprintf(w, "  %s\t%s\n", o[0], o[1])
		}
	}
	for _, s := range r.Savers {
		fmt.Fprintf(w, "  saver\t%s, restores with %s\n", s.Save, s.Restore)
	}
	for _, q := range r.QueueRunners {
		fmt.Fprintf(w, "  queue runner\t%s, filled by %s\n", q.Queue, strings.Join(q.Enqueue, ", "))
	}
	fmt.Fprintf(w, "\ncollections: %d\n", len(r.Collections))
	for _, name := range slices.Sorted(maps.Keys(r.Collections)) {
		c := r.Collections[name]
		fmt.Fprintf(w, "  %s\t%s\n", name, c.text())
	}
}

func (c Collection) text() string {
	if names, ok := c.Values.([]string); ok && len(names) <= maxOffers {
		return strings.Join(names, ", ")
	}
	if c.Kind == "nodes" {
		return fmt.Sprintf("%d nodes", c.Count)
	}
	return fmt.Sprintf("%d items (%s)", c.Count, c.Kind)
}
