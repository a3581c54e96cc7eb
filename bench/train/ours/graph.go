package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/bench/measure"
	"github.com/trainerd/trainerd/ckptfmt"
)

// manifest is what is read of a recorded program's description.
type manifest struct {
	Program string            `json:"program"`
	Steps   int               `json:"steps"`
	TrainOp string            `json:"train_op"`
	InitOp  string            `json:"init_op"`
	Fetches map[string]string `json:"fetches"`
	Feeds   []string          `json:"feeds"`
}

func readManifest(dir string) (*manifest, error) {
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		return nil, err
	}
	m := &manifest{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, err
	}
	slices.Sort(m.Feeds)
	return m, nil
}

// smallGraph trains a recorded program on its recorded feeds, over and over.
func smallGraph(ctx context.Context, o *options) (*measure.Result, error) {
	m, err := readManifest(o.dir)
	if err != nil {
		return nil, err
	}
	sess, err := session(filepath.Join(o.dir, "graph.meta"))
	if err != nil {
		return nil, err
	}
	defer sess.Close()
	if _, err := sess.Run(ctx, nil, nil, []string{m.InitOp}); err != nil {
		return nil, err
	}
	feeds, err := readFeeds(o.dir, m)
	if err != nil {
		return nil, err
	}
	train, err := sess.MakeCallable(ctx, m.Feeds, nil, []string{m.TrainOp})
	if err != nil {
		return nil, err
	}
	r, err := trainSteps(ctx, train, o.steps, func(i int) []*ckptfmt.Tensor { return feeds[i%len(feeds)] })
	if err != nil {
		return nil, err
	}
	named := map[string]*ckptfmt.Tensor{}
	for i, name := range m.Feeds {
		named[name] = feeds[0][i]
	}
	out, err := sess.Run(ctx, named, []string{m.Fetches["loss"]}, nil)
	if err != nil {
		return nil, err
	}
	loss := math.Float32frombits(binary.LittleEndian.Uint32(out[0].Data))
	r.Work = fmt.Sprintf("%s, %d steps, loss %.2f", m.Program, o.steps, loss)
	return r, nil
}

// readFeeds returns the recorded feeds by step, in the order of the manifest.
func readFeeds(dir string, m *manifest) ([][]*ckptfmt.Tensor, error) {
	b, err := ckptfmt.OpenBundle(filepath.Join(dir, "feeds", "feeds"), nil)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	feeds := make([][]*ckptfmt.Tensor, m.Steps)
	for i := range feeds {
		for _, name := range m.Feeds {
			t, err := b.Lookup(fmt.Sprintf("step_%03d/%s", i, strings.TrimSuffix(name, ":0")))
			if err != nil {
				return nil, err
			}
			feeds[i] = append(feeds[i], t)
		}
	}
	return feeds, nil
}

// start runs the whole `trainerd graph run` for one step. Building the command
// is not part of the time.
func start(ctx context.Context, o *options) (*measure.Result, error) {
	m, err := readManifest(o.dir)
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "trainerd-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	command := filepath.Join(temp, "trainerd")
	build := exec.CommandContext(ctx, "go", "build", "-o", command, "./cmd/trainerd")
	build.Dir = filepath.Join(o.area, "..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	var out []byte
	r, err := timed(func() (err error) {
		out, err = exec.CommandContext(ctx, command, "graph", "run", "--json", "--steps", "1", "--restore", filepath.Join(o.dir, "init", "model.ckpt-0"),
			"--feeds", filepath.Join(o.dir, "feeds", "feeds"), "--fetch", m.Fetches["loss"], "--target", m.TrainOp, filepath.Join(o.dir, "graph.meta")).Output()
		return err
	})
	if err != nil {
		return nil, err
	}
	var line struct {
		Fetches map[string]float64 `json:"fetches"`
	}
	if err := json.Unmarshal(out, &line); err != nil {
		return nil, errors.Join(err, fmt.Errorf("the output was %q", out))
	}
	r.Work = fmt.Sprintf("%s, first loss %.3f", m.Program, line.Fetches[m.Fetches["loss"]])
	return r, nil
}
