package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"trainerd": main, "stubborn": stubborn})
}

// TestScripts runs the stories in testdata. Besides the usual commands they have
//
//	exits N COMMAND   run a command that must end with the exit code N
//	awaitstep DIR N   wait until the newest checkpoint is of step N or later
//	sigterm DIR       send SIGTERM to the process that holds the logdir
//	send DIR NAME...  send signals to it, such as HUP
//	flip FILE         flip a bit in the middle of a file
//	listing DIR       print all files with their sizes and times
//	samebits A B      compare the newest checkpoints of two logdirs, bit by bit
//	curves DIR        print the points of all curves as TensorBoard shows them
//	best DIR N        there are N checkpoints, and the best of them is current
//	images DIR        make a folder of images in two classes, dots and stripes
//	awaitfile FILE    wait until there is a file
//	newest DIR VAR N  put the step of the newest checkpoint, and N more, into a
//	                  variable
//	texts DIR         print the steps, tags and texts of text summaries
//	get DIR PATH [TOKEN]  print what a run answers over HTTP
//	fill FILE...      replace the names of folders, such as GRAPHS, in files
func TestScripts(t *testing.T) {
	digits, graphs, arrays := absolute(t, "../../examples/digits"), absolute(t, graphsDir), absolute(t, "../../internal/npy/testdata")
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("DIGITS", digits)
			env.Setenv("EXAMPLES", filepath.Dir(digits))
			env.Setenv("FIXTURES", filepath.Dir(graphs))
			env.Setenv("GRAPHS", graphs)
			env.Setenv("NPY", arrays)
			env.Setenv("PROGRAMS", absolute(t, programsDir))
			env.Setenv("RECORDS", filepath.Join(graphs, "digits.tfrecord"))
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "hangup" {
				return false, fmt.Errorf("no condition %q", name)
			}
			return !signal.Ignored(syscall.SIGHUP), nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     exits,
			"awaitstep": awaitStep,
			"sigterm":   sigterm,
			"send":      send,
			"flip":      flip,
			"listing":   listing,
			"samebits":  sameBits,
			"curves":    curves,
			"best":      best,
			"awaitfile": awaitFile,
			"newest":    newestStep,
			"texts":     texts,
			"get":       get,
			"fill":      fill,
			"images":    images,
		},
	})
}

func absolute(t *testing.T, name string) string {
	t.Helper()
	name, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func arguments(ts *testscript.TestScript, neg bool, args []string, n int) {
	if neg || len(args) != n {
		ts.Fatalf("want %d arguments and no !", n)
	}
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != want {
		ts.Fatalf("%s ended with %v, want exit code %d", args[1], err, want)
	}
}

// newest returns the prefix and step of the checkpoint that a logdir names, -1
// when there is none yet.
func newest(dir string) (string, int64) {
	state, err := ckptdir.ReadState(dir, nil)
	if err != nil {
		return "", -1
	}
	name := filepath.Base(state.GetModelCheckpointPath())
	step, err := strconv.ParseInt(name[strings.LastIndexByte(name, '-')+1:], 10, 64)
	if err != nil {
		return "", -1
	}
	return filepath.Join(dir, name), step
}

// patience is how long anything may take on a machine that is busy.
const patience = 5 * time.Minute

func awaitStep(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 2)
	want, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		if _, step := newest(ts.MkAbs(args[0])); step >= want {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("no checkpoint of step %d within %v", want, patience)
		}
	}
}

// awaitFile waits for a file, or for a text in it.
func awaitFile(ts *testscript.TestScript, neg bool, args []string) {
	text := ""
	if len(args) == 2 {
		text, args = args[1], args[:1]
	}
	arguments(ts, neg, args, 1)
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		if b, err := os.ReadFile(ts.MkAbs(args[0])); err == nil && strings.Contains(string(b), text) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("no %s with %q within %v", args[0], text, patience)
		}
	}
}

// stubborn is a program that a first signal does not end.
func stubborn() {
	ctx, release := stopOnSignal(context.Background(), os.Stderr, "stopping")
	defer release()
	note := func(name string) {
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			panic(err)
		}
	}
	note("ready")
	<-ctx.Done()
	note("stopping")
	time.Sleep(time.Minute)
}

func sigterm(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 1)
	send(ts, neg, []string{args[0], "TERM"})
}

// send sends signals to the process that holds a logdir, one after the other.
func send(ts *testscript.TestScript, _ bool, args []string) {
	var holder logdir.Holder
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(filepath.Join(args[0], "trainerd.lock"))), &holder))
	process, err := os.FindProcess(holder.PID)
	ts.Check(err)
	for _, name := range args[1:] {
		signal := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP}[name]
		ts.Check(process.Signal(signal))
	}
}

func flip(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 1)
	name := ts.MkAbs(args[0])
	b, err := os.ReadFile(name)
	ts.Check(err)
	b[len(b)/2] ^= 4
	ts.Check(os.WriteFile(name, b, 0o666))
}

func listing(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 1)
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	for _, e := range entries {
		info, err := e.Info()
		ts.Check(err)
		fmt.Fprintln(ts.Stdout(), e.Name(), info.Size(), info.ModTime().UnixNano())
	}
}

func sameBits(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 2)
	a, stepA := newest(ts.MkAbs(args[0]))
	b, stepB := newest(ts.MkAbs(args[1]))
	if stepA < 0 || stepA != stepB {
		ts.Fatalf("the newest checkpoints are of the steps %d and %d", stepA, stepB)
	}
	for _, suffix := range []string{".index", ".data-00000-of-00001"} {
		if ts.ReadFile(a+suffix) != ts.ReadFile(b+suffix) {
			ts.Fatalf("%s and %s differ", a+suffix, b+suffix)
		}
	}
}

func best(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 2)
	var record struct {
		Checkpoints []struct {
			Step  int64
			Value float64
		}
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(filepath.Join(args[0], "best.json"))), &record))
	files, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "*.index"))
	ts.Check(err)
	if len(files) != len(record.Checkpoints) || strconv.Itoa(len(files)) != args[1] {
		ts.Fatalf("%d checkpoints and %d in the record, want %s", len(files), len(record.Checkpoints), args[1])
	}
	if _, step := newest(ts.MkAbs(args[0])); step != record.Checkpoints[0].Step {
		ts.Fatalf("step %d is current, the best is %d", step, record.Checkpoints[0].Step)
	}
	if !slices.IsSortedFunc(record.Checkpoints, func(a, b struct {
		Step  int64
		Value float64
	}) int {
		return cmp.Compare(b.Value, a.Value)
	}) {
		ts.Fatalf("not the best first: %v", record.Checkpoints)
	}
}

func fill(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args {
		text := ts.ReadFile(name)
		for _, folder := range []string{"GRAPHS", "DIGITS", "RECORDS"} {
			text = strings.ReplaceAll(text, folder, ts.Getenv(folder))
		}
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o666))
	}
}

func images(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 1)
	for i := range 48 {
		class := []string{"dots", "stripes"}[i%2]
		m := image.NewGray(image.Rect(0, 0, 12, 12))
		for p := range m.Pix {
			x, y := p%12+i/2%3, p/12+i/6%3
			if x%4 < 2 && (class == "stripes" || y%4 < 2) {
				m.Pix[p] = byte(200 + i)
			}
		}
		dir := ts.MkAbs(filepath.Join(args[0], class))
		ts.Check(os.MkdirAll(dir, 0o777))
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%02d.png", i)))
		ts.Check(err)
		ts.Check(png.Encode(f, m))
		ts.Check(f.Close())
	}
}

// notOfSteps are the tags whose values are not a function of the step: rates, and the
// hyperparameters that each start writes.
var notOfSteps = regexp.MustCompile(`/sec$|^_hparams_/`)

// curves reads the events files in their order. SessionLog START of step S
// drops what the runs before had from S on.
func curves(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 1)
	files, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "events.out.tfevents.*"))
	ts.Check(err)
	slices.Sort(files)
	var points []*tfpb.Event
	for _, name := range files {
		f, err := os.Open(name)
		ts.Check(err)
		for e := range tfevents.NewReader(f).Events() {
			if e.GetSessionLog().GetStatus() == tfpb.SessionLog_START {
				points = slices.DeleteFunc(points, func(p *tfpb.Event) bool { return p.GetStep() >= e.GetStep() })
			}
			if e.GetSummary() != nil {
				points = append(points, e)
			}
		}
		f.Close()
	}
	for _, e := range points {
		for _, v := range e.GetSummary().GetValue() {
			if !notOfSteps.MatchString(v.GetTag()) {
				fmt.Fprintln(ts.Stdout(), e.GetStep(), v.GetTag(), describeValue(v))
			}
		}
	}
}

func describeValue(v *tfpb.Summary_Value) string {
	if h := v.GetHisto(); h != nil {
		return fmt.Sprintf("histogram %x %x", math.Float64bits(h.GetSum()), math.Float64bits(h.GetSumSquares()))
	}
	return fmt.Sprintf("%x", math.Float32bits(v.GetSimpleValue()))
}
