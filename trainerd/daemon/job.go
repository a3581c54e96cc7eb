package daemon

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/model"
	"github.com/trainerd/trainerd/trainerd/runtime"
)

// job is a config with its data and its model.
type job struct {
	config *Config
	data   *dataset.Dataset
	model  *model.Model
	steps  int64 // the global step at which the job is complete
}

// newJob loads the data and builds the model that fits them.
func newJob(c *Config) (*job, error) {
	data, err := dataset.Load(c.Data.File, c.datasetOptions())
	if err != nil {
		return nil, err
	}
	m := c.Model
	problems := &ConfigError{}
	v := &validator{c, problems}
	v.require(m.Inputs == 0 || m.Inputs == data.Features, "model.inputs",
		fmt.Sprintf("is %d, but the data have %d features", m.Inputs, data.Features), "leave it out, or check data.label and data.file")
	m.Inputs, m.Classes = data.Features, data.Classes
	v.modelErrors(m.Check())
	if err := problems.err(); err != nil {
		return nil, err
	}
	built, err := model.Build(m)
	if err != nil {
		return nil, err
	}
	return &job{config: c, data: data, model: built, steps: c.steps(data)}, nil
}

func (j *job) newSession(context.Context) (trainerd.Session, error) {
	return runtime.New(j.model.Meta.GetGraphDef(), nil)
}

// supervisor returns the Supervisor that the config describes.
func (j *job) supervisor(log *slog.Logger) *trainerd.Supervisor {
	s := j.config.Supervisor
	return &trainerd.Supervisor{
		NewSession:         j.newSession,
		MetaGraph:          j.model.Meta,
		Logdir:             j.config.Logdir,
		NonChief:           !s.IsChief,
		SummaryOp:          trainerd.None(), // it needs a batch; the training loop runs it
		Saver:              j.saver(log),
		CheckpointBasename: s.CheckpointBasename,
		SaveModelEvery:     s.SaveModelSecs.orOff(),
		SaveModelSteps:     s.SaveModelSteps,
		SaveSummariesEvery: s.SaveSummariesSecs.orOff(),
		RecoveryWait:       s.RecoveryWaitSecs.orOff(),
		StopGrace:          s.StopGraceSecs.orOff(),
		Logger:             log,
	}
}

func (j *job) saver(log *slog.Logger) *trainerd.Saver {
	s := j.config.Supervisor
	keep := s.MaxToKeep
	if keep == 0 {
		keep = -1 // all, as in TensorFlow
	}
	return &trainerd.Saver{
		MaxToKeep: keep,
		KeepEvery: time.Duration(s.KeepCheckpointEveryNHours * float64(time.Hour)),
		MetaGraph: j.model.Meta,
		Logger:    log,
	}
}

// globalStep reads the number of steps that the model has made.
func (j *job) globalStep(ctx context.Context, sess trainerd.Session) (int64, error) {
	out, err := sess.Run(ctx, nil, []string{j.model.GlobalStep}, nil)
	if err != nil {
		return 0, fmt.Errorf("reading the global step: %w", err)
	}
	return scalarInt(out[0])
}

// evalRows is how many test rows are evaluated in one run.
const evalRows = 1024

// evaluation is how a model does on the test part.
type evaluation struct {
	rows           int
	accuracy, loss float64
}

// evaluate runs the model on the test part of the data.
func (j *job) evaluate(ctx context.Context, sess trainerd.Session) (evaluation, error) {
	var e evaluation
	fetches := []string{j.model.Accuracy, j.model.Loss}
	for e.rows < j.data.TestRows {
		x, y := j.data.Test(e.rows, evalRows)
		out, err := sess.Run(ctx, map[string]*ckptfmt.Tensor{j.model.X.Name: x, j.model.Y.Name: y}, fetches, nil)
		if err != nil {
			return e, fmt.Errorf("evaluating on the test rows: %w", err)
		}
		accuracy, err := scalarFloat(out[0])
		if err != nil {
			return e, err
		}
		loss, err := scalarFloat(out[1])
		if err != nil {
			return e, err
		}
		n := int(x.Shape[0])
		share := float64(n) / float64(e.rows+n)
		e.accuracy += (accuracy - e.accuracy) * share
		e.loss += (loss - e.loss) * share
		e.rows += n
	}
	return e, nil
}

func scalarInt(t *ckptfmt.Tensor) (int64, error) {
	if t.DType != tfpb.DataType_DT_INT64 || len(t.Data) != 8 {
		return 0, fmt.Errorf("want one int64, got %v %v", t.DType, t.Shape)
	}
	return int64(binary.LittleEndian.Uint64(t.Data)), nil
}

func scalarFloat(t *ckptfmt.Tensor) (float64, error) {
	if t.DType != tfpb.DataType_DT_FLOAT || len(t.Data) != 4 {
		return 0, fmt.Errorf("want one float32, got %v %v", t.DType, t.Shape)
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(t.Data))), nil
}

// parseSummary decodes what the summary op gave.
func parseSummary(t *ckptfmt.Tensor) (*tfpb.Summary, error) {
	if t.DType != tfpb.DataType_DT_STRING || len(t.Strings) != 1 {
		return nil, fmt.Errorf("summary op: want one string, got %v %v", t.DType, t.Shape)
	}
	s := new(tfpb.Summary)
	if err := proto.Unmarshal(t.Strings[0], s); err != nil {
		return nil, fmt.Errorf("summary op: %w", err)
	}
	return s, nil
}
