// Bench races this project against its peers: real TensorFlow, TensorBoard and
// others, in the same run on the same machine.
//
//	go run ./bench [-rounds 5] [-python PY] [-short] [-race NAME] [AREA...]
//
// An area is a folder next to this file; without one, all of them run. Its
// bench.toml names races, each with its contestants, the first of them ours:
//
//	[[race]]
//	name = "write-scalars"
//	about = "one million scalars into one file through the public API"
//	measure = "seconds"   # or "cpu_seconds", "process", "peak_mib", or the name of a metric
//	better = "less"       # or "more"
//	also = [{measure = "cpu_seconds", better = "less"}]  # more tables of the same runs
//	cpus = 1              # CPUs that a contestant may use; 0 means all
//	prepare = ["{ours}", "generate", "{data}"]  # once, before the first round
//	short = ["-n", "100000"]   # arguments appended with -short
//	full = ["-n", "1000000"]   # arguments appended without
//	  [[race.contestant]]
//	  name = "trainerd"
//	  command = ["{ours}", "write", "-dir", "{tmp}"]
//	  [[race.contestant]]
//	  name = "TensorFlow"
//	  command = ["{python}", "{area}/tf_write.py", "{tmp}"]
//	  bar = 5.0           # ours must be at least so many times better
//	  [[race.contestant]]
//	  name = "limit: write only"
//	  command = ["{ours}", "limit", "-dir", "{tmp}"]
//	  limit = true        # what the machine allows
//	  [[race.contestant]]
//	  name = "PyTorch"
//	  command = ["{torch}", "{area}/torch_train.py"]
//	  alike = true        # the same task with other numbers: its work is not compared
//
// In commands {ours} is the area's program ours, built from its folder
// of that name; {python} for the interpreter, {torch} for that of -torch; {area} for the area's folder; {tmp}
// for a folder that is new for each run; {data} for one that stays for all runs,
// and that prepare, if given, has filled; {round} for the number of the round, a seed
// for what all contestants of a round must meet alike. Races with the same commands
// share their runs, so that one run can be measured in several ways.
//
// A contestant measures itself and prints one JSON object as its last line:
//
//	{"work":"1000000 scalars, digest 5f2c","seconds":1.2,"cpu_seconds":1.1,"metrics":{"p99_ns":120}}
//
// Ratios are given only if the contestants have done the same work. One that
// exits with status 77 is not installed and left out; a race whose prepare does so
// is not run, and named.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, "bench", os.Args[1:], os.Stdout, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// options are the command line's.
type options struct {
	rounds int
	python string
	torch  string // interpreter that has PyTorch
	short  bool
	race   string // the only one to run, "" for all
	areas  []string
}

// run runs the races of the areas below root. It continues after a race that
// failed.
func run(ctx context.Context, root string, args []string, out, log io.Writer) error {
	o, err := parseArgs(root, args, log)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	fmt.Fprintln(out, machine())
	var failed []error
	found := false
	for _, name := range o.areas {
		ran, err := runArea(ctx, filepath.Join(root, name), tmp, o, out, log)
		found = found || ran
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
		}
		if ctx.Err() != nil {
			return errors.Join(append(failed, context.Cause(ctx))...)
		}
	}
	if !found && failed == nil {
		return fmt.Errorf("no race is named %q", o.race)
	}
	return errors.Join(failed...)
}

func parseArgs(root string, args []string, log io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.Usage = func() { printUsage(root, flags) }
	flags.IntVar(&o.rounds, "rounds", 5, "how often each contestant runs")
	flags.StringVar(&o.python, "python", "python3", "interpreter that has the peers installed")
	flags.StringVar(&o.torch, "torch", "", "interpreter that has PyTorch and h5py, unless that is -python")
	flags.BoolVar(&o.short, "short", false, "with less work")
	flags.StringVar(&o.race, "race", "", "run the race of this name only")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.torch == "" {
		o.torch = o.python
	}
	if o.rounds < 1 {
		return o, fmt.Errorf("-rounds %d: at least 1 is needed", o.rounds)
	}
	o.areas = flags.Args()
	if len(o.areas) > 0 {
		return o, nil
	}
	o.areas = areasBelow(root)
	if len(o.areas) == 0 {
		return o, fmt.Errorf("no area below %s: run it in the project's main folder", root)
	}
	return o, nil
}

// areasBelow returns the names of the areas.
func areasBelow(root string) (areas []string) {
	files, _ := filepath.Glob(filepath.Join(root, "*", configName)) // the pattern is a valid one
	for _, f := range files {
		areas = append(areas, filepath.Base(filepath.Dir(f)))
	}
	return areas
}

// printUsage prints the flags, and the races of each area.
func printUsage(root string, flags *flag.FlagSet) {
	out := flags.Output()
	fmt.Fprint(out, "usage: go run ./bench [flags] [AREA...]\n\nOn an otherwise idle machine; without an area, all of them run.\n\n")
	flags.PrintDefaults()
	fmt.Fprintln(out, "\nraces:")
	for _, area := range areasBelow(root) {
		races, err := readConfig(filepath.Join(root, area, configName), "")
		if err != nil {
			fmt.Fprintf(out, "  %s: %v\n", area, err)
			continue
		}
		fmt.Fprintf(out, "  %s\n", area)
		for _, r := range races {
			fmt.Fprintf(out, "    %-24s %s\n", r.Name, r.About)
		}
	}
}

// runArea runs the races of one area and reports whether there were any.
func runArea(ctx context.Context, dir, tmp string, o options, out, log io.Writer) (bool, error) {
	races, err := readConfig(filepath.Join(dir, configName), o.race)
	if err != nil || len(races) == 0 {
		return false, err
	}
	r := runner{o: o, log: log, done: make(map[string]*outcome), data: make(map[string]string)}
	if r.tmp, err = os.MkdirTemp(tmp, filepath.Base(dir)+"-"); err != nil {
		return true, err
	}
	defer os.RemoveAll(r.tmp)
	if err := r.build(ctx, dir); err != nil {
		return true, err
	}
	var failed []error
	for _, race := range races {
		result, err := r.outcome(ctx, race)
		switch {
		case errors.Is(err, errMissing):
			_, err = fmt.Fprintf(out, "\n### %s\n\nnot run, %v\n", race.Name, err)
		case err == nil:
			err = writeReports(out, race, result)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("race %s: %w", race.Name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return true, errors.Join(failed...)
}
