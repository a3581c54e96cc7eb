package dataserver

import (
	"context"
	"math"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbdata"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
)

func (s *Server) readScalars(ctx context.Context, req *tbdata.ReadScalarsRequest, budget *budget) (*tbdata.ReadScalarsResponse, error) {
	sel, err := newSelection(req, tfpb.DataClass_DATA_CLASS_SCALAR)
	if err != nil {
		return nil, err
	}
	limit, err := s.limit(sel, req.GetDownsample())
	if err != nil {
		return nil, err
	}
	answer := new(tbdata.ReadScalarsResponse)
	err = s.store.each(ctx, sel, budget, func(run string, x *tfevents.RunData, series []*tfevents.Series) error {
		entry := &tbdata.ReadScalarsResponse_RunEntry{RunName: run}
		for _, one := range series {
			if err := budget.need(one.Len() * heldScalar); err != nil {
				return err
			}
			data := s.scalars(ctx, x, one, limit)
			if err := budget.take(ctx, len(data.Step)*scalarSize); err != nil {
				return err
			}
			entry.Tags = append(entry.Tags, &tbdata.ReadScalarsResponse_TagEntry{TagName: one.Tag, Data: data})
		}
		answer.Runs = append(answer.Runs, entry)
		return nil
	})
	return answer, err
}

// scalars returns the points of a series, at most the given number, or only some of them once ctx
// has ended.
func (s *Server) scalars(ctx context.Context, x *tfevents.RunData, series *tfevents.Series, limit int) *tbdata.ScalarData {
	n := series.Len()
	data := &tbdata.ScalarData{Step: make([]int64, 0, n), WallTime: make([]float64, 0, n), Value: make([]float32, 0, n)}
	if limit == 0 {
		return data
	}
	var before tfevents.Point
	for p := range series.Points() {
		v, ok := p.Scalar()
		if !ok {
			if ctx.Err() != nil {
				break
			}
			if v, ok = s.otherScalar(x, p); !ok {
				continue
			}
		}
		last := len(data.Step) - 1
		replaces := last >= 0 && p.Replaces(before)
		before = p
		if replaces {
			data.WallTime[last], data.Value[last] = p.WallTime, float32(v)
			continue
		}
		data.Step = append(data.Step, p.Step)
		data.WallTime = append(data.WallTime, p.WallTime)
		data.Value = append(data.Value, float32(v))
	}
	thinScalars(data, limit)
	return data
}

// otherScalar reads a scalar that the index does not hold: one of another type.
func (s *Server) otherScalar(x *tfevents.RunData, p tfevents.Point) (float64, bool) {
	v, err := x.Value(p)
	if err != nil {
		s.o.Logger.Debug("reading a scalar", "run", x.Name, "step", p.Step, "error", err)
		return 0, false
	}
	return decode.Scalar(v)
}

func (s *Server) readTensors(ctx context.Context, req *tbdata.ReadTensorsRequest, budget *budget) (*tbdata.ReadTensorsResponse, error) {
	sel, err := newSelection(req, tfpb.DataClass_DATA_CLASS_TENSOR)
	if err != nil {
		return nil, err
	}
	limit, err := s.limit(sel, req.GetDownsample())
	if err != nil {
		return nil, err
	}
	answer := new(tbdata.ReadTensorsResponse)
	err = s.store.each(ctx, sel, budget, func(run string, x *tfevents.RunData, series []*tfevents.Series) error {
		entry := &tbdata.ReadTensorsResponse_RunEntry{RunName: run}
		for _, one := range series {
			data, err := s.tensors(ctx, x, one, limit, budget)
			if err != nil {
				return err
			}
			entry.Tags = append(entry.Tags, &tbdata.ReadTensorsResponse_TagEntry{TagName: one.Tag, Data: data})
		}
		answer.Runs = append(answer.Runs, entry)
		return nil
	})
	return answer, err
}

// tensors reads the values of a series, at most the given number.
func (s *Server) tensors(ctx context.Context, x *tfevents.RunData, series *tfevents.Series, limit int, budget *budget) (*tbdata.TensorData, error) {
	steps, err := pointsOf(series, limit, budget)
	if err != nil {
		return nil, err
	}
	data := new(tbdata.TensorData)
	err = s.eachStep(x, steps, func(p tfevents.Point, v *tfpb.Summary_Value) (shown bool, err error) {
		t, ok := tensorOf(v)
		if !ok {
			return false, nil
		}
		data.Step = append(data.Step, p.Step)
		data.WallTime = append(data.WallTime, p.WallTime)
		data.Value = append(data.Value, t)
		return true, budget.take(ctx, proto.Size(t))
	})
	return data, err
}

func (s *Server) readBlobSequences(ctx context.Context, req *tbdata.ReadBlobSequencesRequest, budget *budget) (*tbdata.ReadBlobSequencesResponse, error) {
	sel, err := newSelection(req, tfpb.DataClass_DATA_CLASS_BLOB_SEQUENCE)
	if err != nil {
		return nil, err
	}
	limit, err := s.limit(sel, req.GetDownsample())
	if err != nil {
		return nil, err
	}
	answer := new(tbdata.ReadBlobSequencesResponse)
	err = s.store.each(ctx, sel, budget, func(run string, x *tfevents.RunData, series []*tfevents.Series) error {
		entry := &tbdata.ReadBlobSequencesResponse_RunEntry{RunName: run}
		for _, one := range series {
			data, err := s.blobs(ctx, req.GetExperimentId(), x, one, limit, budget)
			if err != nil {
				return err
			}
			entry.Tags = append(entry.Tags, &tbdata.ReadBlobSequencesResponse_TagEntry{TagName: one.Tag, Data: data})
		}
		answer.Runs = append(answer.Runs, entry)
		return nil
	})
	return answer, err
}

// blobs names the blobs of a series, of at most the given number of points.
func (s *Server) blobs(ctx context.Context, experiment string, x *tfevents.RunData, series *tfevents.Series, limit int, budget *budget) (*tbdata.BlobSequenceData, error) {
	steps, err := pointsOf(series, limit, budget)
	if err != nil {
		return nil, err
	}
	data, several := new(tbdata.BlobSequenceData), repeatedSteps(series)
	err = s.eachStep(x, steps, func(p tfevents.Point, v *tfpb.Summary_Value) (shown bool, err error) {
		blobs := decode.Blobs(v)
		if blobs == nil {
			return false, nil
		}
		refs := new(tbdata.BlobReferenceSequence)
		for at := range blobs {
			key := blobKey{experiment, x.Name, series.Tag, p.Step, at, 0}
			if several[p.Step] {
				key.wall = math.Float64bits(p.WallTime)
			}
			text := key.String()
			if err := budget.take(ctx, len(text)); err != nil {
				return false, err
			}
			refs.BlobRefs = append(refs.BlobRefs, &tbdata.BlobReference{BlobKey: text})
		}
		data.Step = append(data.Step, p.Step)
		data.WallTime = append(data.WallTime, p.WallTime)
		data.Values = append(data.Values, refs)
		return true, nil
	})
	return data, err
}

// scalarSize is what a scalar point takes in an answer: its value and time, and at least a byte of
// its step.
const scalarSize = 4 + 8 + 1

// What a point takes while an answer is made: a scalar its value, time and step, any other what is
// needed to read its value.
const (
	heldScalar = 4 + 8 + 8
	heldPoint  = 96 + 24
)

// entrySize is what a name and a few numbers take in an answer.
const entrySize = 32
