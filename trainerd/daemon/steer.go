package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/control"
	"github.com/trainerd/trainerd/trainerd/daemon/cluster"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/session"
)

// noteTag is the tag of the texts that people write into the events file.
const noteTag = "note"

// steering is a training as other goroutines may steer it: a [control.Job].
// What changes the training is handed to its own goroutine, which does it
// between two steps.
type steering struct {
	t        *training
	sess     session.Session
	requests chan *request
	closed   chan struct{} // closed when nobody reads mail any more
}

// request is something to be done between two steps.
type request struct {
	do   func(ctx context.Context) error
	done chan error // has room for the answer
}

func newSteering(t *training, sess session.Session) *steering {
	return &steering{t: t, sess: sess, requests: make(chan *request), closed: make(chan struct{})}
}

var (
	errEnded    = control.Refusef("the training has ended")
	errReplaced = control.Refusef("the session was lost meanwhile, and there is another; ask again")
)

// betweenSteps has the training call f between two steps.
func (s *steering) betweenSteps(ctx context.Context, f func(ctx context.Context) error) error {
	r := &request{f, make(chan error, 1)}
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case s.requests <- r:
			return <-r.done
		case <-s.closed:
			return s.gone()
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
			if why := s.waitsFor(); why != "" {
				return control.Refusef("the training waits for %s; ask again when it makes steps", why)
			}
		}
	}
}

// waitsFor says for whom or what a step waits, perhaps for long; "" for nobody.
func (s *steering) waitsFor() string {
	if s.t.watch == nil {
		return ""
	}
	return s.t.watch.Status().Waiting
}

// gone says why a request came too late: the training has ended, or its session is lost.
func (s *steering) gone() error {
	if s.t.watch == nil {
		return errEnded
	}
	if _, err := s.t.watch.Job(); err != nil {
		return err
	}
	return errReplaced
}

func (s *steering) hasEnded() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// serve fulfils requests, and waits while the training is paused.
func (s *steering) serve(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case r := <-s.requests:
			r.done <- r.do(ctx)
			continue
		default:
		}
		if !s.t.paused {
			return
		}
		s.giveSign(ctx)
		select {
		case r := <-s.requests:
			r.done <- r.do(ctx)
		case <-time.After(cluster.SignEvery):
		case <-ctx.Done():
		}
	}
}

// giveSign has those who wait for this task's part of a step wait for the end of a pause.
func (s *steering) giveSign(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cluster.SignEvery)
	defer cancel()
	s.t.job.task.GiveSign(ctx, s.sess)
}

// Save writes a checkpoint. A model on servers saves itself, between two steps.
func (s *steering) Save(ctx context.Context) (saved trainerd.SavedCheckpoint, err error) {
	if !s.t.job.config.IsRemote() {
		return s.t.sv.Save(ctx)
	}
	err = s.betweenSteps(ctx, func(ctx context.Context) (err error) {
		saved, err = s.t.sv.Save(ctx)
		return err
	})
	return saved, err
}

// Pause has the training wait after the current step.
func (s *steering) Pause(ctx context.Context) error {
	return s.pause(ctx, true, control.Paused, "paused on request")
}

// Resume ends a pause.
func (s *steering) Resume(ctx context.Context) error {
	return s.pause(ctx, false, control.Training, "resumed on request")
}

func (s *steering) pause(ctx context.Context, paused bool, phase control.Phase, said string) error {
	return s.betweenSteps(ctx, func(context.Context) error {
		if s.t.paused != paused {
			s.t.paused = paused
			s.t.watch.Enter(phase)
			s.t.job.log.Info(said, "step", s.t.step)
		}
		return nil
	})
}

// Keep protects a checkpoint from rotation.
func (s *steering) Keep(step int64) (string, error) {
	if s.t.sv.SavePath() == "" {
		return "", control.Refusef("this worker has no checkpoints; ask the chief")
	}
	prefix := s.t.sv.SavePath() + "-" + strconv.FormatInt(step, 10)
	err := s.t.sv.Saver.Pin(prefix)
	if errors.Is(err, fs.ErrNotExist) {
		return "", control.Refusef("there is no checkpoint of step %d in %s; see `ckpt ls`", step, s.t.job.config.Logdir)
	}
	return prefix, err
}

// Note writes a text into the events file.
func (s *steering) Note(ctx context.Context, text string) error {
	summary := &tfpb.Summary{Value: []*tfpb.Summary_Value{summary.Text(noteTag, text)}}
	err := s.t.sv.SummaryComputed(ctx, summary, -1)
	if errors.Is(err, trainerd.ErrNoSummaryWriter) {
		return control.Refusef("this worker writes no events; ask the chief")
	}
	if err == nil {
		err = s.t.sv.Writer().Flush(ctx)
	}
	if err != nil && s.hasEnded() {
		return s.gone()
	}
	return err
}

// Set changes a setting until the process ends, except a learning rate in a variable, which is
// saved with the checkpoints.
func (s *steering) Set(ctx context.Context, key, value string) (text string, err error) {
	err = s.betweenSteps(ctx, func(ctx context.Context) error {
		text, err = s.set(ctx, key, value)
		return err
	})
	if err == nil {
		s.t.job.log.Info("set on request", "key", key, "value", value)
	}
	return text, err
}

// settingOf returns the number that a key is to be set to.
func settingOf(key, value string) (float64, error) {
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || v < 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, control.Refusef("%s: %q is not a number of 0 or more", key, value)
	}
	if err := config.Seconds(v).CheckLimit(); err != nil && strings.HasSuffix(key, "secs") {
		return 0, control.Refusef("%s: %v", key, err)
	}
	return v, nil
}

func (s *steering) set(ctx context.Context, key, value string) (string, error) {
	v, err := settingOf(key, value)
	if err != nil {
		return "", err
	}
	c := s.t.job.config
	whole := map[string]*int64{
		"eval.steps": &c.Eval.Steps, "supervisor.save_model_steps": &s.t.sv.SaveModelSteps,
		"supervisor.save_summaries_steps": &c.Supervisor.SaveSummariesSteps,
	}
	secs := map[string]*config.Seconds{"eval.secs": &c.Eval.Secs, "supervisor.save_summaries_secs": &c.Supervisor.SaveSummariesSecs}
	switch {
	case (key == "eval.steps" || key == "eval.secs") && s.t.eval == nil:
		return "", control.Refusef("%s: the job has no test part to evaluate on", key)
	case whole[key] != nil:
		if v != math.Trunc(v) || v > 1<<53 {
			return "", control.Refusef("%s: %q is not a whole number", key, value)
		}
		*whole[key] = int64(v)
	case secs[key] != nil:
		*secs[key] = config.Seconds(v)
		if next := time.Now().Add(secs[key].Duration()); key == "eval.secs" {
			s.t.eval.next = next
		} else {
			s.t.nextSummary = next
		}
	case key == "supervisor.save_model_secs":
		if err := s.t.sv.SetSaveModelEvery(config.Seconds(v).Duration()); err != nil {
			return "", control.Refusef("%s was 0 when the run began, and needs a restart to become more", key)
		}
	case key == "learning_rate", key == "model.learning_rate":
		return s.setRate(ctx, v)
	default:
		return "", control.Refusef("%s cannot change during a run; what can: learning_rate, %s", key, settingNames(c.Settings()))
	}
	return key + " is " + value, nil
}

func settingNames(all []config.Setting) string {
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.Key
	}
	return strings.Join(names, ", ")
}

// setRate changes the learning rate: permanently if it is in a variable of that name, otherwise by
// feeding the tensor that the optimizers use for it, until the process ends.
func (s *steering) setRate(ctx context.Context, v float64) (string, error) {
	if store, ok := s.sess.(session.VariableStore); ok {
		all, err := store.Variables(ctx)
		if err != nil {
			return "", err
		}
		for _, info := range all {
			value := rateOf(info.DType, v)
			if value == nil || !isRateName(info.Name) || !info.Initialized || len(info.Shape) > 0 {
				continue
			}
			err := store.Restore(ctx, []ckptfmt.NamedTensor{{Name: info.Name, Tensor: value}})
			return fmt.Sprintf("the learning rate is %v: the variable %s has it", v, info.Name), err
		}
	}
	if s.t.replicas != nil {
		return "", control.Refusef("the learning rate of workers that wait for each other cannot change during a run; " +
			"stop the job and start it with --set model.learning_rate=...")
	}
	rates, err := s.t.job.program.LearningRates()
	if err != nil {
		return "", err
	}
	fed := make(program.Feed)
	for _, r := range rates {
		if value := rateOf(r.DType, v); value != nil {
			fed[r.Tensor] = value
		}
	}
	if len(fed) == 0 {
		return "", control.Refusef("the graph has no optimizer whose learning rate is known, and no variable learning_rate; change the graph")
	}
	maps.Copy(s.t.steered, fed)
	return fmt.Sprintf("the learning rate is %v until the process ends", v), nil
}

// rateOf returns a learning rate as a tensor, nil for a type that has none.
func rateOf(dtype tfpb.DataType, v float64) *ckptfmt.Tensor {
	switch dtype {
	case tfpb.DataType_DT_FLOAT:
		return ckptfmt.Scalar(float32(v))
	case tfpb.DataType_DT_DOUBLE:
		return ckptfmt.Scalar(v)
	}
	return nil
}

// isRateName reports whether a variable is named as a learning rate.
func isRateName(name string) bool {
	t, err := graph.ParseTensorName(name)
	if err != nil {
		return false
	}
	base := path.Base(t.Node)
	return base == "learning_rate" || base == "lr"
}
