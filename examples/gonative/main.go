// Command gonative lets gonum/optimize search for a minimum, and trainerd keep the search alive.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"log/slog"
	"os/signal"
	"slices"
	"syscall"

	"gonum.org/v1/gonum/optimize"
	"gonum.org/v1/gonum/optimize/functions"

	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/trainerd"
)

type hook func(at *optimize.Location, op optimize.Operation) error // gonum calls it as it goes

func (hook) Init() error { return nil }
func (h hook) Record(at *optimize.Location, op optimize.Operation, _ *optimize.Stats) error {
	return h(at, op)
}

func main() {
	logdir := flag.String("logdir", "logs/gonative", "folder for checkpoints and events")
	until := flag.Int64("steps", 1e6, "step to end at, if the minimum is not found before")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	x, vars, f := make([]float64, 2000), new(trainerd.Variables), functions.ExtendedRosenbrock{}
	if err := vars.Float64("x", x); err != nil { // x is what is saved, and set when resumed
		log.Fatal(err)
	}
	sv := &trainerd.Supervisor{Logdir: *logdir, NewSession: vars.Session, SaveModelSteps: 5_000, Logger: slog.Default()}
	if err := sv.Run(ctx, func(ctx context.Context, _ trainerd.Session) error {
		step := func(at *optimize.Location, op optimize.Operation) error {
			if sv.ShouldStop() || vars.GlobalStep() >= *until {
				return trainerd.ErrOutOfRange // a clean end: x is saved as it is
			}
			if op&(optimize.MajorIteration|optimize.PostIteration) == 0 || slices.Equal(x, at.X) {
				return nil // a point on trial, or where x is already
			}
			n, err := vars.Step(func() error { copy(x, at.X); return nil })
			if n%1000 == 0 {
				err = errors.Join(err, sv.SummaryComputed(ctx, summary.New(summary.Scalar("f", at.F)), n))
			}
			return errors.Join(err, sv.StepDone(ctx, n))
		}
		settings := &optimize.Settings{Recorder: hook(step), GradientThreshold: 1e-6, Converger: optimize.NeverTerminate{}}
		_, err := optimize.Minimize(optimize.Problem{Func: f.Func, Grad: f.Grad}, x, settings,
			&optimize.GradientDescent{StepSizer: optimize.ConstantStepSize{Size: 0.002}}) // has no memory to save besides x
		return err
	}); err != nil {
		log.Fatal(err)
	}
	log.Printf("f = %.3g at step %d; same command: continue; tensorboard --logdir %s: watch", f.Func(x), vars.GlobalStep(), *logdir)
}
