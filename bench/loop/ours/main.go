// Command ours is this project's part in the races of bench/loop: how much a
// training loop suffers from being kept alive.
package main

import (
	"context"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/trainerd/trainerd/bench/measure"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/session"
)

func main() {
	log.SetFlags(0)
	contestants := map[string]func(o options) (*measure.Result, error){
		"bare":       func(o options) (*measure.Result, error) { return trivial(o, false) },
		"supervised": func(o options) (*measure.Result, error) { return trivial(o, true) },
		"stall":      func(o options) (*measure.Result, error) { return stall(o, newGoState) },
		"machine":    machine,
		"graph":      func(o options) (*measure.Result, error) { return stall(o, newGraphState) },
		"restart":    restart,
		"read":       readFile,
	}
	if len(os.Args) < 2 || contestants[os.Args[1]] == nil {
		log.Fatal("usage: ours bare|supervised|stall|machine|graph|restart|read [-dir DIR] [-n STEPS] [-mib MIB] [-saves N] [-undeclared] [-all] [-copying]")
	}
	var o options
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	flags.StringVar(&o.dir, "dir", "", "empty folder to work in")
	flags.IntVar(&o.steps, "n", 400_000, "steps")
	flags.IntVar(&o.mib, "mib", 1024, "size of the state in MiB")
	flags.IntVar(&o.saves, "saves", 3, "checkpoints to write")
	flags.BoolVar(&o.undeclared, "undeclared", false, "steps do not say what they change")
	flags.BoolVar(&o.all, "all", false, "steps of a graph change all tensors")
	flags.BoolVar(&o.copying, "copying", false, "a save of a graph begins with a copy of all tensors")
	flags.Parse(os.Args[2:])
	r, err := contestants[os.Args[1]](o)
	if err != nil {
		log.Fatal(err)
	}
	r.CPUSeconds = measure.CPUTime().Seconds()
	if err := r.Print(); err != nil {
		log.Fatal(err)
	}
}

type options struct {
	dir               string
	steps, mib, saves int
	undeclared        bool
	all, copying      bool
}

// descend is a trivial step: some ten microseconds of arithmetic. It is one and
// the same code for both contestants.
//
//go:noinline
func descend(w []float64) {
	for i := range w {
		w[i] += 1e-3 * (float64(i) - w[i])
	}
}

func digest(w []float64) string { return fmt.Sprintf("%.12g", w[len(w)-1]) }

// trivial makes steps, bare or under a Supervisor that saves and writes
// summaries every second.
func trivial(o options, supervised bool) (*measure.Result, error) {
	const size = 60_000
	w := make([]float64, size)
	started := time.Now()
	if !supervised {
		for range o.steps {
			descend(w)
		}
		return &measure.Result{Work: fmt.Sprintf("%d steps, digest %s", o.steps, digest(w)), Seconds: time.Since(started).Seconds(), Metrics: map[string]float64{}}, nil
	}
	vars := new(trainerd.Variables)
	if err := vars.Float64("w", w); err != nil {
		return nil, err
	}
	saves := 0
	sv := &trainerd.Supervisor{
		Logdir: o.dir, NewSession: vars.Session,
		SaveModelEvery: time.Second, SaveSummariesEvery: time.Second,
		SummaryOp: trainerd.SummaryFunc(lossSummary),
		OnSave:    func(trainerd.SavedCheckpoint) { saves++ },
	}
	var took time.Duration
	err := sv.Run(context.Background(), func(ctx context.Context, _ session.Session) error {
		started := time.Now()
		defer func() { took = time.Since(started) }()
		for range o.steps {
			n, err := vars.Step(func() error { descend(w); return nil })
			if err != nil {
				return err
			}
			if err := sv.StepDone(ctx, n); err != nil {
				return err
			}
		}
		return nil
	})
	return &measure.Result{Work: fmt.Sprintf("%d steps, digest %s", o.steps, digest(w)), Seconds: took.Seconds(),
		Metrics: map[string]float64{"saves": float64(saves)}}, err
}

func lossSummary(ctx context.Context, s session.Session) (*tfpb.Summary, error) {
	return summary.New(summaryv1.Scalar("loss", 0.5)), nil
}

// model is a state of many tensors; its steps change one more, a small one, or all.
type model interface {
	Session(context.Context) (session.Session, error)
	step() (int64, error)
}

const tensorMiB = 16

// state is a model in Go slices.
type state struct {
	*trainerd.Variables
	undeclared bool
	hot        []float32
}

func newGoState(o options) (model, error) {
	s, err := newState(o.mib, true)
	if err != nil {
		return nil, err
	}
	s.undeclared = o.undeclared
	return s, nil
}

func newState(mib int, fill bool) (*state, error) {
	s := &state{Variables: new(trainerd.Variables), hot: make([]float32, 1000)}
	err := s.Float32("hot", s.hot)
	for i := 0; i < mib/tensorMiB && err == nil; i++ {
		t := make([]float32, tensorMiB<<20/4)
		for j := range t {
			if fill {
				t[j] = float32(i + j)
			}
		}
		err = s.Float32(fmt.Sprintf("weights/%03d", i), t)
	}
	return s, err
}

func (s *state) step() (int64, error) {
	change := func() error {
		for i := range s.hot {
			s.hot[i]++
		}
		return nil
	}
	if s.undeclared {
		return s.Step(change)
	}
	return s.StepOn([]string{"hot"}, change)
}

// stall measures steps while checkpoints of a large state are written next to
// them.
func stall(o options, newModel func(options) (model, error)) (*measure.Result, error) {
	m, err := newModel(o)
	if err != nil {
		return nil, err
	}
	saved := make(chan struct{}, o.saves)
	sv := &trainerd.Supervisor{
		Logdir: o.dir, NewSession: m.Session, NoSummaryWriter: true, NoReport: true,
		SaveModelEvery: -1, SaveModelSteps: 1 << 40, // the loop below says when
		Saver:  &checkpoint.Saver{MaxToKeep: 1},
		OnSave: func(trainerd.SavedCheckpoint) { saved <- struct{}{} },
	}
	r := newStall(o)
	var bare, beside, calls, first []time.Duration
	started := time.Now()
	err = sv.Run(context.Background(), func(ctx context.Context, _ session.Session) error {
		steps := 200_000
		if o.all {
			steps = 20
		}
		for range steps {
			if err := timeStep(ctx, sv, m, &bare, nil); err != nil {
				return err
			}
		}
		for i := range o.saves {
			call := time.Now()
			n := int64(i+1) << 40 // a multiple of SaveModelSteps
			if err := sv.StepDone(ctx, n); err != nil {
				return err
			}
			calls = append(calls, time.Since(call))
			next := len(beside)
			for done := false; !done; {
				select {
				case <-saved:
					done = true
				default:
				}
				if err := timeStep(ctx, sv, m, &beside, &n); err != nil {
					return err
				}
			}
			first = append(first, calls[i]+beside[next])
		}
		return nil
	})
	r.Seconds = time.Since(started).Seconds()
	r.Metrics["caller_ms"] = ms(slices.Max(calls))
	r.Metrics["call_and_step_ms"] = ms(slices.Max(first))
	noteSteps(r, bare, beside)
	return r, err
}

// machine is the limit: the same steps next to a thread that only computes, about
// as long as a save takes. What its longest step is, the machine did.
func machine(o options) (*measure.Result, error) {
	s, err := newState(tensorMiB, true)
	if err != nil {
		return nil, err
	}
	r := newStall(o)
	step := func() error { _, err := s.step(); return err }
	var bare, beside []time.Duration
	started := time.Now()
	for range 200_000 {
		if err := timed(&bare, step); err != nil {
			return nil, err
		}
	}
	busy := time.Duration(o.saves) * time.Duration(o.mib) * time.Millisecond
	done := make(chan uint32)
	go func() {
		crc := uint32(0)
		b := make([]byte, 1<<16)
		for began := time.Now(); time.Since(began) < busy; {
			crc = crc32.Update(crc, crc32.IEEETable, b)
		}
		done <- crc
	}()
	for {
		select {
		case <-done:
			r.Seconds = time.Since(started).Seconds()
			noteSteps(r, bare, beside)
			return r, nil
		default:
		}
		if err := timed(&beside, step); err != nil {
			return nil, err
		}
	}
}

// newStall begins the result of a contestant in the races with a save.
func newStall(o options) *measure.Result {
	return &measure.Result{Work: fmt.Sprintf("%d MiB in %d tensors, %d saves during the steps", o.mib, o.mib/tensorMiB, o.saves), Metrics: map[string]float64{}}
}

// timed calls f and notes how long it took.
func timed(to *[]time.Duration, f func() error) error {
	began := time.Now()
	err := f()
	*to = append(*to, time.Since(began))
	return err
}

// noteSteps notes how long steps took alone and with something next to them.
func noteSteps(r *measure.Result, bare, beside []time.Duration) {
	slices.Sort(bare)
	slices.Sort(beside)
	r.Metrics["worst_ms"] = ms(beside[len(beside)-1])
	r.Metrics["p999_ms"] = ms(at(beside, 0.999))
	r.Metrics["bare_p999_ms"] = ms(at(bare, 0.999))
	first, _ := slices.BinarySearch(beside, time.Millisecond)
	r.Metrics["over_1ms"] = float64(len(beside) - first)
}

// timeStep makes a step and notes how long it took. A step number that is given
// stays as it is, so that the step does not save.
func timeStep(ctx context.Context, sv *trainerd.Supervisor, m model, to *[]time.Duration, number *int64) error {
	return timed(to, func() error {
		n, err := m.step()
		if err != nil {
			return err
		}
		if number != nil {
			n = *number
		}
		return sv.StepDone(ctx, n)
	})
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func at(sorted []time.Duration, q float64) time.Duration {
	return sorted[int(q*float64(len(sorted)-1))]
}

// prepare writes the checkpoint that restart and readFile read.
func prepare(o options) error {
	s, err := newState(o.mib, true)
	if err != nil {
		return err
	}
	_, err = new(checkpoint.Saver).Save(context.Background(), s, filepath.Join(o.dir, "model.ckpt"), 1)
	return err
}

func restartWork(o options) string { return fmt.Sprintf("%d MiB back in memory", o.mib) }

// restart measures from the beginning of a run to its first new step.
func restart(o options) (*measure.Result, error) {
	if err := prepare(o); err != nil {
		return nil, err
	}
	s, err := newState(o.mib, false)
	if err != nil {
		return nil, err
	}
	var took time.Duration
	started := time.Now()
	sv := &trainerd.Supervisor{Logdir: o.dir, NewSession: s.Session}
	err = sv.Run(context.Background(), func(ctx context.Context, _ session.Session) error {
		_, err := s.step()
		took = time.Since(started)
		return err
	})
	return &measure.Result{Work: restartWork(o), Seconds: took.Seconds(), Metrics: map[string]float64{}}, err
}

// readFile is the limit: it reads the data file and does nothing with it.
func readFile(o options) (*measure.Result, error) {
	if err := prepare(o); err != nil {
		return nil, err
	}
	started := time.Now()
	f, err := os.Open(filepath.Join(o.dir, "model.ckpt-1.data-00000-of-00001"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, tensorMiB<<20)
	for err == nil {
		_, err = f.Read(b)
	}
	if err != io.EOF {
		return nil, err
	}
	return &measure.Result{Work: restartWork(o), Seconds: time.Since(started).Seconds(), Metrics: map[string]float64{}}, nil
}
