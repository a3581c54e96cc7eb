package graphrun

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/metagraph"
	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/predict"
	"github.com/trainerd/trainerd/trainerd/savedmodel"
)

// readMeta reads a MetaGraphDef, that of a SavedModel, or a GraphDef, such as a
// frozen graph, as one without collections.
func readMeta(name string) (*tfpb.MetaGraphDef, error) {
	if savedmodel.Is(name) {
		return savedmodel.Read(name)
	}
	meta, err := metagraph.ReadShared(name)
	if err == nil && len(meta.GetGraphDef().GetNode()) > 0 {
		return meta, nil
	}
	if plain := readGraphDef(name); plain != nil {
		return &tfpb.MetaGraphDef{GraphDef: plain}, nil
	}
	return meta, err
}

// readGraphDef reads a GraphDef in binary or text form, nil if a file does not hold one.
func readGraphDef(name string) *tfpb.GraphDef {
	data, err := metagraph.ReadMessage(name)
	if err != nil {
		return nil
	}
	def := new(tfpb.GraphDef)
	if proto.Unmarshal(data, def) != nil {
		def = new(tfpb.GraphDef)
		if tfproto.UnmarshalText(data, def) != nil {
			return nil
		}
	}
	if slices.ContainsFunc(def.GetNode(), func(n *tfpb.NodeDef) bool { return n.GetName() == "" || n.GetOp() == "" }) || len(def.GetNode()) == 0 {
		return nil // another message
	}
	return def
}

// inference runs a signature of a SavedModel.
type inference struct {
	*run
	model *predict.Model
}

// runSavedModel loads a SavedModel and runs a signature: feeds and fetches are
// named by its inputs and outputs, or by tensors.
func runSavedModel(ctx context.Context, o *Options) error {
	for flag, set := range map[string]bool{"--restore": o.Restore != "", "--save": o.Save != "", "--feeds": o.Feeds != "", "--target": len(o.Target) > 0, "--master": o.Master != ""} {
		if set {
			return argumentErrorf("%s is not for a SavedModel, which is used and not trained", flag)
		}
	}
	g, err := loadGraph(o.File)
	if err != nil {
		return err
	}
	m, err := predict.Open(ctx, o.File, predict.Options{Signature: o.Signature, MaxMemory: o.MaxMemory, MemoryOption: memoryFlag})
	if err != nil {
		return err
	}
	defer m.Close()
	in := &inference{run: &run{Options: o, g: g, steps: max(o.Steps, 1)}, model: m}
	if err := in.prepare(); err != nil {
		return err
	}
	for ; in.done < in.steps && ctx.Err() == nil; in.done++ {
		out, err := m.Fetch(ctx, in.feeds.fixed, in.fetches)
		if err != nil {
			return fmt.Errorf("step %d: %w", in.done, err)
		}
		print := in.printText
		if o.JSON {
			print = in.printJSON
		}
		if err := print(out); err != nil {
			return err
		}
	}
	in.report(ctx)
	return nil
}

// prepare finds the tensors of what is fed and fetched.
func (in *inference) prepare() error {
	inputs, outputs := in.model.Signature.GetInputs(), in.model.Signature.GetOutputs()
	in.feeds = &feeder{fixed: make(map[string]*ckptfmt.Tensor)}
	in.g.aliases = make(map[string]string)
	for key, t := range inputs {
		in.g.aliases[key] = t.GetName()
	}
	for _, assignment := range in.Feed {
		if err := in.feeds.addFile(in.g, assignment); err != nil {
			return err
		}
	}
	for key, t := range outputs {
		in.g.aliases[key] = t.GetName() // an output may have the name of an input
	}
	if len(in.Fetch) == 0 {
		in.Fetch = slices.Sorted(maps.Keys(outputs))
	}
	for _, name := range in.Fetch {
		tensor, err := in.g.tensor("--fetch", name)
		if err != nil {
			return err
		}
		in.fetches = append(in.fetches, tensor)
	}
	return in.missing(inputs)
}

// missing reports the inputs that the fetches need and that are not fed.
func (in *inference) missing(inputs map[string]*tfpb.TensorInfo) error {
	g, err := graph.Parse(in.model.Meta)
	if err != nil {
		return err
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(inputs)) {
		tensor := inputs[key].GetName()
		node := graph.NodeName(tensor)
		if in.feeds.fixed[tensor] != nil || !g.Needs(in.fetches, node, slices.Collect(maps.Keys(in.feeds.fixed))) {
			continue
		}
		errs = append(errs, &FeedError{Source: in.File, Key: key, Err: fmt.Errorf("the input is not fed; type --feed %s=FILE.npy", key)})
	}
	return errors.Join(errs...)
}
