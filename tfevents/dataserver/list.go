package dataserver

import (
	"context"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbdata"
	"github.com/trainerd/trainerd/tfevents"
)

func (s *Server) getExperiment(context.Context, *tbdata.GetExperimentRequest) (*tbdata.GetExperimentResponse, error) {
	return &tbdata.GetExperimentResponse{DataLocation: s.o.Logdir}, nil
}

func (s *Server) listPlugins(ctx context.Context, _ *tbdata.ListPluginsRequest, budget *budget) (*tbdata.ListPluginsResponse, error) {
	answer := new(tbdata.ListPluginsResponse)
	seen := make(map[string]struct{})
	for _, name := range s.store.sorted() {
		var failed error
		s.store.view(name, func(x *tfevents.RunData) {
			for _, series := range x.Series {
				plugin := series.Plugin()
				if _, ok := seen[plugin]; ok || series.Metadata.GetDataClass() == tfpb.DataClass_DATA_CLASS_UNKNOWN {
					continue
				}
				if failed = budget.take(ctx, entrySize+len(plugin)); failed != nil {
					return
				}
				seen[plugin] = struct{}{}
				answer.Plugins = append(answer.Plugins, &tbdata.Plugin{Name: plugin})
			}
		})
		if failed != nil {
			return nil, failed
		}
	}
	return answer, nil
}

func (s *Server) listRuns(ctx context.Context, _ *tbdata.ListRunsRequest, budget *budget) (*tbdata.ListRunsResponse, error) {
	answer := new(tbdata.ListRunsResponse)
	for _, name := range s.store.sorted() {
		if err := budget.take(ctx, entrySize+len(name)); err != nil {
			return nil, err
		}
		s.store.view(name, func(x *tfevents.RunData) {
			answer.Runs = append(answer.Runs, &tbdata.Run{Name: name, StartTime: x.Began})
		})
	}
	return answer, nil
}

func (s *Server) listScalars(ctx context.Context, req *tbdata.ListScalarsRequest, budget *budget) (*tbdata.ListScalarsResponse, error) {
	sel, err := newSelection(req, tfpb.DataClass_DATA_CLASS_SCALAR)
	if err != nil {
		return nil, err
	}
	answer := new(tbdata.ListScalarsResponse)
	err = s.store.each(ctx, sel, budget, func(run string, _ *tfevents.RunData, series []*tfevents.Series) error {
		entry := &tbdata.ListScalarsResponse_RunEntry{RunName: run}
		for _, x := range series {
			step, wall := x.Max()
			if err := budget.take(ctx, entrySize+len(x.Tag)+proto.Size(x.Metadata)); err != nil {
				return err
			}
			entry.Tags = append(entry.Tags, &tbdata.ListScalarsResponse_TagEntry{TagName: x.Tag,
				Metadata: &tbdata.ScalarMetadata{MaxStep: step, MaxWallTime: wall, SummaryMetadata: metadata(x)}})
		}
		answer.Runs = append(answer.Runs, entry)
		return nil
	})
	return answer, err
}

func (s *Server) listTensors(ctx context.Context, req *tbdata.ListTensorsRequest, budget *budget) (*tbdata.ListTensorsResponse, error) {
	sel, err := newSelection(req, tfpb.DataClass_DATA_CLASS_TENSOR)
	if err != nil {
		return nil, err
	}
	answer := new(tbdata.ListTensorsResponse)
	err = s.store.each(ctx, sel, budget, func(run string, _ *tfevents.RunData, series []*tfevents.Series) error {
		entry := &tbdata.ListTensorsResponse_RunEntry{RunName: run}
		for _, x := range series {
			step, wall := x.Max()
			if err := budget.take(ctx, entrySize+len(x.Tag)+proto.Size(x.Metadata)); err != nil {
				return err
			}
			entry.Tags = append(entry.Tags, &tbdata.ListTensorsResponse_TagEntry{TagName: x.Tag,
				Metadata: &tbdata.TensorMetadata{MaxStep: step, MaxWallTime: wall, SummaryMetadata: metadata(x)}})
		}
		answer.Runs = append(answer.Runs, entry)
		return nil
	})
	return answer, err
}

func (s *Server) listBlobSequences(ctx context.Context, req *tbdata.ListBlobSequencesRequest, budget *budget) (*tbdata.ListBlobSequencesResponse, error) {
	sel, err := newSelection(req, tfpb.DataClass_DATA_CLASS_BLOB_SEQUENCE)
	if err != nil {
		return nil, err
	}
	answer := new(tbdata.ListBlobSequencesResponse)
	err = s.store.each(ctx, sel, budget, func(run string, _ *tfevents.RunData, series []*tfevents.Series) error {
		entry := &tbdata.ListBlobSequencesResponse_RunEntry{RunName: run}
		for _, x := range series {
			step, wall := x.Max()
			if err := budget.take(ctx, entrySize+len(x.Tag)+proto.Size(x.Metadata)); err != nil {
				return err
			}
			entry.Tags = append(entry.Tags, &tbdata.ListBlobSequencesResponse_TagEntry{TagName: x.Tag,
				Metadata: &tbdata.BlobSequenceMetadata{MaxStep: step, MaxWallTime: wall,
					MaxLength: int64(x.MaxBlobs()), SummaryMetadata: metadata(x)}})
		}
		answer.Runs = append(answer.Runs, entry)
		return nil
	})
	return answer, err
}
