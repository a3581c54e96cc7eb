// Command plainloop is a training loop of its own, with parameters of its own, that trainerd keeps alive.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"log/slog"
	"math/rand/v2"
	"os/signal"
	"syscall"

	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/trainerd"
)

func main() {
	logdir := flag.String("logdir", "logs/plainloop", "folder for checkpoints and events")
	until := flag.Int64("steps", 1e6, "step to end at")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	weights, source, vars := make([]float64, 100), rand.NewPCG(1, 2), new(trainerd.Variables)
	// What is saved, and set when resumed, so that a resumed run also draws the same numbers.
	if err := errors.Join(vars.Float64("weights", weights), vars.State("random", source)); err != nil {
		log.Fatal(err)
	}
	sv := &trainerd.Supervisor{Logdir: *logdir, NewSession: vars.Session, SaveModelSteps: 50_000, Logger: slog.Default()}
	if err := sv.Run(ctx, func(ctx context.Context, _ trainerd.Session) error {
		random, loss := rand.New(source), 0.0
		for vars.GlobalStep() < *until && !sv.ShouldStop() {
			n, err := vars.Step(func() error { loss = descend(weights, random); return nil })
			if n%1000 == 0 {
				err = errors.Join(err, sv.SummaryComputed(ctx, summary.New(summary.Scalar("loss", loss)), n))
			}
			if err = errors.Join(err, sv.StepDone(ctx, n)); err != nil { // the checkpoint, when it is time
				return err
			}
		}
		return nil
	}); err != nil {
		log.Fatal(err)
	}
	log.Printf("weight 0 = %.4f at step %d; same command: continue; tensorboard --logdir %s: watch", weights[0], vars.GlobalStep(), *logdir)
}

// descend takes one step towards y = 0·x0 + 1·x1 + 2·x2 + …, by one random point.
func descend(w []float64, random *rand.Rand) (loss float64) {
	x, miss := make([]float64, len(w)), random.NormFloat64()/10
	for i := range w {
		x[i] = random.NormFloat64()
		miss += (w[i] - float64(i)) * x[i]
	}
	for i := range w {
		w[i] -= 0.002 * miss * x[i]
	}
	return miss * miss
}
