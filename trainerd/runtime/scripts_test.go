package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/opdef"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// script is the calls of one session as TensorFlow ran them; script.py next to
// the recordings says what is in them.
type script struct {
	dir    string
	graph  *tfpb.GraphDef
	calls  []scriptCall
	values map[string]*ckptfmt.Tensor
	files  map[string]string // a byte as the character with its number
}

type scriptCall struct {
	Fetches []string `json:"fetches"`
	Targets []string `json:"targets"`
	Feeds   []string `json:"feeds"`
	Error   string   `json:"error"` // the code
}

func loadScript(t *testing.T, dir string) *script {
	t.Helper()
	s := &script{dir: dir, values: map[string]*ckptfmt.Tensor{}}
	s.graph = readMeta(t, filepath.Join(dir, "graph.meta")).GetGraphDef()
	for _, nt := range bundle(t, filepath.Join(dir, "record")) {
		s.values[nt.Name] = nt.Tensor
	}
	s.read(t, "script.json", &s.calls)
	s.read(t, "files.json", &s.files)
	return s
}

// read decodes a file of the recording, if it is there.
func (s *script) read(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// writeFiles returns a new directory with the files that the calls start from.
func (s *script) writeFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range s.files {
		var data []byte
		for _, r := range text {
			data = append(data, byte(r))
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestScripts makes the recorded calls of sessions whose ops keep state from
// one call to the next, with the graph as it is and without the attributes that
// have their default.
func TestScripts(t *testing.T) {
	dirs, err := filepath.Glob(graphsDir + "/sessions/*/script.json")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, path := range dirs {
		s := loadScript(t, filepath.Dir(path))
		t.Run(filepath.Base(s.dir), func(t *testing.T) {
			s.play(t, s.graph)
			bare := proto.Clone(s.graph).(*tfpb.GraphDef)
			opdef.Strip(bare)
			s.play(t, bare)
		})
	}
}

func (s *script) play(t *testing.T, graph *tfpb.GraphDef) {
	t.Helper()
	sess, err := runtime.New(graph, &runtime.Options{Dir: s.writeFiles(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer sess.Close()
	for i := range s.calls {
		if err := s.call(sess, i); err != nil {
			t.Errorf("call %d, %v: %v", i, append(s.calls[i].Fetches, s.calls[i].Targets...), err)
		}
	}
}

// call makes one call and compares what it gives.
func (s *script) call(sess *runtime.Session, number int) error {
	c := s.calls[number]
	feeds := map[string]*ckptfmt.Tensor{}
	for _, name := range c.Feeds {
		feeds[name] = s.values[fmt.Sprintf("%03d/feed/%s", number, name)]
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	got, err := sess.Run(ctx, feeds, c.Fetches, c.Targets)
	if err := sameCode(err, c.Error); err != nil || c.Error != "" {
		return err
	}
	for i, name := range c.Fetches {
		want := s.values[fmt.Sprintf("%03d/fetch/%d", number, i)]
		rtol, atol := familyTolerance(want.DType)
		if err := compareHalves(got[i], want, rtol, atol); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// sameCode tells whether a run ended with the error that it should end with.
func sameCode(err error, want string) error {
	var op *session.OpError
	if err != nil && !errors.As(err, &op) || err != nil && op.Code.String() != want {
		return fmt.Errorf("got %w; want %q", err, want)
	}
	if err == nil && want != "" {
		return fmt.Errorf("no error; want %s", want)
	}
	return nil
}
