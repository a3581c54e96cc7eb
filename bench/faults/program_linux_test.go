package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd/child"
	"github.com/trainerd/trainerd/trainerd/child/found"
)

const (
	programEnv     = "TRAINERD_FAULTS_PROGRAM"
	programPattern = "step-*"
)

// program saves as programs do, without a sync, and is kept alive by this project: in
// every second life files under a temporary name, else folders in place.
func program() peer {
	return peer{name: "a program under trainerd", restart: true, judge: judgeProgram, start: func(dir string, life int) *exec.Cmd {
		cmd := exec.Command("/proc/self/exe", "-test.run", "^TestKeeper$")
		cmd.Env = append(os.Environ(), writerEnv+"="+dir, pauseEnv+"="+strconv.Itoa(life%2))
		return cmd
	}}
}

// TestKeeper is the process whose power is cut: a trainerd with its program.
func TestKeeper(t *testing.T) {
	dir := os.Getenv(writerEnv)
	if dir == "" {
		t.Skip("is run by TestPowerCutsOfPrograms")
	}
	sv := &child.Supervisor{
		Command: []string{"/proc/self/exe", "-test.run", "^TestProgram$"}, Env: []string{programEnv + "=1"}, Logdir: dir,
		Checkpoints: programPattern, Retention: []retention.Policy{retention.Last(1)}, ScanEvery: 10 * time.Millisecond, Observer: announcer{},
	}
	if _, err := sv.Run(t.Context()); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// announcer prints what is announced.
type announcer struct{}

func (announcer) Started(int, *child.Checkpoint)        {}
func (announcer) Reported(*child.Report)                {}
func (announcer) Saved(c child.Checkpoint)              { fmt.Printf("saved %d\n", c.Step) }
func (announcer) Ended(child.Exit, bool, time.Duration) {}
func (announcer) Paused(bool)                           {}
func (announcer) Waits(string)                          {}

// TestProgram is the program: it continues from its checkpoint, and saves after each
// step.
func TestProgram(t *testing.T) {
	if os.Getenv(programEnv) == "" {
		t.Skip("is run by TestKeeper")
	}
	dir := os.Getenv("TRAINERD_LOGDIR")
	step := 0
	if given := os.Getenv("TRAINERD_CHECKPOINT"); given != "" {
		var err error
		step, err = strconv.Atoi(os.Getenv("TRAINERD_STEP"))
		must(t, err)
		must(t, checkProgram(given, int64(step)))
	}
	inPlace := os.Getenv(pauseEnv) == "1"
	for {
		step++
		name := filepath.Join(dir, fmt.Sprintf("step-%d", step))
		switch _, err := os.Stat(name); {
		case err == nil: // of an earlier life, which was not announced
			must(t, os.RemoveAll(name))
		case !errors.Is(err, os.ErrNotExist):
			must(t, err)
		}
		must(t, saveProgram(name, step, inPlace))
		if marker := os.Getenv(eatEnv); marker != "" && step == eatAt {
			eat(marker)
		}
		if os.Getenv(programEnv) == "alone" {
			fmt.Printf("saved %d\n", step)
		}
		fmt.Printf("step=%d loss=1\n", step)
		time.Sleep(20 * time.Millisecond)
	}
}

// saveProgram writes a folder of two files, which both name their step.
func saveProgram(name string, step int, inPlace bool) error {
	at := name
	if !inPlace {
		at = name + ".tmp"
		if err := os.RemoveAll(at); err != nil {
			return err
		}
	}
	if err := os.Mkdir(at, 0o777); err != nil {
		return err
	}
	for _, file := range []string{"model.safetensors", "optimizer.safetensors"} {
		if err := os.WriteFile(filepath.Join(at, file), programFile(int64(step)), 0o666); err != nil {
			return err
		}
	}
	if inPlace {
		return nil
	}
	return os.Rename(at, name)
}

// programFile returns a .safetensors file of 200 kB.
func programFile(step int64) []byte {
	data := strings.Repeat(fmt.Sprintf("%08d", step), 25_000)
	header := fmt.Sprintf(`{"w":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}`, len(data), len(data))
	return append(fmt.Appendf(nil, "%c\x00\x00\x00\x00\x00\x00\x00", len(header)), header+data...)
}

// checkProgram looks whether a checkpoint has all bytes of its step.
func checkProgram(name string, step int64) error {
	for _, file := range []string{"model.safetensors", "optimizer.safetensors"} {
		got, err := os.ReadFile(filepath.Join(name, file))
		if err != nil {
			return err
		}
		if string(got) != string(programFile(step)) {
			return fmt.Errorf("%s of %s has not the bytes of its step", file, name)
		}
	}
	return nil
}

// judgeProgram finds the newest verified checkpoint whole, and of the promised step
// or a later one.
func judgeProgram(dir string, promised int64) error {
	found, err := found.Scan(dir, programPattern)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("step %d was promised, and there is none", promised)
	}
	newest := found[len(found)-1]
	if newest.Step < promised {
		return fmt.Errorf("step %d was promised, %d is the newest", promised, newest.Step)
	}
	return checkProgram(newest.Path, newest.Step)
}

// alone is the program by itself, which announces what it has written.
func alone() peer {
	return peer{name: "a program alone", judge: judgeProgram, start: func(dir string, _ int) *exec.Cmd {
		cmd := exec.Command("/proc/self/exe", "-test.run", "^TestProgram$")
		cmd.Env = append(os.Environ(), programEnv+"=alone", "TRAINERD_LOGDIR="+dir)
		return cmd
	}}
}

// The program alone loses what it has announced, so the cuts are real.
func TestPowerCutsFindProgramsAlone(t *testing.T) {
	for _, kind := range []string{"ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			const limit = 20
			if lost, promised := newLoopDisk(t, kind).cuts(t, alone(), limit, true); lost == 0 {
				t.Errorf("nothing was lost in %d cuts", promised)
			}
		})
	}
}

// No checkpoint of a program that was announced is lost when a real file system
// loses its power.
func TestPowerCutsOfPrograms(t *testing.T) {
	for _, kind := range []string{"ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			if lost, promised := newLoopDisk(t, kind).cuts(t, program(), (*powercuts+7)/8, false); lost > 0 {
				t.Errorf("%d lost of %d", lost, promised)
			}
		})
	}
}
