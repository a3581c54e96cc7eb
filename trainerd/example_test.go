package trainerd_test

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"os"

	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/trainerd"
)

// A program with its own parameters and its own loop fits a line to noisy
// points. It is stopped in the middle; the second call continues from there and
// ends with exactly the numbers of an undisturbed run.
func ExampleSupervisor() {
	logdir, err := os.MkdirTemp("", "line")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(logdir)
	for _, until := range []int64{60, 100} {
		if err := fitLine(context.Background(), logdir, until); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// step 0: initialised
	// step 60: restored
	// y = 2.00 x + 1.00
}

func fitLine(ctx context.Context, logdir string, until int64) error {
	line := []float64{0, 0} // slope and intercept
	source := rand.NewPCG(1, 2)
	vars := new(trainerd.Variables)
	if err := vars.Float64("line", line); err != nil {
		return err
	}
	if err := vars.State("random", source); err != nil {
		return err
	}
	sv := &trainerd.Supervisor{
		Logdir:         logdir,
		NewSession:     func(context.Context) (trainerd.Session, error) { return vars, nil },
		SaveModelSteps: 25,
	}
	return sv.Run(ctx, func(ctx context.Context, _ trainerd.Session) error {
		how := "initialised"
		if sv.Prepared().Restored != "" {
			how = "restored"
		}
		fmt.Printf("step %d: %s\n", vars.GlobalStep(), how)
		random := rand.New(source)
		for vars.GlobalStep() < until && !sv.ShouldStop() {
			var loss float64
			step, err := vars.Step(func() error {
				loss = descend(line, random)
				return nil
			})
			if err != nil {
				return err
			}
			if err := sv.StepDone(ctx, step); err != nil {
				return err
			}
			if step%10 == 0 {
				if err := sv.SummaryComputed(ctx, summary.New(summary.Scalar("loss", loss)), step); err != nil {
					return err
				}
			}
		}
		if vars.GlobalStep() == 100 {
			fmt.Printf("y = %.2f x + %.2f\n", line[0], line[1])
		}
		return nil
	})
}

// descend takes a step of gradient descent on 64 random points of y = 2x + 1.
func descend(line []float64, random *rand.Rand) (loss float64) {
	const points, rate = 64, 0.5
	var slope, intercept float64
	for range points {
		x := 2*random.Float64() - 1
		miss := line[0]*x + line[1] - (2*x + 1)
		slope += miss * x / points
		intercept += miss / points
		loss += miss * miss / points
	}
	line[0] -= rate * slope
	line[1] -= rate * intercept
	return loss
}

// An op of a graph and a Go function stand for each other.
func ExampleFunc() {
	sv := &trainerd.Supervisor{
		InitOp: trainerd.Nodes("init"),
		InitFunc: func(ctx context.Context, s trainerd.Session) error {
			return nil // such as loading a pre-trained model
		},
		LocalInitOp: trainerd.None(),
		ReadyOp: trainerd.Func(func(ctx context.Context, s trainerd.Session) error {
			return &trainerd.NotReadyError{Missing: []string{"w"}}
		}),
	}
	fmt.Println(sv.InitOp, "|", sv.LocalInitOp, "|", sv.ReadyOp, "|", sv.SummaryOp)
	// Output:
	// init | none | Go function | default
}
