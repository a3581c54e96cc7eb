// Replay runs recorded programs on the embedded runtime, for the tests that
// compare it with TensorFlow.
//
//	replay OUT RECORDED...
//
// runs the programs of the folders RECORDED and writes what each did to the
// bundle OUT/<name>, in the form of the recording. Each runs a second time
// without the attributes that have the op's default, as strip_default_attrs
// exports graphs, which must give the same bytes. For each it prints one JSON
// object that says whether it ran to its end.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/metagraph"
	"github.com/trainerd/trainerd/internal/opdef"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: replay OUT RECORDED...")
		os.Exit(2)
	}
	if err := replayAll(os.Args[1], os.Args[2:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(1)
	}
}

// outcome is what is printed for a program.
type outcome struct {
	Program string `json:"program"`
	Error   string `json:"error,omitempty"`
	Code    string `json:"code,omitempty"` // of an error of the runtime
	Steps   int    `json:"steps"`          // that ran before the error
	// Stripped is how many attributes the second run did without.
	Stripped int `json:"stripped"`
}

// replayAll fails only when it cannot print: a program that fails says so in
// its outcome.
func replayAll(out string, dirs []string, w io.Writer) error {
	enc := json.NewEncoder(w)
	for _, dir := range dirs {
		o := outcome{Program: filepath.Base(dir)}
		if err := replayBoth(dir, filepath.Join(out, o.Program), &o); err != nil {
			o.Error = err.Error()
			var op *session.OpError
			if errors.As(err, &op) {
				o.Code = op.Code.String()
			}
		}
		if err := enc.Encode(o); err != nil {
			return err
		}
	}
	return nil
}

// program is the recording's program.json.
type program struct {
	Steps     int               `json:"steps"`
	TrainOp   string            `json:"train_op"`
	InitOps   []string          `json:"init_ops"`
	Start     []string          `json:"start"` // run once, one after the other
	After     []string          `json:"after"` // run after each step
	Fetches   map[string]string `json:"fetches"`
	Variables []string          `json:"variables"`
}

// player runs one program.
type player struct {
	program
	sess *runtime.Session
	log  *ckptfmt.BundleWriter
}

// replayBoth runs a program as it is and with its attributes stripped.
func replayBoth(dir, out string, o *outcome) error {
	meta, err := metagraph.Read(filepath.Join(dir, "graph.meta"))
	if err != nil {
		return err
	}
	if err := replay(dir, meta.GetGraphDef(), out, &o.Steps); err != nil {
		return err
	}
	if o.Stripped = opdef.Strip(meta.GetGraphDef()); o.Stripped == 0 {
		return nil
	}
	bare, steps := out+".stripped", 0
	if err := replay(dir, meta.GetGraphDef(), bare, &steps); err != nil {
		return fmt.Errorf("without default attributes: %w", err)
	}
	for _, end := range []string{".index", ".data-00000-of-00001"} {
		a, errA := os.ReadFile(out + end)
		b, errB := os.ReadFile(bare + end)
		if err := errors.Join(errA, errB); err != nil {
			return err
		}
		if !bytes.Equal(a, b) {
			return fmt.Errorf("without default attributes the results differ: see %s and %s", out, bare)
		}
	}
	return nil
}

func replay(dir string, def *tfpb.GraphDef, out string, steps *int) error {
	var p player
	text, err := os.ReadFile(filepath.Join(dir, "program.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &p.program); err != nil {
		return err
	}
	init, feeds, err := recorded(filepath.Join(dir, "record"), p.Steps)
	if err != nil {
		return err
	}
	if p.sess, err = runtime.New(def, nil); err != nil {
		return err
	}
	defer p.sess.Close()
	if p.log, err = ckptfmt.CreateBundle(out, nil); err != nil {
		return err
	}
	defer p.log.Close()
	if err := p.play(init, feeds, steps); err != nil {
		return err
	}
	return p.log.Finish()
}

// recorded reads the initial variables and the feeds of each step.
func recorded(prefix string, steps int) ([]ckptfmt.NamedTensor, []map[string]*ckptfmt.Tensor, error) {
	r, err := ckptfmt.OpenBundle(prefix, nil)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	var init []ckptfmt.NamedTensor
	feeds := make([]map[string]*ckptfmt.Tensor, steps)
	for i := range feeds {
		feeds[i] = map[string]*ckptfmt.Tensor{}
	}
	for info, err := range r.Tensors() {
		if err != nil {
			return nil, nil, err
		}
		t, err := r.Lookup(info.Name)
		if err != nil {
			return nil, nil, err
		}
		part, name, _ := strings.Cut(info.Name, "/")
		switch part {
		case "init":
			init = append(init, ckptfmt.NamedTensor{Name: name, Tensor: t})
		case "feeds":
			step, placeholder, _ := strings.Cut(name, "/")
			var n int
			if _, err := fmt.Sscanf(step, "step_%d", &n); err != nil || n < 0 || n >= steps {
				return nil, nil, fmt.Errorf("%s: the key %q names no step", prefix, info.Name)
			}
			feeds[n][placeholder] = t
		}
	}
	return init, feeds, nil
}

// play initialises the variables in the program's way, notes them, sets them to
// the recorded ones and runs the steps.
func (p *player) play(init []ckptfmt.NamedTensor, feeds []map[string]*ckptfmt.Tensor, steps *int) error {
	ctx := context.Background()
	if _, err := p.sess.Run(ctx, nil, nil, p.InitOps); err != nil {
		return err
	}
	if err := p.runEach(ctx, p.Start); err != nil {
		return err
	}
	if err := p.noteVariables("init/"); err != nil {
		return err
	}
	if err := p.sess.Restore(ctx, init); err != nil {
		return err
	}
	keys := slices.Sorted(maps.Keys(p.Fetches))
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = p.Fetches[key]
	}
	for n, feed := range feeds {
		values, err := p.sess.Run(ctx, feed, names, []string{p.TrainOp})
		if err != nil {
			return err
		}
		if err := p.runEach(ctx, p.After); err != nil {
			return err
		}
		for i, v := range values {
			if err := p.log.Add(fmt.Sprintf("fetches/step_%03d/%s", n, keys[i]), v); err != nil {
				return err
			}
		}
		*steps = n + 1
	}
	return p.noteVariables("final/")
}

// runEach runs ops one after the other.
func (p *player) runEach(ctx context.Context, names []string) error {
	for _, name := range names {
		if _, err := p.sess.Run(ctx, nil, nil, []string{name}); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) noteVariables(prefix string) error {
	snap, err := p.sess.Snapshot(context.Background(), p.Variables)
	if err != nil {
		return err
	}
	for i, v := range snap.Tensors {
		if err := p.log.Add(prefix+p.Variables[i], v); err != nil {
			return err
		}
	}
	return nil
}
