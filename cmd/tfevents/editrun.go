package main

import (
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// runEditor applies edits to the files of one run, in their order.
type runEditor struct {
	*edits
	editInfo // what was done
	damage   []error
	thin     *thinner                         // nil if nothing is thinned out
	plugins  map[string]string                // of tags, by their first values
	metadata map[string]*tfpb.SummaryMetadata // of tags whose first values were dropped
}

func (e *edits) newRun() *runEditor {
	return &runEditor{edits: e, plugins: make(map[string]string), metadata: make(map[string]*tfpb.SummaryMetadata)}
}

// survey reads all files of the run to see what thinning leaves of them.
func (r *runEditor) survey(s *source, files []string) error {
	if r.every == 0 && r.most == 0 {
		return nil
	}
	thin := &thinner{every: r.every, most: r.most, tags: make(map[string]*thinned)}
	for _, path := range files {
		_, err := s.eachRecord(path, func(_ int64, data []byte) error {
			event := new(tfpb.Event)
			if proto.Unmarshal(data, event) != nil {
				return nil // which apply reports
			}
			for _, v := range event.GetSummary().GetValue() {
				if r.isStep(v) && !r.deletes(v.Tag) && r.inRange(event.Step) {
					x, ok := decode.Scalar(v)
					thin.add(v.Tag, x, ok && r.plugins[v.Tag] == summary.PluginScalars)
				}
			}
			return nil
		}, func(error) {})
		if err != nil {
			return err
		}
	}
	r.thin = thin
	return nil
}

// copyTo writes what is left of the events of a file.
func (r *runEditor) copyTo(w *tfrecord.Writer, s *source, from string) error {
	out := damagedCopy{w: w}
	_, err := s.eachRecord(from, func(_ int64, data []byte) error {
		if err := out.intact(data); err != nil {
			return err
		}
		data, keep, err := r.apply(data)
		if err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		if !keep {
			return nil
		}
		return w.Write(data)
	}, func(err error) {
		out.damaged()
		r.damage = append(r.damage, err)
	})
	return err
}

// apply returns the changed event, and whether anything is left of it.
func (r *runEditor) apply(data []byte) (out []byte, keep bool, err error) {
	event := new(tfpb.Event)
	if err := proto.Unmarshal(data, event); err != nil {
		return nil, false, fmt.Errorf("a record is not an event: %w; repair the file first", err)
	}
	if isGraph(event) && r.deletes(decode.RunGraphTag) {
		r.Deleted++
		return nil, false, nil
	}
	step := event.Step
	changed, err := r.shiftStep(event)
	if err != nil {
		return nil, false, err
	}
	changed = r.shiftTime(event) || changed
	if s := event.GetSummary(); s != nil {
		before := len(s.Value)
		changed = r.editValues(s, step) || changed
		if before > 0 && len(s.Value) == 0 {
			return nil, false, nil
		}
	}
	if m := event.GetTaggedRunMetadata(); m != nil {
		edited, keep := r.editRunMetadata(m, step)
		if !keep {
			return nil, false, nil
		}
		changed = changed || edited
	}
	if changed {
		data = tfproto.Marshal(event)
	}
	return data, true, nil
}

// isGraph reports whether an event is one of the graphs of a run: some programs write
// it again with each checkpoint, which makes most of large files.
func isGraph(event *tfpb.Event) bool {
	switch event.GetWhat().(type) {
	case *tfpb.Event_GraphDef, *tfpb.Event_MetaGraphDef:
		return true
	}
	return false
}

func (r *runEditor) editRunMetadata(m *tfpb.TaggedRunMetadata, step int64) (changed, keep bool) {
	switch to, ok := r.rename[m.Tag]; {
	case !ok && r.deletes(m.Tag):
		r.Deleted++
		return false, false
	case !r.inRange(step):
		r.Cut++
		return false, false
	case ok:
		m.Tag = to
		r.Renamed++
		return true, true
	}
	return false, true
}

func (r *runEditor) shiftStep(event *tfpb.Event) (bool, error) {
	if r.shift == 0 || isGraph(event) || event.GetFileVersion() != "" {
		return false, nil
	}
	if r.shift > 0 && event.Step > math.MaxInt64-r.shift || r.shift < 0 && event.Step < math.MinInt64-r.shift {
		return false, fmt.Errorf("step %d cannot be shifted by %d", event.Step, r.shift)
	}
	event.Step += r.shift
	r.Shifted++
	return true, nil
}

// shiftTime leaves events alone that have no time.
func (r *runEditor) shiftTime(event *tfpb.Event) bool {
	if r.later == 0 || event.WallTime == 0 {
		return false
	}
	event.WallTime += r.later.Seconds()
	r.Retimed++
	return true
}

func (r *runEditor) editValues(s *tfpb.Summary, step int64) (changed bool) {
	before := len(s.Value)
	s.Value = slices.DeleteFunc(s.Value, func(v *tfpb.Summary_Value) bool { return r.drops(v, step) })
	changed = len(s.Value) < before
	for _, v := range s.Value {
		changed = r.restoreMetadata(v) || changed
		changed = r.rescale(v) || changed
		changed = r.renameMentioned(v) || changed
		if to, ok := r.rename[v.Tag]; ok {
			r.renameTag(v, to)
			changed = true
		}
	}
	return changed
}

// drops reports whether a value is left out, and counts it.
func (r *runEditor) drops(v *tfpb.Summary_Value, step int64) bool {
	isStep := r.isStep(v)
	switch {
	case r.deletes(v.Tag):
		r.Deleted++
		return true
	case !isStep:
		return false
	case !r.inRange(step):
		r.Cut++
	case !r.thin.keeps(v.Tag):
		r.Thinned++
	default:
		return false
	}
	if v.Metadata != nil && r.metadata[v.Tag] == nil {
		r.metadata[v.Tag] = v.Metadata
	}
	return true
}

// restoreMetadata gives a value the metadata of its tag if the value that carried
// it has been left out.
func (r *runEditor) restoreMetadata(v *tfpb.Summary_Value) bool {
	m := r.metadata[v.Tag]
	if m == nil {
		return false
	}
	r.metadata[v.Tag] = nil
	if v.Metadata != nil || v.GetTensor() == nil {
		return false
	}
	v.Metadata = m
	return true
}

// ofRun are the plugins whose values describe a run and no step of it: they are
// neither cut nor thinned out.
var ofRun = []string{
	summary.PluginGraphs, summary.PluginRunMetadata, summary.PluginRunMetadataGraph, summary.PluginKerasModel,
	summary.PluginTaggedRunMetadata, summary.PluginHParams, summary.PluginCustomScalars,
}

// isStep reports whether a value belongs to a step. It must see all values of the
// run: the first of a tag says what it is.
func (r *runEditor) isStep(v *tfpb.Summary_Value) bool {
	plugin, known := r.plugins[v.Tag]
	if !known {
		plugin = decode.ModernValue(v).GetMetadata().GetPluginData().GetPluginName()
		r.plugins[v.Tag] = plugin
	}
	return !slices.Contains(ofRun, plugin)
}

// rescale changes the value of a scalar as --scale and --offset say.
func (r *runEditor) rescale(v *tfpb.Summary_Value) bool {
	if len(r.scales) == 0 && len(r.offsets) == 0 || r.plugins[v.Tag] != summary.PluginScalars {
		return false
	}
	x, ok := decode.Scalar(v)
	if !ok {
		return false
	}
	matched := false
	for _, s := range r.scales {
		if s.tags.MatchString(v.Tag) {
			x, matched = x*s.number, true
		}
	}
	for _, o := range r.offsets {
		if o.tags.MatchString(v.Tag) {
			x, matched = x+o.number, true
		}
	}
	if matched {
		setScalar(v, x)
		r.Rescaled++
	}
	return matched
}

// setScalar sets a scalar in the form that it has. Integers become float32.
func setScalar(v *tfpb.Summary_Value, x float64) {
	t := v.GetTensor()
	if t == nil {
		v.Value = &tfpb.Summary_Value_SimpleValue{SimpleValue: float32(x)}
		return
	}
	to := &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: t.TensorShape, FloatVal: []float32{float32(x)}}
	if t.Dtype == tfpb.DataType_DT_DOUBLE {
		to = &tfpb.TensorProto{Dtype: t.Dtype, TensorShape: t.TensorShape, DoubleVal: []float64{x}}
	}
	v.Value = &tfpb.Summary_Value_Tensor{Tensor: to}
}
