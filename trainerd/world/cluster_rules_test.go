//go:build unix

package world

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/session"
)

// runTag begins the names of the nodes of a model's tag.
const runTag = "trainerd_run/"

// observe judges the model on the servers after each call that may have changed it.
func (h *clusterHistory) observe(o *tfSession, req *tfpb.RunStepRequest, began time.Time) {
	if len(req.GetTarget()) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.cluster.parameterServers()
	if o.parameterServers() != now {
		return // of servers that are gone
	}
	step, err := o.stepOfModel()
	if errors.Is(err, session.ErrCancelled) {
		return // its master is gone
	}
	if err != nil {
		h.noteLocked(broke("the model cannot be read: %w", err))
		return
	}
	if now != h.servers {
		h.servers, h.ready, h.highest = now, false, -1
		h.lostPast = h.lostPast || h.complete
	}
	h.judgeModel(o.task(), req, step, began)
}

// judgeModel judges what the servers hold. The caller holds mu.
func (h *clusterHistory) judgeModel(task int, req *tfpb.RunStepRequest, step int64, began time.Time) {
	tag, tags := tagOf(req)
	switch {
	case tags && tag != "":
		h.judgeReady(tag, step)
	case tags:
		h.ready, h.taken = false, time.Now()
	case trains(req):
		h.made[task]++
		if task == 0 {
			h.trained.Add(int64(h.plan.stepTime / 2)) // on average
		}
		if task != 0 && !h.ready && began.After(h.taken) { // else it was under way when the chief began
			h.noteLocked(broke("worker %d trains a model that the chief has not made ready", task))
		}
	}
	if !h.ready {
		return
	}
	if step < h.highest {
		h.noteLocked(broke("the model was at step %d on servers that have lost nothing, and is at step %d", h.highest, step))
	}
	h.highest = max(h.highest, step)
}

// judgeReady judges a model that the chief makes ready. The caller holds mu.
func (h *clusterHistory) judgeReady(tag string, step int64) {
	switch {
	case step < h.saved:
		h.noteLocked(broke("the model is made ready at step %d; %d was announced as saved", step, h.saved))
	case h.tagged[tag]:
		h.noteLocked(broke("the model is made ready at step %d without a new generation", step))
	}
	if h.unsaved || h.forgotten {
		h.highest = -1
	}
	h.forgotten = false
	h.ready, h.tagged[tag] = true, true
}

// tagOf returns the tag that a request sets, "" for the claim of a chief that is about to.
func tagOf(req *tfpb.RunStepRequest) (tag string, sets bool) {
	for _, f := range req.GetFeed() {
		if f.GetName() != runTag+"value:0" {
			continue
		}
		t, err := ckptfmt.TensorFromProto(f.GetTensor())
		if err != nil || len(t.Strings) != 1 || bytes.HasPrefix(t.Strings[0], []byte("claimed by ")) {
			return "", true
		}
		return string(t.Strings[0]), true
	}
	return "", false
}

// trains reports whether a request is a step on a batch.
func trains(req *tfpb.RunStepRequest) bool {
	if len(req.GetFetch()) == 0 {
		return false
	}
	for _, f := range req.GetFeed() {
		if !strings.HasPrefix(f.GetName(), runTag) {
			return true
		}
	}
	return false
}

// stepIn returns the step that a checkpoint has. Its name may say less: another worker has
// made a step while the chief had the servers save, as it may with TensorFlow's own saver.
func stepIn(prefix string) (int64, error) {
	r, err := ckptfmt.Open(prefix, nil)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	t, err := r.Lookup(session.DefaultGlobalStep)
	if err != nil {
		return 0, err
	}
	return session.ScalarInt(t)
}

// judgeEnd judges the logdir of a job that is complete.
func (h *clusterHistory) judgeEnd(ctx context.Context) error {
	if err := h.tasks[0].settle(ctx, false); err != nil {
		return err
	}
	if err := noTemps(h.dir); err != nil && h.tasks[0].fs.Ops() > 0 { // the logdir of a complete job is left as it is
		return err
	}
	newest, _, err := ckptdir.NewestIntact(ctx, h.dir)
	if err != nil {
		return broke("the job is complete: %w", err)
	}
	step, err := stepIn(newest.Prefix)
	if err != nil {
		return broke("the job is complete: %w", err)
	}
	if last := h.plan.lastStep(); step < last || step >= last+int64(h.plan.workers) {
		return broke("a job of %d steps is complete with a newest intact checkpoint of step %d", last, step)
	}
	_, err = curvesOf(h.dir, tfevents.PurgeExact)
	return err
}
