//go:build unix

// Command ours is the driver of the races of bench/job, and our own training in
// them: how much of its time a training makes progress while it is killed again and
// again.
//
//	ours prepare   calibrates a program and runs it undisturbed
//	ours under     runs it under a supervisor, with kills
//	ours bound     what an ideal supervisor would reach, by calculation
//	ours train     our own training, a program like the others
//
// All programs get their task by the environment (task.go) and write a journal
// (journal.go), from which they are judged: a step counts the last time that it was
// done. Kills come at random times on the mean of -mean, the same for all by -seed,
// and are SIGKILL to the process that trains.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/bench/measure"
)

// exitMissing is the status of a contestant that is not installed.
const exitMissing = 77

var errMissing = errors.New("not installed")

type options struct {
	program, supervisor string
	area, python        string
	data, tmp           string
	mib                 int
	length, mean        time.Duration
	seed                uint64
}

func main() {
	log.SetFlags(0)
	commands := map[string]func(context.Context, *options) (*measure.Result, error){"prepare": prepare, "under": under, "bound": bound, "train": train}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		log.Fatal("usage: ours prepare|under|bound|train [flags]")
	}
	var o options
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	flags.StringVar(&o.program, "program", "", "what trains: own, torch, dcp, lightning or tf1")
	flags.StringVar(&o.supervisor, "supervisor", "", "what starts it again: trainerd, bash or torchrun")
	flags.StringVar(&o.area, "area", "", "folder bench/job")
	flags.StringVar(&o.python, "python", "python3", "interpreter that has the peers installed")
	flags.StringVar(&o.data, "data", "", "folder that prepare fills")
	flags.StringVar(&o.tmp, "tmp", "", "empty folder for one run")
	flags.IntVar(&o.mib, "mib", 256, "size of the state in MiB")
	flags.DurationVar(&o.length, "length", 5*time.Minute, "how long the undisturbed training takes")
	flags.DurationVar(&o.mean, "mean", time.Minute, "mean time between two kills, if the program starts in a quarter of it")
	flags.Uint64Var(&o.seed, "seed", 1, "of the times of the kills")
	flags.Parse(os.Args[2:])
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r, err := commands[os.Args[1]](ctx, &o)
	if errors.Is(err, errMissing) {
		fmt.Fprintln(os.Stderr, strings.TrimPrefix(err.Error(), errMissing.Error()+": "))
		os.Exit(exitMissing)
	}
	if err != nil {
		log.Fatal(err)
	}
	if r != nil {
		if err := r.Print(); err != nil {
			log.Fatal(err)
		}
	}
}
