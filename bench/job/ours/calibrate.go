//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/trainerd/trainerd/bench/measure"
)

// calibration is what prepare finds out about a program without a supervisor.
type calibration struct {
	Width  int     // of the program's layers
	Steps  int     // of the race
	Every  int     // between two checkpoints, after Young
	Step   float64 // seconds of a step when nothing slows it
	Save   float64 // seconds that a save takes from the training
	Start  float64 // seconds from the start of the process to the begin of its first step, from a checkpoint
	Mean   float64 // seconds between two kills
	Digest string  // of the undisturbed end
}

const (
	calibrationFile = "calibration.json"
	// A save in the background may cost so little that an interval by its cost alone
	// would be none at all: it still has a cost of this many seconds, and is not written
	// for more than this share of the time.
	leastSave    = 0.02
	mostOfWrites = 0.5
	// calibrationSteps are made without a save, and then before each of some saves: long
	// enough for one in the background.
	calibrationSteps = 40
	calibrationSaves = 6
	// Where kills come faster than programs start, none of them ends.
	startsPerKill = 4
	killsPerRun   = 2 // at least
)

// modules are what the programs import.
var modules = map[string]string{"torch": "torch", "dcp": "torch", "lightning": "lightning", "tf1": "tensorflow"}

// command returns how the program is started.
func (o *options) command() ([]string, error) {
	if o.program == "own" {
		self, err := os.Executable()
		return []string{self, "train"}, err
	}
	return []string{o.python, filepath.Join(o.area, "train_"+o.program+".py")}, nil
}

// installed returns errMissing for a program whose framework is not there.
func (o *options) installed(ctx context.Context) error {
	module, known := modules[o.program]
	if !known && o.program != "own" {
		return fmt.Errorf("no program %q", o.program)
	}
	if !known {
		return nil
	}
	find := fmt.Sprintf("import importlib.util, sys; sys.exit(importlib.util.find_spec(%q) is None)", module)
	if err := exec.CommandContext(ctx, o.python, "-c", find).Run(); err != nil {
		return fmt.Errorf("%w: %s", errMissing, module)
	}
	return nil
}

// prepare calibrates the program, builds trainerd, and runs the program to its end.
func prepare(ctx context.Context, o *options) (*measure.Result, error) {
	if err := o.installed(ctx); err != nil {
		return nil, err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(o.data, "trainerd"), "../../cmd/trainerd")
	build.Dir = o.area
	if text, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building trainerd: %w\n%s", err, text)
	}
	c, err := o.calibrate(ctx)
	if err != nil {
		return nil, fmt.Errorf("calibrating %s: %w", o.program, err)
	}
	undisturbed, _, err := o.plain(ctx, "undisturbed", c.Steps, c.Steps+1)
	if err != nil {
		return nil, err
	}
	c.Digest = undisturbed.digest
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "%s\n", text)
	return nil, os.WriteFile(filepath.Join(o.data, calibrationFile), text, 0o666)
}

// calibrate measures a step, a start from a checkpoint, and what a save takes from the
// training.
func (o *options) calibrate(ctx context.Context) (*calibration, error) {
	quiet, _, err := o.plain(ctx, "calibration", calibrationSteps, calibrationSteps) // saves at its end
	if err != nil {
		return nil, err
	}
	c := &calibration{Width: widthFor(o.mib), Step: quiet.stepSeconds()}
	const end = (calibrationSaves + 2) * calibrationSteps // one interval without a save, and one after the last
	all, begun, err := o.plain(ctx, "calibration", end, calibrationSteps)
	if err != nil {
		return nil, err
	}
	again := all.steps[len(quiet.steps):]
	if again[0].number != calibrationSteps+1 {
		return nil, fmt.Errorf("it begins with step %d after a checkpoint of step %d", again[0].number, calibrationSteps)
	}
	c.Start = again[0].begin - seconds(begun)
	own := &journal{steps: again, saves: all.saves} // another process may be faster for a while
	c.Save = own.saveSeconds(calibrationSteps, own.stepSeconds())
	c.Mean = max(o.mean.Seconds(), startsPerKill*c.Start)
	c.Steps = max(int(max(o.length.Seconds(), killsPerRun*c.Mean)/c.Step), 2*calibrationSteps)
	var took []float64
	for _, s := range all.saves {
		took = append(took, s.took)
	}
	interval := max(math.Sqrt(2*max(c.Save, leastSave)*c.Mean), median(took)/mostOfWrites)
	c.Every = min(max(int(math.Round(interval/c.Step)), 1), c.Steps)
	return c, nil
}

// plain runs the program in a folder of the data, from what is there already.
func (o *options) plain(ctx context.Context, name string, steps, every int) (*journal, time.Time, error) {
	dir := filepath.Join(o.data, name)
	t := task{logdir: filepath.Join(dir, "logdir"), journal: filepath.Join(dir, "journal"), steps: steps, every: every, width: widthFor(o.mib)}
	if err := os.MkdirAll(t.logdir, 0o777); err != nil {
		return nil, time.Time{}, err
	}
	command, err := o.command()
	if err != nil {
		return nil, time.Time{}, err
	}
	if o.program == "dcp" {
		command = o.torchrun(command)
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = t.env()
	begun := time.Now()
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, begun, fmt.Errorf("%w\n%s", err, tail(text))
	}
	j, err := readJournal(t.journal)
	return j, begun, err
}

func readCalibration(data string) (*calibration, error) {
	text, err := os.ReadFile(filepath.Join(data, calibrationFile))
	if err != nil {
		return nil, err
	}
	c := new(calibration)
	return c, json.Unmarshal(text, c)
}

// tail returns the end of what a program has printed.
func tail(text []byte) []byte {
	return text[max(0, len(text)-2000):]
}
