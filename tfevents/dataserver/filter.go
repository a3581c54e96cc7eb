package dataserver

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbdata"
	"github.com/trainerd/trainerd/tfevents"
)

// selection is what a request selects.
type selection struct {
	plugin string
	class  tfpb.DataClass
	runs   map[string]struct{} // nil: all
	tags   map[string]struct{} // nil: all
}

// filtered is a request for series.
type filtered interface {
	GetPluginFilter() *tbdata.PluginFilter
	GetRunTagFilter() *tbdata.RunTagFilter
}

func newSelection(req filtered, class tfpb.DataClass) (*selection, error) {
	s := &selection{plugin: req.GetPluginFilter().GetPluginName(), class: class}
	if s.plugin == "" {
		return nil, status.Error(codes.InvalidArgument, "plugin_filter is missing, or names no plugin")
	}
	if f := req.GetRunTagFilter().GetRuns(); f != nil {
		s.runs = set(f.GetNames())
	}
	if f := req.GetRunTagFilter().GetTags(); f != nil {
		s.tags = set(f.GetNames())
	}
	return s, nil
}

func set(names []string) map[string]struct{} {
	m := make(map[string]struct{}, len(names))
	for _, n := range names {
		m[n] = struct{}{}
	}
	return m
}

func picks(names map[string]struct{}, name string) bool {
	_, ok := names[name]
	return ok || names == nil
}

// takes reports whether the series is of the selected plugin and class.
func (s *selection) takes(x *tfevents.Series) bool {
	return x.Metadata.GetDataClass() == s.class && x.Plugin() == s.plugin && picks(s.tags, x.Tag)
}

// each calls f with the selected series of each run that has any, in the order
// of the runs' names, if there is room for one in the answer. The index does not change until
// f returns.
func (s *store) each(ctx context.Context, sel *selection, budget *budget, f func(run string, x *tfevents.RunData, series []*tfevents.Series) error) error {
	var failed error
	for _, name := range s.sorted() {
		if !picks(sel.runs, name) {
			continue
		}
		s.view(name, func(x *tfevents.RunData) {
			series := slices.DeleteFunc(slices.Clone(x.Series), func(s *tfevents.Series) bool { return !sel.takes(s) })
			if len(series) == 0 {
				return
			}
			if failed = budget.take(ctx, entrySize+len(name)); failed == nil {
				failed = f(name, x, series)
			}
		})
		if failed != nil {
			return failed
		}
	}
	return nil
}

// metadata returns the metadata of a series as TensorBoard's data server does: with a display name
// only if the writer gave one.
func metadata(x *tfevents.Series) *tfpb.SummaryMetadata {
	m := x.Metadata
	if x.HasDisplayName() || m.GetDisplayName() == "" {
		return m
	}
	return &tfpb.SummaryMetadata{PluginData: m.PluginData, SummaryDescription: m.SummaryDescription, DataClass: m.DataClass}
}

// limit returns how many points of a series may be in an answer.
func (s *Server) limit(sel *selection, d *tbdata.Downsample) (int, error) {
	if d == nil {
		return 0, status.Error(codes.InvalidArgument, "downsample is missing")
	}
	n := d.GetNumPoints()
	if n < 0 {
		return 0, status.Errorf(codes.InvalidArgument, "downsample.num_points is %d; want 0 or more", n)
	}
	if most, ok := s.o.Samples[sel.plugin]; ok && most >= 0 {
		n = min(n, int64(most))
	}
	return int(min(n, maxPoints)), nil
}

// maxPoints keeps a limit an int everywhere.
const maxPoints = 1 << 30
