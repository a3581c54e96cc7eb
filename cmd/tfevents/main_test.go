package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/rogpeppe/go-internal/testscript"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tfevents": main})
}

// TestScripts runs the stories in testdata. Besides the usual commands they have
//
//	exits N COMMAND                 run a command that must end with the exit code N
//	session FILE START FIRST LAST V add to a file the events of a training: START
//	                                unless it is "-", and loss=V at the steps
//	cut FILE N                      remove the last N bytes of a file
//	flip FILE N                     flip a bit of byte N
//	gzip FILE NEWFILE               compress a file
//	await FILE TEXT                 wait until a file holds a text
func TestScripts(t *testing.T) {
	fixtures, err := filepath.Abs("../../fixtures/events")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("FIXTURES", fixtures)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "session": session, "cut": cut, "flip": flip, "gzip": compress, "await": await,
		},
	})
}

func await(ts *testscript.TestScript, _ bool, args []string) {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		if b, err := os.ReadFile(ts.MkAbs(args[0])); err == nil && strings.Contains(string(b), args[1]) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("no %q in %s within a minute", args[1], args[0])
		}
	}
}

func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != want {
		ts.Fatalf("%s ended with %v, want exit code %d", args[1], err, want)
	}
}

func session(ts *testscript.TestScript, _ bool, args []string) {
	name := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(name), 0o777))
	var file bytes.Buffer
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		ts.Check(err)
		return n
	}
	// A second for each step, from the one in the file's name.
	begin := int64(0)
	if m := regexp.MustCompile(`\d{10}`).FindString(args[0]); m != "" {
		begin = number(m)
	}
	wall := func(step int64) float64 { return float64(begin + step) }
	first, last := number(args[2]), number(args[3])
	w := tfevents.NewEventsWriter(&file, &tfevents.EventsWriterOptions{Now: func() time.Time { return time.Unix(begin+first, 0) }})
	if args[1] != "-" {
		ts.Check(w.WriteEvent(&tfpb.Event{WallTime: wall(first), Step: number(args[1]), What: &tfpb.Event_SessionLog{
			SessionLog: &tfpb.SessionLog{Status: tfpb.SessionLog_START},
		}}))
	}
	value, err := strconv.ParseFloat(args[4], 64)
	ts.Check(err)
	for step := first; step <= last; step++ {
		s := summary.New(summaryv1.Scalar("loss", value))
		ts.Check(w.WriteEvent(&tfpb.Event{WallTime: wall(step), Step: step, What: &tfpb.Event_Summary{Summary: s}}))
	}
	ts.Check(os.WriteFile(name, file.Bytes(), 0o666))
}

func cut(ts *testscript.TestScript, _ bool, args []string) {
	name := ts.MkAbs(args[0])
	info, err := os.Stat(name)
	ts.Check(err)
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(name, info.Size()-n))
}

func flip(ts *testscript.TestScript, _ bool, args []string) {
	name := ts.MkAbs(args[0])
	b, err := os.ReadFile(name)
	ts.Check(err)
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	b[n] ^= 4
	ts.Check(os.WriteFile(name, b, 0o666))
}

func compress(ts *testscript.TestScript, _ bool, args []string) {
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err = w.Write(b)
	ts.Check(errors.Join(err, w.Close()))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), out.Bytes(), 0o666))
}

// TestExitCodes has a command line for each of the codes that the help lists.
func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	sound := "../../fixtures/events/tf1_filewriter/events.out.tfevents.1699999990.goldenhost"
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	tested := make(map[int]bool)
	for _, tc := range []struct {
		ctx  context.Context
		code int
		args []string
	}{
		{t.Context(), exitOK, []string{"ls", sound}},
		{t.Context(), exitFailed, []string{"repair", sound, dir}}, // which exists
		{t.Context(), exitUsage, []string{"ls", "--wrong"}},
		{t.Context(), exitDamaged, []string{"verify", "../../fixtures/events/damaged"}},
		{t.Context(), exitDiffers, []string{"check", "../../fixtures/events/tf2_writer"}},
		{t.Context(), exitNothing, []string{"ls", dir}},
		{t.Context(), exitFired, []string{"watch", "../../fixtures/events", "--once", "--when", "run is silent for 1s", "--when", "/./ is NaN",
			"--state", filepath.Join(t.TempDir(), "state")}},
		{cancelled, exitInterrupted, []string{"watch", dir, "--when", "loss is NaN", "--state", filepath.Join(t.TempDir(), "state")}},
		{t.Context(), exitUnsupported, []string{"--logdir=gs://bucket", "--reload=5", "--port=0"}}, // as TensorBoard starts it
		{t.Context(), exitUsage, []string{"serve", "--logdir", dir, "--reload", "often"}},
		{t.Context(), exitUsage, []string{"serve", "--logdir", dir, "--samples-per-plugin", "scalars"}},
		{t.Context(), exitUsage, []string{"serve"}},
		{t.Context(), exitUsage, []string{"tensorboard"}},
		{cancelled, exitOK, []string{"serve", "--logdir", dir, "--port", "0", "--host", "127.0.0.1"}},
		{cancelled, exitInterrupted, []string{"ls", sound}},
		{cancelled, exitInterrupted, []string{"cat", sound}},
		{cancelled, exitInterrupted, []string{"check", sound}},
		{cancelled, exitInterrupted, []string{"stat", sound}},
		{cancelled, exitInterrupted, []string{"verify", sound}},
		{cancelled, exitInterrupted, []string{"export", sound}},
		{cancelled, exitInterrupted, []string{"tail", dir}},
		{cancelled, exitInterrupted, []string{"merge", sound, filepath.Join(dir, "new")}},
		{cancelled, exitInterrupted, []string{"repair", sound, filepath.Join(dir, "new")}},
	} {
		var out, words bytes.Buffer
		if code := run(tc.ctx, append([]string{"tfevents"}, tc.args...), nil, &out, &words); code != tc.code {
			t.Errorf("%q: exit code %d, want %d\n%s", tc.args, code, tc.code, &words)
		}
		tested[tc.code] = true
	}
	for _, e := range doc().Exits {
		if !tested[e.Code] {
			t.Errorf("exit code %d is documented, but not tested", e.Code)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("an interrupted command left %v, %v", left, err)
	}
}

// TestParquet reads what export writes.
func TestParquet(t *testing.T) {
	points := []scalarPoint{}
	for i := range 3000 {
		points = append(points, scalarPoint{pointRow{"run", fmt.Sprint("tag", i%3), int64(i), number(1.7e9 + float64(i))}, number(float64(i) / 8)})
	}
	points[5].Value, points[6].Value = number(math.Inf(-1)), number(math.NaN())
	var file bytes.Buffer
	if err := rowsAsParquet(&file, slices.Values(points)); err != nil {
		t.Fatal(err)
	}
	got, err := parquet.Read[scalarPoint](bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(points, got, cmp.AllowUnexported(scalarPoint{}), cmp.Comparer(func(a, b number) bool { return a == b || a != a && b != b })); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestNoColourWithoutTerminal finds no escape in what goes to a file, whatever
// the variables say.
func TestNoColourWithoutTerminal(t *testing.T) {
	for _, args := range [][]string{
		{"ls", "../../fixtures/events"}, {"check", "../../fixtures/events"}, {"plot", "../../fixtures/events/tf1_filewriter"},
		{"verify", "../../fixtures/events"}, {"stat", "../../fixtures/events"}, {"help"},
	} {
		var out, words bytes.Buffer
		run(t.Context(), append([]string{"tfevents"}, args...), nil, &out, &words)
		if out.Len() == 0 || bytes.ContainsRune(append(out.Bytes(), words.Bytes()...), 0x1b) {
			t.Errorf("%q:\n%s%s", args, &out, &words)
		}
	}
}

// TestJSONIsLossless prints every fixture as JSON and makes it again: the bytes
// must be the same, whichever program wrote them.
func TestJSONIsLossless(t *testing.T) {
	names, err := filepath.Glob("../../fixtures/events/*/events.out.tfevents.*")
	if err != nil || len(names) < 15 {
		t.Fatal(names, err)
	}
	compared := 0
	for _, name := range names {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var lines, again, words bytes.Buffer
		args := []string{"tfevents", "cat", name, "--json"}
		if code := run(context.Background(), args, nil, &lines, &words); code != exitOK {
			if filepath.Base(filepath.Dir(name)) != "damaged" {
				t.Errorf("%s: exit code %d\n%s", name, code, &words)
			}
			continue
		}
		out := filepath.Join(t.TempDir(), "out")
		if code := run(context.Background(), []string{"tfevents", "write", out}, &lines, &again, &words); code != exitOK {
			t.Errorf("%s: write ended with %d\n%s", name, code, &words)
		}
		got, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, file) {
			t.Errorf("%s: file made from JSON differs", name)
		}
		compared++
	}
	if compared < 15 {
		t.Errorf("only %d files were compared", compared)
	}
}

// Python takes "-0" for an integer, which has no sign, and writes another NaN than Go.
func TestNumbersAsOthersReadAndWriteThem(t *testing.T) {
	line := `{"wall_time":-0,"summary":{"value":[{"tag":":-0,","simple_value":-0},{"tag":"h","histo":{"min":"NaN","max":-0,"sum":5,"bucket":[-0,1,-0,"NaN"]}}]}}`
	data, err := recordOf([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	nan := []byte{0, 0, 0, 0, 0, 0, 0xf8, 0x7f}
	if n := bytes.Count(data, nan); n != 2 {
		t.Errorf("%x has %d NaNs of NumPy, want 2", data, n)
	}
	const want = `{"wall_time":-0.0,"summary":{"value":[{"tag":":-0,","simple_value":-0.0},{"tag":"h","histo":{"min":"NaN","max":-0.0,"sum":5,"bucket":[-0.0,1,-0.0,"NaN"]}}]}}`
	if got, err := jsonLine(data); err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

// FuzzWriteLine gives lines that no `tfevents cat` has printed.
func FuzzWriteLine(f *testing.F) {
	for _, line := range []string{
		`{"step":"1"}`, `{}`, `null`, `[]`, `{"_raw":"AA=="}`, `{"_raw":1}`, `{"_run":"a","step":"2"}`, `{"_run":1,"_raw":""}`,
		`{"wall_time":"NaN","summary":{"value":[{"tag":"a","simple_value":"-Infinity"}]}}`, `{"fileVersion":"x"}`, `{"step":1e400}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		data, err := recordOf(line)
		if err != nil {
			return
		}
		again, err := jsonLine(data)
		if err != nil {
			t.Fatal(err)
		}
		back, err := recordOf(withRun(again, "a \"run\""))
		if err != nil || !bytes.Equal(back, data) {
			t.Fatalf("%q became %x, and by way of %s %x, %v", line, data, again, back, err)
		}
	})
}

func FuzzJSONLine(f *testing.F) {
	for _, name := range []string{"tf1_filewriter/events.out.tfevents.1699999990.goldenhost", "damaged/events.out.tfevents.1.bad_proto_good_crc", "damaged/events.out.tfevents.1.unknown_field"} {
		file, err := os.Open(filepath.Join("../../fixtures/events", name))
		if err != nil {
			f.Fatal(err)
		}
		r := tfrecord.NewReader(file)
		for {
			data, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				f.Fatal(err)
			}
			f.Add(bytes.Clone(data))
		}
		file.Close()
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		line, err := jsonLine(data)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.ContainsRune(line, '\n') {
			t.Fatalf("%q is more than one line", line)
		}
		again, err := recordOf(line)
		if err != nil || !bytes.Equal(again, data) {
			t.Fatalf("%x became %x, %v by way of %s", data, again, err, line)
		}
	})
}

// TestEveryCommandIsDescribed keeps the help complete.
func TestEveryCommandIsDescribed(t *testing.T) {
	for _, c := range newApp(nil, nil, nil).Commands {
		if c.Usage == "" || c.ArgsUsage == "" || c.Action == nil || strings.HasSuffix(c.Usage, ".") {
			t.Errorf("%s: usage %q, arguments %q", c.Name, c.Usage, c.ArgsUsage)
		}
	}
}
