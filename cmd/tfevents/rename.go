package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbpb"
	"github.com/trainerd/trainerd/tfevents/summary"
)

// Pages find tags by name: the metrics of the HPARAMS page, the charts of CUSTOM
// SCALARS, the parts of a mesh. They would be empty if only the tags were renamed.

// renameTag gives a value the new name of its tag, also where the value repeats it.
func (r *runEditor) renameTag(v *tfpb.Summary_Value, to string) {
	from := v.Tag
	v.Tag = to
	r.Renamed++
	m := v.GetMetadata()
	if m.GetDisplayName() == from {
		m.DisplayName = to
	}
	if m.GetPluginData().GetPluginName() == summary.PluginMesh {
		renameMesh(m.PluginData, from, to)
	}
}

// renameMesh renames the mesh that a tag is a part of, if the tag remains named
// after the mesh and the part.
func renameMesh(data *tfpb.SummaryMetadata_PluginData, from, to string) {
	mesh := new(tbpb.MeshPluginData)
	if proto.Unmarshal(data.GetContent(), mesh) != nil || mesh.Name == "" {
		return
	}
	part, ok := strings.CutPrefix(from, mesh.Name)
	name, same := strings.CutSuffix(to, part)
	if ok && same && part != "" && name != "" {
		mesh.Name = name
		data.Content = tfproto.Marshal(mesh)
	}
}

// renameMentioned renames the tags that a value mentions as those of others.
func (e *edits) renameMentioned(v *tfpb.Summary_Value) (changed bool) {
	if len(e.rename) == 0 {
		return false
	}
	switch v.GetMetadata().GetPluginData().GetPluginName() {
	case summary.PluginHParams:
		return e.renameMetrics(v.Metadata.PluginData)
	case summary.PluginCustomScalars:
		return e.renameCharted(v.GetTensor())
	}
	return false
}

// renameMetrics renames the metrics of an experiment.
func (e *edits) renameMetrics(data *tfpb.SummaryMetadata_PluginData) (changed bool) {
	hparams := new(tbpb.HParamsPluginData)
	if proto.Unmarshal(data.GetContent(), hparams) != nil {
		return false
	}
	for _, m := range hparams.GetExperiment().GetMetricInfos() {
		if name := m.GetName(); name != nil {
			changed = e.renameIn(&name.Tag) || changed
		}
	}
	if changed {
		data.Content = tfproto.Marshal(hparams)
	}
	return changed
}

// renameCharted renames the tags in the layout of charts.
func (e *edits) renameCharted(t *tfpb.TensorProto) (changed bool) {
	if len(t.GetStringVal()) != 1 {
		return false
	}
	layout := new(tbpb.Layout)
	if proto.Unmarshal(t.StringVal[0], layout) != nil {
		return false
	}
	for _, category := range layout.Category {
		for _, chart := range category.Chart {
			changed = e.renameInChart(chart) || changed
		}
	}
	if changed {
		t.StringVal[0] = tfproto.Marshal(layout)
	}
	return changed
}

func (e *edits) renameInChart(chart *tbpb.Chart) (changed bool) {
	if lines := chart.GetMultiline(); lines != nil {
		before := len(lines.Tag)
		for _, from := range slices.Sorted(maps.Keys(e.rename)) {
			if to := e.rename[from]; draws(lines.Tag[:before], from) && !draws(lines.Tag, to) {
				lines.Tag = append(lines.Tag, regexp.QuoteMeta(to)+"$")
			}
		}
		changed = len(lines.Tag) > before
	}
	for _, s := range chart.GetMargin().GetSeries() {
		for _, tag := range []*string{&s.Value, &s.Lower, &s.Upper} {
			changed = e.renameIn(tag) || changed
		}
	}
	return changed
}

// draws reports whether a chart draws a tag: one of its expressions matches where the
// tag begins. All of them stay when a tag is renamed, for they may match others.
func draws(expressions []string, tag string) bool {
	return slices.ContainsFunc(expressions, func(expr string) bool {
		re, err := regexp.Compile("^(?:" + expr + ")")
		return err == nil && re.MatchString(tag)
	})
}

func (e *edits) renameIn(tag *string) bool {
	to, ok := e.rename[*tag]
	if ok {
		*tag = to
	}
	return ok
}
