package daemon

import (
	"context"
	"errors"
	"log/slog"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/daemon/cluster"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/graphrun"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/dataset"
)

// job is a config with its program and input.
type job struct {
	config  *config.Config
	program *program.Program
	input   program.Input
	data    *dataset.Dataset // nil for a graph that has none
	steps   int64            // the global step at which the job is complete; 0 for when the input ends
	saved   int64            // the step at which a run is likely to begin, as far as that was looked up
	log     *slog.Logger
	fsys    ckptfmt.FS // nil for the operating system's

	task     *cluster.Task
	sessions *sessions
	tester   *tester
}

// newJob loads the data, until ctx is done, and builds the model that fits them, or reads the
// graph. The job is to be closed.
func newJob(ctx context.Context, c *config.Config) (*job, error) { return newJobWith(ctx, c, nil) }

// newJobWith is newJob with data that are loaded already, or nil.
func newJobWith(ctx context.Context, c *config.Config, data *dataset.Dataset) (*job, error) {
	j := &job{config: c, data: data}
	if c.Data.File != "" && data == nil {
		data, err := dataset.Load(ctx, c.Data.File, c.DatasetOptions())
		if ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			return nil, errors.Join(err, graphrun.CheckFile(c))
		}
		j.data = data
	}
	var err error
	if c.IsGraph() {
		j.program, j.input, err = graphrun.NewProgram(c, j.data)
	} else {
		j.program, j.input, err = newFamilyProgram(c, j.data)
	}
	if err != nil {
		if j.data != nil {
			j.data.Close()
		}
		return nil, err
	}
	if err := errors.Join(checkManifests(c), fixWeightKeys(c, j.program, j.imageSize())); err != nil {
		j.input.Close()
		return nil, err
	}
	j.steps = c.Steps(j.data)
	j.tester = &tester{config: c, program: j.program, input: j.input}
	j.attach(slog.New(slog.DiscardHandler), nil, nil)
	return j, nil
}

// imageSize returns the image size of the data, or nil for data that are not images.
func (j *job) imageSize() []int {
	if j.data == nil {
		return nil
	}
	return j.data.Image
}

// attach gives the job the log of a run, and functions that report where the
// model is served and what the job waits for; either may be nil.
func (j *job) attach(log *slog.Logger, served, waiting func(string)) {
	j.log = log
	j.task = cluster.NewTask(j.config, j.program, log, waiting)
	j.tester.task = j.task
	j.sessions = &sessions{config: j.config, program: j.program, task: j.task, log: log, served: served}
}

// close ends the use of the input.
func (j *job) close() {
	j.tester.close()
	j.input.Close()
}
