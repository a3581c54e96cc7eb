//go:build unix

package world

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A program is a training, or its part on a node, in one process that trainerd has started. What it does is
// known: the loss of each step, and the bytes of each checkpoint.
type program struct {
	*childNode
	*process
	args  []string
	env   map[string]string
	lines io.Writer // of what it reports; nil for the output of its process

	crew     *crew // with the parts of it on other nodes
	step     int64
	first    int64 // the step that it has begun with
	has      int64 // the step of its newest checkpoint
	number   int64 // of its newest save
	loaded   bool  // it has its checkpoint, or begins without one
	poisoned bool  // the loss is NaN
	term     bool  // it got SIGTERM
	asked    bool  // it got the signal that makes it save
	stopped  bool  // it got SIGSTOP
	tears    bool  // it will be killed in its next copy of a checkpoint
}

func newProgram(n *childNode, cmd *exec.Cmd) *program {
	p := &program{childNode: n, args: cmd.Args[1:], env: map[string]string{}}
	for _, variable := range cmd.Env {
		key, value, _ := strings.Cut(variable, "=")
		p.env[key] = value
	}
	return p
}

// lossAt is the loss of a step, and valueAt that of the metric that is measured at
// some.
func lossAt(step int64) float64 { return 1 / float64(step+1) }

func valueAt(step int64) (v float64, measured bool) {
	return math.Abs(math.Sin(float64(step))), step%3 == 0
}

// run is the main function of the program.
func (p *program) run(at *process) (code int, sig syscall.Signal) {
	p.process = at
	if p.lines == nil {
		p.lines = at.out
	}
	p.crew = p.crewOf(p.env["TRAINERD_RENDEZVOUS"])
	err := p.begin()
	p.loaded = err == nil
	for err == nil && p.step < p.plan.steps {
		err = p.trainStep()
	}
	if err == nil && p.has < p.step {
		err = p.save()
	}
	if err == nil && !p.plan.apart {
		err = p.meet(p.step + 1)
	}
	p.noteEnd()
	p.crew.leave(p.node, err == nil)
	p.set(func() { p.gaps = append(p.gaps, p.crew.unheard()) })
	var ending *programEnd
	switch {
	case err == nil:
		p.completed.Store(true)
		return 0, 0
	case errors.As(err, &ending):
		if ending.sig == 0 && !p.term {
			p.failed.Store(!p.plan.elastic) // on other nodes it is ended, too
			p.reported.Store(0)             // a stop that comes now has lost nothing
		}
		return ending.code, ending.sig
	}
	return 1, 0 // a disk that is full, or a killed one, whose code is another's
}

// programEnd is how a program ends before its time.
type programEnd struct {
	code int
	sig  syscall.Signal
}

func (e *programEnd) Error() string { return fmt.Sprintf("exit code %d, %v", e.code, e.sig) }

func (p *program) saves() bool { return p.plan.way != nil }

// begin takes the checkpoint that the program is given, or the newest one that it
// finds.
func (p *program) begin() error {
	p.failed.Store(false)
	p.reported.Store(0) // what was not saved before is lost by the end of that start
	if !p.crew.join(p.node) {
		return &programEnd{code: 75} // it wants to be started again, with the others
	}
	if err := p.awaitCrew(func() bool { return p.crew.ranks != nil }); err != nil {
		return err
	}
	if err := p.sleep(p.plan.loadTime); err != nil {
		return err
	}
	if p.failsAtStart() {
		return &programEnd{code: 1}
	}
	if !p.saves() {
		return nil
	}
	name := p.env["TRAINERD_CHECKPOINT"]
	if p.plan.picks {
		name = p.newest()
	}
	if err := p.judgeArgs(p.env["TRAINERD_CHECKPOINT"]); err != nil {
		p.note(err)
	}
	p.note(p.judgeSecondName())
	if name == "" {
		p.note(p.judgeBegin(0))
		return nil
	}
	step, err := p.plan.way.load(name, p.dir)
	if errors.Is(err, errPartial) && p.plan.way.partial && p.mayBePart() {
		p.note(p.judgeBegin(0))
		return nil
	}
	if p.isKilled() {
		return errDead
	}
	if err != nil && p.plan.picks && p.makesNoFolder() {
		return &programEnd{code: 1} // the folder for what is damaged cannot be made either
	}
	if err != nil {
		err = broke("the program was given %s: %w", name, err)
	} else {
		err = p.judgeBegin(step)
	}
	p.note(err)
	p.step, p.first, p.has, p.number = step, step, step, stepOfName(name)
	p.saved.Store(step)
	return err
}

// newest returns the checkpoint with the highest step, for a program that looks for
// it by itself.
func (p *program) newest() string {
	names, _ := filepath.Glob(filepath.Join(p.dir, p.plan.way.pattern))
	names = slices.DeleteFunc(names, func(name string) bool { return strings.Contains(name, ".tmp") })
	if len(names) == 0 {
		return ""
	}
	return slices.MaxFunc(names, func(a, b string) int { return int(stepOfName(a) - stepOfName(b)) })
}

func stepOfName(name string) (step int64) {
	fmt.Sscanf(name[strings.LastIndexByte(name, '-')+1:], "%d", &step)
	return step
}

// trainStep makes a step, reports it, and saves if that is due.
func (p *program) trainStep() error {
	if err := p.sleep(p.plan.stepTime); err != nil {
		return err
	}
	if p.leads() {
		p.trained.Add(int64(p.plan.stepTime))
	}
	if err := p.meet(p.step + 1); err != nil {
		return err
	}
	p.step++
	fault, late := p.crew.fault()
	p.poisoned = p.poisoned || p.step == fault
	if p.poisoned && late {
		if err := errors.Join(p.save(), p.sleep(10*time.Second)); err != nil { // it is found meanwhile
			return err
		}
	}
	if err := p.report(); err != nil {
		return err
	}
	if err := p.happen(); err != nil {
		return err
	}
	if p.plan.every > 0 && p.step%p.plan.every == 0 || p.crew.saveAfter(p.step) {
		p.asked = false
		if err := p.save(); err != nil {
			return err
		}
		if p.failsNow() {
			return &programEnd{code: 1}
		}
	}
	if p.term && !p.asked {
		return &programEnd{code: p.plan.termCode}
	}
	return nil
}

// report prints the loss and the metric.
func (p *program) report() error {
	loss := fmt.Sprint(lossAt(p.step))
	if p.poisoned {
		loss = "NaN"
	}
	line := fmt.Sprintf(`{"step": %d, "loss": %s`, p.step, loss)
	if v, ok := valueAt(p.step); ok {
		line += fmt.Sprintf(`, "val/metric": %v`, v)
	}
	line += "}\n"
	if p.plan.plain {
		line = fmt.Sprintf("at step %d the loss is %s\n", p.step, loss)
	}
	if p.defect.losesLine(p.step) {
		line = ""
	}
	if p.plan.silent || !p.plan.loud && !p.leads() {
		line = ""
	}
	_, err := p.lines.Write([]byte(line))
	p.crew.reports(p.node, p.step)
	if !p.failed.Load() && !p.plan.silent {
		p.reported.Store(p.step)
	}
	return err
}

// save saves, if there is anything to save with, and it is the part that does.
func (p *program) save() error {
	rank, leader := p.crew.rank(p.node)
	p.has, p.number = p.step, p.number+1
	if !p.saves() || rank < 0 || !p.plan.parts && rank != leader {
		return nil
	}
	share := share{rank, len(p.crew.ranks)}
	if !p.plan.parts {
		share = whole
	}
	step, has := p.step, p.step
	if p.poisoned {
		has += poison
	}
	files := p.plan.way.filesOf(p.number, step)
	err := p.plan.way.save(p.process, p.dir, files, step, has, share, func() error { return p.sleep(p.plan.saveTime) })
	if err != nil || !p.crew.hasSaved(p.node, step) {
		return err
	}
	if !p.poisoned {
		p.saved.Store(step)
	}
	return p.nameAgain(topOf(files))
}

// sleep lets time pass, and takes signals.
func (p *program) sleep(d time.Duration) error {
	over := time.NewTimer(d)
	defer over.Stop()
	passed := false
	for !passed || p.stopped {
		select {
		case <-p.killed:
			return errDead
		case <-over.C:
			passed = true
		case sig := <-p.inbox:
			if err := p.take(sig); err != nil {
				return err
			}
		}
	}
	return nil
}

// take does what a signal says.
func (p *program) take(sig syscall.Signal) error {
	switch sig {
	case syscall.SIGSTOP, syscall.SIGCONT:
		p.stopped = sig == syscall.SIGSTOP
	case syscall.SIGTERM:
		switch {
		case p.plan.manners == rude:
			return &programEnd{code: -1, sig: sig}
		case p.term:
			return nil // it is doing so
		}
		p.term = true
		if p.plan.manners == polite && p.plan.parts && p.loaded {
			p.asked = true // all save after the same step
			return nil
		}
		if p.plan.manners == polite && p.loaded && p.has < p.step { // else it would write over what was announced, perhaps in part
			if err := p.save(); err != nil {
				return err
			}
		}
		return &programEnd{code: p.plan.termCode}
	case syscall.SIGUSR1:
		if p.plan.signal == "" {
			return &programEnd{code: -1, sig: sig}
		}
		p.asked = true
	}
	return nil
}

// happen does what the event of the life says at its step.
func (p *program) happen() error {
	if p.isOver(p.step) {
		close(p.over)
	}
	if p.step < p.when || p.node != p.target {
		return nil
	}
	if !p.reachedOnce() || p.event.program == nil {
		return nil
	}
	return p.event.program(p)
}

// orphan starts a worker of the group that writes for a while, whatever becomes of its
// leader.
func (p *program) orphan(rnd *rand.Rand) {
	deaf, lasts := rnd.IntN(2) == 0, between(rnd, time.Second, time.Hour)
	leader, dir := p.process, p.dir
	p.process.machine.start(leader, leader.id, func(w *process) (int, syscall.Signal) {
		over := time.After(lasts)
		for n := 0; ; n++ {
			select {
			case <-w.killed:
				return -1, syscall.SIGKILL
			case <-over:
				return 0, 0
			case sig := <-w.inbox:
				if sig == syscall.SIGTERM && !deaf {
					return -1, sig
				}
			case <-time.After(20 * time.Second):
				writeSlowly(w, filepath.Join(dir, fmt.Sprintf("worker-%d-%d", w.pid, n)), "what a worker has to say", func() error { return nil })
			}
		}
	})
}
