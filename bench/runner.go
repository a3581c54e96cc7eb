package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/trainerd/trainerd/bench/measure"
)

// exitMissing is the status of a contestant that is not installed.
const exitMissing = 77

// errMissing says that a contestant is not installed.
var errMissing = errors.New("not installed")

// killDelay is how long an interrupted contestant may take to end.
const killDelay = 10 * time.Second

// runner runs the races of one area.
type runner struct {
	o    options
	area string // its folder
	ours string // its program
	tmp  string
	log  io.Writer
	done map[string]*outcome // by what was run
	data map[string]string   // prepared folders by what prepared them
}

// build builds the program of the area in dir.
func (r *runner) build(ctx context.Context, dir string) error {
	var err error
	if r.area, err = filepath.Abs(dir); err != nil {
		return err
	}
	r.ours = filepath.Join(r.tmp, "ours")
	build := exec.CommandContext(ctx, "go", "build", "-o", r.ours, ".")
	build.Dir = filepath.Join(r.area, "ours")
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building ours: %w\n%s", err, text)
	}
	return nil
}

// result is what one run of a contestant gave.
type result struct {
	measure.Result
	process float64 // seconds
	peakMiB float64 // 0 where the system does not tell
}

func (r result) value(measure string) (float64, error) {
	switch measure {
	case measureSeconds:
		return r.Seconds, nil
	case measureCPU:
		return r.CPUSeconds, nil
	case measureProcess:
		return r.process, nil
	case measurePeak:
		return r.peakMiB, nil
	}
	v, ok := r.Metrics[measure]
	if !ok {
		return 0, fmt.Errorf("the metric %q was not measured", measure)
	}
	return v, nil
}

// text returns what a race measures, as "ettr 0.63, lost_seconds 96.9".
func (r result) text(race race) string {
	var all []string
	for _, m := range append([]measured{{Measure: race.Measure}}, race.Also...) {
		if v, err := r.value(m.Measure); err == nil {
			all = append(all, fmt.Sprintf("%s %.3g", m.Measure, v))
		}
	}
	return strings.Join(all, ", ")
}

// outcome holds the results of a race: per contestant one of each round, or
// none if it is not installed.
type outcome struct {
	results [][]result
}

// outcome runs the race, unless one with the same commands has run.
func (r *runner) outcome(ctx context.Context, race race) (*outcome, error) {
	key := r.runKey(race)
	if done := r.done[key]; done != nil {
		return done, nil
	}
	data, err := r.prepared(ctx, race)
	if err != nil {
		return nil, fmt.Errorf("preparing: %w", err)
	}
	n := len(race.Contestants)
	out := &outcome{results: make([][]result, n)}
	missing := make([]bool, n)
	for round := range r.o.rounds {
		for i := range n {
			// Nobody always runs after the same contestant, with what that left in caches.
			who := (round + i) % n
			if missing[who] {
				continue
			}
			c := race.Contestants[who]
			fmt.Fprintf(r.log, "%s: round %d of %d: %s\n", race.Name, round+1, r.o.rounds, c.Name)
			result, err := r.run(ctx, race, c.Command, data, round+1)
			if errors.Is(err, errMissing) && who > 0 {
				missing[who] = true
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.Name, err)
			}
			out.results[who] = append(out.results[who], result)
			fmt.Fprintf(r.log, "  %s\n", result.text(race)) // the report may never come, after hours
		}
	}
	r.done[key] = out
	return out, nil
}

// runKey identifies a program that races run.
func (r *runner) runKey(race race) string {
	key := []any{race.Prepare, race.CPUs, r.workArgs(race)}
	for _, c := range race.Contestants {
		key = append(key, c.Name, c.Command)
	}
	return fmt.Sprintf("%q", key)
}

// workArgs returns the arguments that say how much to do.
func (r *runner) workArgs(race race) []string {
	if r.o.short {
		return race.Short
	}
	return race.Full
}

// prepared returns the folder that outlives the race's single runs. Races that
// are prepared alike share it.
func (r *runner) prepared(ctx context.Context, race race) (string, error) {
	key := fmt.Sprintf("%q", [][]string{race.Prepare, r.workArgs(race)})
	if dir := r.data[key]; dir != "" {
		return dir, nil
	}
	dir, err := os.MkdirTemp(r.tmp, "data-")
	if err != nil {
		return "", err
	}
	r.data[key] = dir
	if len(race.Prepare) == 0 {
		return dir, nil
	}
	fmt.Fprintf(r.log, "%s: preparing\n", race.Name)
	if _, _, err := r.execute(ctx, 0, r.expand(race, race.Prepare, "", dir, 0)); err != nil {
		delete(r.data, key)
		return "", err
	}
	return dir, nil
}

// run runs one contestant once, in a new folder.
func (r *runner) run(ctx context.Context, race race, command []string, data string, round int) (result, error) {
	tmp, err := os.MkdirTemp(r.tmp, "run-")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(tmp)
	begin := time.Now()
	out, state, err := r.execute(ctx, race.CPUs, r.expand(race, command, tmp, data, round))
	elapsed := time.Since(begin)
	if err != nil {
		return result{}, err
	}
	res, err := parseResult(out)
	res.process, res.peakMiB = elapsed.Seconds(), peakMiB(state)
	return res, err
}

// expand returns the command with its placeholders filled in and the race's
// arguments appended.
func (r *runner) expand(race race, command []string, tmp, data string, round int) []string {
	names := strings.NewReplacer("{ours}", r.ours, "{python}", r.o.python, "{torch}", r.o.torch, "{area}", r.area,
		"{tmp}", tmp, "{data}", data, "{round}", strconv.Itoa(round))
	var out []string
	for _, arg := range command {
		out = append(out, names.Replace(arg))
	}
	return append(out, r.workArgs(race)...)
}

// execute returns what the command writes to standard output, and how it ended.
func (r *runner) execute(ctx context.Context, cpus int, command []string) ([]byte, *os.ProcessState, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "TF_CPP_MIN_LOG_LEVEL=3", "PYTHONDONTWRITEBYTECODE=1")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = killDelay
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := startOn(cpus, cmd)
	if err == nil {
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return stdout.Bytes(), cmd.ProcessState, nil
	case errors.Is(err, exec.ErrNotFound), errors.As(err, &exit) && exit.ExitCode() == exitMissing:
		return nil, nil, fmt.Errorf("%w: %s", errMissing, bytes.TrimSpace(stderr.Bytes()))
	}
	return nil, nil, fmt.Errorf("%w\n%s", err, bytes.TrimSpace(stderr.Bytes()))
}

// parseResult decodes the last line that a contestant has printed.
func parseResult(out []byte) (result, error) {
	out = bytes.TrimSpace(out)
	line := out[bytes.LastIndexByte(out, '\n')+1:]
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	var r result
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("its last line is no result: %w: %.200q", err, line)
	}
	if r.Work == "" {
		return r, fmt.Errorf("it does not say what work it did: %.200q", line)
	}
	return r, nil
}
