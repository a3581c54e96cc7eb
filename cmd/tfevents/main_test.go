package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tfevents": main})
}

// TestScripts runs the stories in testdata. Beside the usual commands they have
//
//	exits N COMMAND                 run a command that must end with the exit code N
//	session FILE START FIRST LAST V add to a file the events of a training: START
//	                                unless it is "-", and loss=V at the steps
//	cut FILE N                      remove the last N bytes of a file
//	flip FILE N                     flip a bit of byte N
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
			"exits": exits, "session": session, "cut": cut, "flip": flip,
		},
	})
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
	w := tfevents.NewEventsWriter(&file, nil)
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		ts.Check(err)
		return n
	}
	if args[1] != "-" {
		ts.Check(w.WriteEvent(&tfpb.Event{Step: number(args[1]), What: &tfpb.Event_SessionLog{
			SessionLog: &tfpb.SessionLog{Status: tfpb.SessionLog_START},
		}}))
	}
	value, err := strconv.ParseFloat(args[4], 64)
	ts.Check(err)
	for step := number(args[2]); step <= number(args[3]); step++ {
		s := tfevents.NewSummary(tfevents.Scalar("loss", value))
		ts.Check(w.WriteEvent(&tfpb.Event{WallTime: float64(step), Step: step, What: &tfpb.Event_Summary{Summary: s}}))
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

func FuzzJSONLine(f *testing.F) {
	for _, name := range []string{"tf1_filewriter/events.out.tfevents.1699999990.goldenhost", "damaged/events.out.tfevents.1.bad_proto_good_crc", "damaged/events.out.tfevents.1.unknown_field"} {
		file, err := os.Open(filepath.Join("../../fixtures/events", name))
		if err != nil {
			f.Fatal(err)
		}
		r := tfevents.NewRecordReader(file)
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
	for _, c := range commands() {
		if c.Usage == "" || c.ArgsUsage == "" || strings.HasSuffix(c.Usage, ".") {
			t.Errorf("%s: usage %q, arguments %q", c.Name, c.Usage, c.ArgsUsage)
		}
	}
}
