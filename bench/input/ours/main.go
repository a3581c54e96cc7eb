// Ours reads the pipelines that tf_input.py has recorded as graphs, as a job reads
// the input that its graph holds, and trains on what they give:
//
//	read     the pipeline, from its first element to its last
//	train    steps of a training that the pipeline feeds
//
// Each prints one JSON object: what was done and how long it took.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"

	"github.com/trainerd/trainerd/bench/measure"
	"github.com/trainerd/trainerd/ckptfmt/metagraph"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// warmUp is the number of steps before the clock starts.
const warmUp = 5

// args are the command line's.
type args struct {
	race, dir, profile string
	times, steps       int
}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ours:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, line []string) error {
	commands := map[string]func(context.Context, *args) (*measure.Result, error){"read": read, "train": train}
	if len(line) < 2 || commands[line[0]] == nil {
		return errors.New("the first arguments are read or train, and a race")
	}
	a := args{race: line[1]}
	flags := flag.NewFlagSet(line[0], flag.ContinueOnError)
	flags.StringVar(&a.dir, "dir", "", "where the files and the graphs are")
	flags.StringVar(&a.profile, "profile", "", "file for a CPU profile of what is measured")
	flags.IntVar(&a.times, "times", 3, "how often to read the pipeline")
	flags.IntVar(&a.steps, "steps", 50, "steps of the training")
	flags.Float64("share", 1, "of the full number of files or rows; what generates them uses it")
	if err := flags.Parse(line[2:]); err != nil {
		return err
	}
	r, err := commands[line[0]](ctx, &a)
	if err != nil {
		return err
	}
	return r.Print()
}

// open returns a session for a graph.
func (a *args) open(name string) (*runtime.Session, error) {
	m, err := metagraph.Read(filepath.Join(a.dir, name))
	if err != nil {
		return nil, err
	}
	return runtime.New(m.GraphDef, nil)
}

// read adds up all elements once, as work, and then only takes them.
func read(ctx context.Context, a *args) (*measure.Result, error) {
	sess, err := a.open("graph.meta")
	if err != nil {
		return nil, err
	}
	defer sess.Close()
	var sum uint64
	elements, err := walk(ctx, sess, func() error {
		out, err := sess.Run(ctx, nil, []string{"checksum:0"}, nil)
		if err == nil {
			sum += binary.LittleEndian.Uint64(out[0].Data)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	take, err := sess.MakeCallable(ctx, nil, nil, []string{"take"})
	if err != nil {
		return nil, err
	}
	r, err := a.timed(func() error {
		for range a.times {
			if _, err := walk(ctx, sess, func() error {
				_, err := take.Run(ctx, nil)
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.Work = fmt.Sprintf("%s: %d times %d elements, sum %d", a.race, a.times, elements, sum)
	return r, nil
}

// walk calls next until the input ends, and returns how many elements there were.
func walk(ctx context.Context, sess *runtime.Session, next func() error) (int, error) {
	if _, err := sess.Run(ctx, nil, nil, []string{"init_input"}); err != nil {
		return 0, err
	}
	for n := 0; ; n++ {
		err := next()
		if op := (*session.OpError)(nil); errors.As(err, &op) && op.Code == tfpb.Code_OUT_OF_RANGE {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// train makes steps on the pipeline's elements, and as many on its first.
func train(ctx context.Context, a *args) (*measure.Result, error) {
	held, err := a.trainOn(ctx, "held.meta")
	if err != nil {
		return nil, err
	}
	r, err := a.trainOn(ctx, "train.meta")
	if err != nil {
		return nil, err
	}
	r.Work = fmt.Sprintf("%s: %d steps", a.race, a.steps)
	r.Metrics["held_seconds"], r.Metrics["held_cpu_seconds"] = held.Seconds, held.CPUSeconds
	r.Metrics["slowdown"] = r.Seconds / held.Seconds
	return r, nil
}

func (a *args) trainOn(ctx context.Context, graph string) (*measure.Result, error) {
	sess, err := a.open(graph)
	if err != nil {
		return nil, err
	}
	defer sess.Close()
	if _, err := sess.Run(ctx, nil, nil, []string{"start"}); err != nil {
		return nil, err
	}
	step, err := sess.MakeCallable(ctx, nil, nil, []string{"train"})
	if err != nil {
		return nil, err
	}
	steps := func(n int) error {
		for range n {
			if _, err := step.Run(ctx, nil); err != nil {
				return err
			}
		}
		return nil
	}
	if err := steps(warmUp); err != nil {
		return nil, err
	}
	return a.timed(func() error { return steps(a.steps) })
}

// timed measures f, and writes a profile of it if there is to be one.
func (a *args) timed(f func() error) (*measure.Result, error) {
	if a.profile != "" {
		w, err := os.Create(a.profile)
		if err != nil {
			return nil, err
		}
		defer w.Close()
		if err := pprof.StartCPUProfile(w); err != nil {
			return nil, err
		}
		defer pprof.StopCPUProfile()
	}
	watch := measure.Start()
	if err := f(); err != nil {
		return nil, err
	}
	return watch.Result(""), nil
}
