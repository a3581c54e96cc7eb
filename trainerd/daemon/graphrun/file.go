package graphrun

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/internal/lazyregexp"
	"github.com/trainerd/trainerd/internal/opdef"
	"github.com/trainerd/trainerd/internal/shell"
	"github.com/trainerd/trainerd/internal/spelling"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/graph"
)

// ArgumentError says that what was asked for does not fit the graph.
type ArgumentError struct{ Reason string }

func (e *ArgumentError) Error() string { return e.Reason }

func argumentErrorf(format string, args ...any) error {
	return &ArgumentError{fmt.Sprintf(format, args...)}
}

// graphFile is a MetaGraphDef as it was read, indexed.
type graphFile struct {
	*graph.Graph
	name         string
	placeholders []graph.Placeholder
	aliases      map[string]string // tensors by their names in a signature; may be nil
}

// loadGraph reads a MetaGraphDef in binary or text form.
func loadGraph(name string) (*graphFile, error) {
	meta, err := readMeta(name)
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return nil, err
	case err != nil:
		return nil, &program.FileError{File: name, Err: withoutFile(err)}
	}
	g, err := graph.Parse(meta)
	if err != nil {
		return nil, &program.FileError{File: name, Err: err}
	}
	return &graphFile{Graph: g, name: name, placeholders: g.Placeholders()}, nil
}

// withoutFile returns what a reader found, without the file's name, which the
// message around it has.
func withoutFile(err error) error {
	var corrupt *ckptfmt.CorruptError
	if errors.As(err, &corrupt) && corrupt.Err != nil {
		return corrupt.Err
	}
	return err
}

// tensor returns the canonical name, "node:output", of the tensor that a user
// may have named without the output.
func (g *graphFile) tensor(flag, name string) (string, error) {
	if alias := g.aliases[name]; alias != "" {
		name = alias
	}
	t, err := graph.ParseTensorName(name)
	if err != nil || t.Control {
		return "", argumentErrorf("%s %s: not the name of a tensor, such as loss or loss:0", flag, name)
	}
	n, err := g.Node(name)
	if err != nil {
		return "", argumentErrorf("%s %s: %s has no node %s%s", flag, name, g.name, t.Node, g.didYouMean(t.Node))
	}
	if hasNoValue(n.GetOp()) {
		return "", argumentErrorf("%s %s: the op has no value; to run it, type --target %s", flag, name, t.Node)
	}
	if outputs, err := opdef.Outputs(n); opdef.Lookup(n.GetOp()) != nil && err == nil && t.Index >= len(outputs) {
		return "", argumentErrorf("%s %s: node %s (%s) has %d outputs, the last one %s:%d", flag, name, t.Node, n.GetOp(), len(outputs), t.Node, len(outputs)-1)
	}
	return t.Tensor(), nil
}

// fetched is tensor for a tensor to fetch: the name of a resource variable, of
// which the tensor is only a handle, means its value.
func (g *graphFile) fetched(flag, name string) (string, error) {
	tensor, err := g.tensor(flag, name)
	if err != nil {
		return "", err
	}
	for _, v := range append(g.Variables(), g.LocalVariables()...) {
		if def := v.Def; def.GetIsResource() && def.GetVariableName() == tensor && def.GetSnapshotName() != "" {
			return def.GetSnapshotName(), nil
		}
	}
	return tensor, nil
}

// shapeOf returns the shape of a tensor as the export says it.
func (g *graphFile) shapeOf(tensor string) graph.Shape {
	t, err := graph.ParseTensorName(tensor)
	if err != nil {
		return graph.UnknownShape
	}
	n, err := g.Node(tensor)
	shapes := n.GetAttr()["_output_shapes"].GetList().GetShape()
	if err != nil || t.Index >= len(shapes) {
		return graph.UnknownShape
	}
	return graph.ShapeFromProto(shapes[t.Index])
}

// opsWithoutValue matches the common ops that have no output.
var opsWithoutValue = lazyregexp.New(`^(NoOp|Assert|SaveV2|MergeV2Checkpoints|Assign(Add|Sub)?VariableOp|Resource(Sparse)?Apply.*|ResourceScatter.*|` +
	`Queue(Enqueue|EnqueueMany|Close)(V2)?|InitializeTable.*|LookupTableImport(V2)?)$`)

func hasNoValue(op string) bool { return opsWithoutValue().MatchString(op) }

// op returns the name of the node that a user may have named by its output.
func (g *graphFile) op(flag, name string) (string, error) {
	t, err := graph.ParseTensorName(name)
	if err != nil || t.Control {
		return "", argumentErrorf("%s %s: not the name of an op, such as train", flag, name)
	}
	if _, err := g.Node(name); err != nil {
		return "", argumentErrorf("%s %s: %s has no node %s%s", flag, name, g.name, t.Node, g.didYouMean(t.Node))
	}
	return t.Node, nil
}

// didYouMean ends a message about an unknown node with the names nearest to it.
func (g *graphFile) didYouMean(unknown string) string {
	near := nearest(unknown, g.nodeNames())
	if len(near) == 0 {
		return fmt.Sprintf("; type `trainerd graph %s` for what there is", shell.Quote(g.name))
	}
	return fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
}

func (g *graphFile) nodeNames() []string {
	var names []string
	for _, n := range g.Meta.GetGraphDef().GetNode() {
		names = append(names, n.GetName())
	}
	return names
}

// maxNearest is how many names a hint lists.
const maxNearest = 3

// nearest returns the names that an unknown one may have been meant to be, the
// likeliest first: those that take few changed letters, as a whole or in the
// last part, and those that have it as their last part.
func nearest(unknown string, names []string) []string {
	type candidate struct {
		name        string
		cost, whole int
	}
	var list []candidate
	base := lastPart(unknown)
	for _, name := range names {
		whole := spelling.Distance(strings.ToLower(unknown), strings.ToLower(name))
		part := 1 + spelling.Distance(strings.ToLower(base), strings.ToLower(lastPart(name)))
		if cost := min(whole, part); cost <= spelling.MaxDistance(base) {
			list = append(list, candidate{name, cost, whole})
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.whole, b.whole))
	})
	var near []string
	for _, c := range list[:min(len(list), maxNearest)] {
		near = append(near, c.name)
	}
	return near
}

func lastPart(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// needed returns the placeholders that computing the named tensors, and running
// the named nodes ("^node"), takes when some tensors are fed, in the graph's
// order.
func (g *graphFile) needed(fed map[string]bool, names []string) []graph.Placeholder {
	if !slices.ContainsFunc(g.placeholders, func(p graph.Placeholder) bool { return !fed[p.Name] }) {
		return nil
	}
	reached := map[string]bool{}
	g.walk(fed, names, func(n *tfpb.NodeDef) bool {
		reached[n.GetName()] = true
		return true
	})
	var list []graph.Placeholder
	for _, p := range g.placeholders {
		if !fed[p.Name] && reached[program.NodeOf(p.Name)] {
			list = append(list, p)
		}
	}
	return list
}

// walk calls visit once for each node that computing the named tensors, and running the
// named nodes ("^node"), takes when some tensors are fed. What a node needs in turn is
// visited if visit returns true for it.
func (g *graphFile) walk(fed map[string]bool, names []string, visit func(*tfpb.NodeDef) bool) {
	seen := map[string]bool{}
	for stack := slices.Clone(names); len(stack) > 0; {
		t, err := graph.ParseTensorName(stack[len(stack)-1])
		stack = stack[:len(stack)-1]
		if err != nil || !t.Control && fed[t.Tensor()] || seen[t.Node] {
			continue
		}
		seen[t.Node] = true
		if n, err := g.Node(t.Node); err == nil && visit(n) {
			stack = append(stack, n.GetInput()...)
		}
	}
}

// unknownRank reports whether a placeholder's empty shape means that nothing is
// known of it: producers up to version 21 wrote no other.
func (g *graphFile) unknownRank(p graph.Placeholder) bool {
	const firstStrict = 22
	return p.Shape.Rank() == 0 && g.Meta.GetGraphDef().GetVersions().GetProducer() < firstStrict
}

// checkFeed says whether a value of a type and shape can be fed to a tensor.
func (g *graphFile) checkFeed(tensor string, dt tfpb.DataType, shape []int64) error {
	i := slices.IndexFunc(g.placeholders, func(p graph.Placeholder) bool { return p.Name == tensor })
	if i < 0 {
		return nil // the runtime knows
	}
	p := g.placeholders[i]
	fits := p.Shape.UnknownRank || g.unknownRank(p) || len(p.Shape.Dims) == len(shape)
	for i, d := range p.Shape.Dims {
		fits = fits && (d < 0 || d == shape[i])
	}
	if fits && (p.DType == dt || p.DType == tfpb.DataType_DT_INVALID || narrows(p.DType, dt)) {
		return nil
	}
	return fmt.Errorf("the value is %s %v, the placeholder %s takes %s",
		dtype.Name(dt), graph.MakeShape(shape...), tensor, describePlaceholder(p))
}

func describePlaceholder(p graph.Placeholder) string {
	return fmt.Sprintf("%s %v", dtype.Name(p.DType), p.Shape)
}

// CheckFile returns what is wrong with the graph of a job, as far as it can
// be known without the data.
func CheckFile(c *config.Config) error {
	if !c.IsGraph() {
		return nil
	}
	_, err := loadGraph(c.Graph.Meta)
	return err
}
