package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/control"
)

func newestStep(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 3)
	_, step := newest(ts.MkAbs(args[0]))
	more, err := strconv.ParseInt(args[2], 10, 64)
	ts.Check(err)
	ts.Setenv(args[1], strconv.FormatInt(step+more, 10))
}

func texts(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 1)
	files, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "events.out.tfevents.*"))
	ts.Check(err)
	for _, name := range files {
		f, err := os.Open(name)
		ts.Check(err)
		for e := range tfevents.NewReader(f).Events() {
			for _, v := range e.GetSummary().GetValue() {
				for _, text := range v.GetTensor().GetStringVal() {
					fmt.Fprintln(ts.Stdout(), e.GetStep(), v.GetTag(), string(text))
				}
			}
		}
		f.Close()
	}
}

func get(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("want a logdir, a path, and perhaps a token")
	}
	addr, err := httpAddr(ts.MkAbs(args[0]))
	ts.Check(err)
	r, err := http.NewRequest(http.MethodGet, "http://"+addr+args[1], nil)
	ts.Check(err)
	if len(args) == 3 {
		r.Header.Set("Authorization", "Bearer "+args[2])
	}
	w, err := http.DefaultClient.Do(r)
	ts.Check(err)
	defer w.Body.Close()
	_, err = io.Copy(ts.Stdout(), w.Body)
	ts.Check(err)
}

// httpAddr returns where a run answers over HTTP, from its log.
func httpAddr(logdir string) (addr string, err error) {
	client := control.NewClient(logdir)
	defer client.Close()
	err = client.Logs(context.Background(), 1000, false, func(line []byte) error {
		var entry struct{ Msg, Addr string }
		err := json.Unmarshal(line, &entry)
		if entry.Msg == "answering over HTTP" {
			addr = entry.Addr
		}
		return err
	})
	if err == nil && addr == "" {
		err = errors.New("the log has no address")
	}
	return addr, err
}

func TestAgo(t *testing.T) {
	now := time.Now()
	for want, at := range map[string]time.Time{"5m0s ago": now.Add(-5 * time.Minute), "0s ago": now, now.Add(24 * time.Hour).Format(time.DateTime): now.Add(24 * time.Hour)} {
		if got := ago(at); got != want {
			t.Errorf("%v: %q, want %q", at.Sub(now), got, want)
		}
	}
}

func TestReadable(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{"plain", `{"time":"x","level":"INFO","msg":"saved","step":7,"took":"1s"}`, "x INFO  saved step=7 took=1s"},
		{"quoted", `{"time":"","level":"WARN","msg":"a b","err":"c \"d\"","n":{"x":[1, 2]},"e":""}`, ` WARN  a b err="c \"d\"" n="{\"x\":[1, 2]}" e=""`},
		{"order", `{"level":"INFO","msg":"m","z":1,"a":2,"m":3}`, " INFO  m z=1 a=2 m=3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := readable([]byte(c.line)); err != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
	for _, line := range []string{"", "x", "[]", `{"a":`, `{"a":1`, "null", `"a"`} {
		if got, err := readable([]byte(line)); err == nil {
			t.Errorf("%q becomes %q", line, got)
		}
	}
}

// TestStatusInZoneOfReader checks that times are those of the clock of who asks, and not of
// the zone that the run has.
func TestStatusInZoneOfReader(t *testing.T) {
	at := time.Date(2126, 11, 28, 14, 0, 0, 0, time.FixedZone("", 5*3600+1)) // no zone is that of the machine
	want := at.Local().Format(time.DateTime)
	var b strings.Builder
	if err := showText(&b, &control.Status{Started: at}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got, want) {
		t.Errorf("status has %q, want %s", got, want)
	}
	if got := ago(at); got != want {
		t.Errorf("ago: %s, want %s", got, want)
	}
}

// TestRunOfAnother shows a live run whose answers were written to mislead the terminal of root.
func TestRunOfAnother(t *testing.T) {
	const odd = "a\x1b[2J\u009b1Ab\nc"
	st := &control.Status{Job: odd, Logdir: odd, Phase: odd, Waiting: odd, Restored: odd, Saved: &control.Saved{Step: -1, Checkpoint: odd}}
	var b strings.Builder
	if err := showText(&b, st); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); strings.ContainsAny(got, "\x1b\u009b") || strings.Contains(got, "b\nc") {
		t.Errorf("status: %q", got)
	}
	entry, err := json.Marshal(map[string]string{"time": odd, "level": odd, "msg": odd, odd: odd, "x": "\x1b[2J"})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range [][]byte{entry, []byte(odd)} {
		b.Reset()
		if err := printEntry(&b, line, false); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); strings.ContainsAny(got, "\x1b\u009b") || strings.Count(got, "\n") != 1 {
			t.Errorf("logs: %q", got)
		}
	}
}

// TestJobNames finds the folder of a job by what people type for it.
func TestJobNames(t *testing.T) {
	services := t.TempDir()
	for _, name := range []string{"digits", "a-b", `my\x20job`, `gr\xc3\xb6\xc3\x9fe`, `x\x2dy\x20z`} {
		if err := os.Mkdir(filepath.Join(services, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(t.TempDir())
	for arg, want := range map[string]string{
		"digits": "digits", "trainerd@digits": "digits", "trainerd@digits.service": "digits", "a-b": "a-b",
		"my job": `my\x20job`, `my\x20job`: `my\x20job`, "größe": `gr\xc3\xb6\xc3\x9fe`, "x-y z": `x\x2dy\x20z`,
	} {
		if got, err := logdirAmong(services, arg); err != nil || got != filepath.Join(services, want) {
			t.Errorf("%s: %s, %v, want %s", arg, got, err, want)
		}
	}
}
