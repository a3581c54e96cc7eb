//go:build unix

package world

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	tfpb "github.com/trainerd/trainerd/proto"
)

// A clusterDefect is planted where a job meets the servers or its disk. A nil one is
// none. What trainerd does wrong with the servers' answers is had by wrong answers.
type clusterDefect struct {
	name    string
	seed    uint64 // the first to try
	found   string // what is said of it, as a regular expression
	disk    func(atomicfile.FS) atomicfile.FS
	servers func(*simCluster)
	mute    string // beginning of log lines that are not written
	unlock  bool   // the lock does not hold
}

var clusterDefects = []*clusterDefect{
	{name: "a chief does not find its own model alive", seed: 3, found: "on servers that have lost nothing", servers: neverAlive},
	{name: "a model that is not ready for a moment is none", seed: 1, found: "on servers that have lost nothing", servers: notReadyOnce},
	{name: "a worker does not wait for the chief", seed: 15, found: "that the chief has not made ready", servers: func(c *simCluster) { c.spoil = alwaysReady }},
	{name: "a restore without a new generation", seed: 4, found: "without a new generation", servers: func(c *simCluster) {
		var mu sync.Mutex
		first := ""
		c.alter = func(_ *tfSession, req *tfpb.RunStepRequest) {
			mu.Lock()
			defer mu.Unlock()
			switch tag, sets := tagOf(req); {
			case sets && tag != "" && first == "":
				first = tag
			case sets && tag != "":
				req.Feed[0].Tensor.StringVal = [][]byte{[]byte(first)}
			}
		}
	}},
	{name: "files are not synced", seed: 6, found: "there is no intact checkpoint", disk: faultfs.NoSync.Over},
	{name: "a log is silent while it waits", seed: 1, found: "is silent for", mute: "still "},
	{name: "the lock does not hold", seed: 7, found: "a second chief ends with", unlock: true},
}

// tagging notes which sessions have set a tag. It is for one goroutine at a time.
type tagging map[*tfSession]bool

// sees takes a request, and reports whether a chief looks with it for its own model.
func (s tagging) sees(o *tfSession, req *tfpb.RunStepRequest) bool {
	if _, sets := tagOf(req); sets {
		s[o] = true
	}
	return o.task() == 0 && !s[o] && slices.Equal(req.GetFetch(), []string{runTag + "read:0"})
}

// neverAlive hides from a chief that its own model is alive.
func neverAlive(c *simCluster) {
	var mu sync.Mutex
	sessions := tagging{}
	c.spoil = func(o *tfSession, req *tfpb.RunStepRequest, resp *tfpb.RunStepResponse, err error) (*tfpb.RunStepResponse, error) {
		mu.Lock()
		defer mu.Unlock()
		if sessions.sees(o, req) && err == nil {
			resp.Tensor[0].Tensor.StringVal = [][]byte{nil}
		}
		return resp, err
	}
}

// notReadyOnce says once in each session of a chief that finds its model alive that a
// variable has no value.
func notReadyOnce(c *simCluster) {
	var mu sync.Mutex
	finds, sessions := map[*tfSession]bool{}, tagging{}
	c.spoil = func(o *tfSession, req *tfpb.RunStepRequest, resp *tfpb.RunStepResponse, err error) (*tfpb.RunStepResponse, error) {
		mu.Lock()
		defer mu.Unlock()
		looks := sessions.sees(o, req)
		if o.task() != 0 || err != nil || len(req.GetFetch()) != 1 {
			return resp, err
		}
		switch fetch := req.GetFetch()[0]; {
		case looks:
			finds[o] = len(resp.Tensor[0].Tensor.StringVal[0]) > 0
		case strings.Contains(fetch, "report_uninitialized") && finds[o]:
			finds[o] = false
			names, err := ckptfmt.FromValues([]int64{1}, []string{"weights"})
			if err != nil {
				return nil, err
			}
			resp.Tensor[0].Tensor = names.Proto()
		}
		return resp, err
	}
}

// alwaysReady answers workers that the model is ready.
func alwaysReady(o *tfSession, req *tfpb.RunStepRequest, resp *tfpb.RunStepResponse, err error) (*tfpb.RunStepResponse, error) {
	i := slices.Index(req.GetFetch(), runTag+"read:0")
	has := slices.Equal(req.GetFetch(), []string{runTag + "has:0"})
	if o.task() == 0 || i < 0 && !has {
		return resp, err
	}
	if has {
		resp.Tensor[0].Tensor = ckptfmt.Scalar(true).Proto()
		return resp, err
	}
	if i > 0 && err != nil {
		return resp, err
	}
	text, _ := os.ReadFile(o.master.runID)
	id, _, _ := bytes.Cut(text, []byte("\n"))
	tag := &ckptfmt.Tensor{DType: tfpb.DataType_DT_STRING, Strings: [][]byte{append(id, "\nready"...)}}
	resp.Tensor = append(resp.Tensor[:i], &tfpb.NamedTensorProto{Name: req.GetFetch()[i], Tensor: tag.Proto()})
	return resp, nil
}

func (d *clusterDefect) overServers(h *clusterHistory) {
	h.cluster.runID = filepath.Join(h.dir, "run-id")
	if d != nil && d.servers != nil {
		d.servers(h.cluster)
	}
}

func (d *clusterDefect) overDisk(fsys atomicfile.FS) atomicfile.FS {
	if d == nil || d.disk == nil {
		return fsys
	}
	return d.disk(fsys)
}

func (d *clusterDefect) mutes(line string) bool {
	return d != nil && d.mute != "" && strings.HasPrefix(line, d.mute)
}

func (d *clusterDefect) unlocks() bool { return d != nil && d.unlock }

// Each planted defect of jobs on servers is found.
func TestClusterDefectsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("some 100 histories")
	}
	const most = 100
	for _, d := range clusterDefects {
		t.Run(d.name, func(t *testing.T) {
			for seed := d.seed; seed < d.seed+most; seed++ {
				_, err := firstClusterPlan(seed).run(t, d, nil)
				if err == nil || !regexp.MustCompile(d.found).MatchString(err.Error()) {
					continue
				}
				t.Logf("seed %d: %v", seed, err)
				if _, err := firstClusterPlan(seed).run(t, nil, nil); err != nil {
					t.Errorf("seed %d breaks a rule without the defect too: %v", seed, err)
				}
				return
			}
			t.Errorf("not found in %d histories", most)
		})
	}
}
