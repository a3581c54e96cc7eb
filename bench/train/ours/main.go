// Command ours is trainerd's side of the training races: matrix products, whole
// training steps, and the start of `trainerd graph run`.
//
//	ours gemm  -threads 1 -size 512 -times 100
//	ours net   -threads 1 -net mlp784 -steps 200
//	ours network -net resnet20 -steps 20
//	ours graph -dir fixtures/graphs/mlp_adam -steps 2000
//	ours start -dir fixtures/graphs/softmax_ref
//
// Its last line of output is one JSON object for the driver.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	goruntime "runtime"
	"runtime/pprof"

	"github.com/trainerd/trainerd/bench/measure"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ours:", err)
		os.Exit(1)
	}
}

// options are the flags of all races.
type options struct {
	threads, size, times, steps int
	net, dir, area, profile     string
	ops                         bool
}

var races = map[string]func(ctx context.Context, o *options) (*measure.Result, error){
	"gemm": gemm, "net": net, "network": network, "graph": smallGraph, "start": start,
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 || races[args[0]] == nil {
		return errors.New("the first argument is gemm, net, network, graph or start")
	}
	var o options
	f := flag.NewFlagSet(args[0], flag.ContinueOnError)
	f.IntVar(&o.threads, "threads", 1, "processors to use")
	f.IntVar(&o.size, "size", 512, "rows and columns of the matrices")
	f.IntVar(&o.times, "times", 20, "products to compute")
	f.IntVar(&o.steps, "steps", 200, "training steps")
	f.StringVar(&o.net, "net", "mlp784", "net or network of bench/train/graphs")
	f.StringVar(&o.area, "area", "bench/train", "folder of these races")
	f.StringVar(&o.dir, "dir", "fixtures/graphs/softmax_ref", "recorded program")
	f.StringVar(&o.profile, "profile", "", "file for a CPU profile")
	f.BoolVar(&o.ops, "ops", false, "print the time of each op of a network's step to the standard error")
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	stop, err := profile(o.profile)
	if err != nil {
		return err
	}
	defer stop()
	goruntime.GOMAXPROCS(o.threads)
	r, err := races[args[0]](ctx, &o)
	if err != nil {
		return err
	}
	return r.Print()
}

// profile starts a CPU profile, if there is to be one.
func profile(name string) (stop func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	w, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(w); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		w.Close()
	}, nil
}

// timed measures f.
func timed(f func() error) (*measure.Result, error) {
	watch := measure.Start()
	if err := f(); err != nil {
		return nil, err
	}
	return watch.Result(""), nil
}
