// Ours is this project's side of the races about events files.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/trainerd/trainerd/bench/measure"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ours:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("which work? generate, write, fresh, latency, frame or read")
	}
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	dir := flags.String("dir", "", "folder to write to or to read")
	kind := flags.String("kind", "file", "what to generate: file, runs, thousand, sweep or media")
	served := flags.Bool("served", false, "generate below logs, and build the command that serves it")
	clock := flags.Bool("clock", false, "take the time of each event from the clock")
	n := flags.Int("n", 1_000_000, "number of events")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	var r *measure.Result
	var err error
	switch args[0] {
	case "generate":
		if *served {
			return generateServed(ctx, *kind, *dir, *n)
		}
		return generate(ctx, *kind, *dir, *n)
	case "write":
		r, err = write(ctx, *dir, *n, *clock)
	case "latency":
		r, err = latency(ctx, *dir, *n)
	case "fresh":
		return fresh(ctx, *dir)
	case "frame":
		r, err = frame(*dir, *n)
	case "read":
		r, err = read(*dir)
	default:
		return fmt.Errorf("unknown work %q", args[0])
	}
	if err != nil {
		return err
	}
	return r.Print()
}
