// Package trial finds out how a program trains by running it for a while: which of its lines are
// reports, which files are its checkpoints, and how it resumes. The findings become the config of a
// job.
//
// # Goroutines
//
// [Run] runs the program by package child, and for each start a goroutine that looks for
// files and ends the program. They have ended when Run returns.
package trial

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trainerd/trainerd/internal/lazyregexp"
	"github.com/trainerd/trainerd/trainerd/child"
	"github.com/trainerd/trainerd/trainerd/recipe"
)

// Options say what to run.
type Options struct {
	Command []string
	Dir     string // its working directory, in which it makes its files
	Logdir  string // what it finds in TRAINERD_LOGDIR
	// Limit is how long it runs at most from its first report, for which it has
	// Limit as often as startFactor says. It is ended before, once it has made reports and
	// two checkpoints.
	Limit          time.Duration
	Stdout, Stderr io.Writer // what the program says; nil for nowhere
}

// Findings are what is known of a program.
type Findings struct {
	Options
	Took    time.Duration
	Ended   bool     // it came to its end within the limit
	Failure error    // why it failed, nil if it did not
	Left    int      // processes that it has left running
	Reports int      // lines that were understood
	Last    int64    // the step of the last of them
	Tags    []string // the curves, in the order in which they came
	Recipe  string   // whose lines they were, "" for reports of the program's own
	Counted bool     // their steps were made up by counting
	Lines   []string // the first lines that were not understood
	Saved   *Saved   // its checkpoints, nil for none
	First   int64    // the step of the first
	Resume  recipe.Resume
	Resumes bool   // Resume is known
	Again   *Again // what another start did, nil where there was none
}

// startFactor is how many limits a program may take to its first report: some load
// for minutes before they train.
const startFactor = 3

// few is how many reports show what the lines of a program are like.
const few = 3

// grace is how long a program may take to end, once enough is known.
const grace = 20 * time.Second

// Run runs the program and returns what it has found. The error is that of a
// program which cannot be started.
func Run(ctx context.Context, o Options) (*Findings, error) {
	auto, err := recipe.Load(recipe.Auto)
	placing, placingErr := recipe.Load(recipe.Auto)
	if err := errors.Join(err, placingErr); err != nil {
		return nil, err
	}
	before, made := o.roots().look(), missing(o.Logdir)
	w := newWitness()
	sv := o.supervisor(auto, placing, w)
	begun := time.Now()
	trying, stop := context.WithCancel(ctx)
	defer stop()
	var looking sync.WaitGroup
	looking.Go(func() { watch(trying, o, before, w, stop) })
	exit, err := sv.Run(trying)
	stop()
	looking.Wait()
	f := &Findings{Options: o, Took: time.Since(begun), Ended: exit.Cause == child.Completed, Left: len(exit.Left)}
	var failed *child.ExitError
	if errors.As(err, &failed) {
		f.Failure = err
	} else if err != nil {
		return nil, err
	}
	w.tell(f)
	f.Saved = o.savedSince(before)
	f.findResume()
	if f.Saved != nil && f.Failure == nil && ctx.Err() == nil {
		if f.Again, err = f.startAgain(ctx, auto, placing, before); err != nil {
			return nil, err
		}
	}
	f.tidy(made)
	return f, ctx.Err()
}

// supervisor returns what keeps the program going. The recipe placing is auto once more, as each
// learns from what it reads.
func (o Options) supervisor(auto, placing *recipe.Recipe, w *witness) *child.Supervisor {
	return &child.Supervisor{
		Command: o.Command, Dir: o.Dir, Logdir: o.Logdir, Stdout: w.tee(o.Stdout), Stderr: w.tee(o.Stderr), Observer: w,
		Env: auto.EnvOf(recipe.Source(o.Dir, o.Command), func(key string) bool {
			_, ok := os.LookupEnv(key)
			return ok
		}),
		Restarts: child.Restarts{Max: -1}, Grace: grace,
		Lines: func(step int64) child.LineReader {
			w.reader = auto.NewReader(0) // what it says of its place is what is to be known
			w.placed = placing.NewReader(step)
			return w
		},
	}
}

// savedSince returns the checkpoints that have come since a look.
func (o Options) savedSince(before snapshot) *Saved {
	roots, lists := o.roots(), lists(recipe.Source(o.Dir, o.Command))
	changed := roots.look().since(before)
	if s := roots.savedIn(roots.near(changed), lists); s != nil {
		return s
	}
	return roots.savedIn(changed, lists)
}

// watch ends the program once enough is known.
func watch(ctx context.Context, o Options, before snapshot, w *witness, stop func()) {
	poll := time.NewTicker(time.Second)
	defer poll.Stop()
	over, reported := time.After(startFactor*o.Limit), false
	for enough := false; !enough; {
		select {
		case <-ctx.Done():
			return
		case <-over:
			enough = true
		case <-poll.C:
			enough = w.count() >= few && o.savedSince(before).count() > 1
		}
		if !reported && w.count() > 0 {
			over, reported = time.After(o.Limit), true
		}
	}
	o.awaitQuiet(ctx, before)
	stop()
}

// findResume finds out how the program resumes.
func (f *Findings) findResume() {
	source := recipe.Source(f.Dir, f.Command)
	for _, name := range []string{f.Recipe, recipe.Auto} { // its lines may be those of another kind
		r, err := recipe.Load(name)
		if f.Resumes || err != nil {
			continue
		}
		f.Resume, f.Resumes = r.ResumeOf(source)
	}
	if f.resumesByFlag() {
		f.Resume = recipe.Resume{Note: "its command line has " + f.Resume.Args[0]}
	}
}

// newestWord are values of an argument that have a program look for its newest checkpoint.
var newestWord = lazyregexp.New(`(?i)^(?:auto(?:matic)?|latest|last|newest|true|yes|1)$`)

// resumesByFlag reports whether the command line has the argument that makes the program
// resume already, other than with the name of one checkpoint: given twice, it may be an
// error.
func (f *Findings) resumesByFlag() bool {
	if len(f.Resume.Args) == 0 {
		return false
	}
	flag, takesValue := f.Resume.Args[0], len(f.Resume.Args) > 1
	for i, word := range f.Command {
		value, joined := strings.CutPrefix(word, flag+"=")
		switch {
		case joined && newestWord().MatchString(value), word == flag && !takesValue:
			return true
		case word == flag && i+1 < len(f.Command) && newestWord().MatchString(f.Command[i+1]):
			return true
		}
	}
	return false
}

// witness notes what a program says. It is an observer of its run, and reads its
// lines.
type witness struct {
	mu      sync.Mutex
	reader  *recipe.Reader
	placed  *recipe.Reader          // the same, from the step of the checkpoint on: what the run is told
	said    map[*child.Report]int64 // of lines, by the first reader: the step
	recipes map[string]int          // lines by recipe
	reports int
	first   int64
	last    int64
	tags    []string
	lines   []string
}

func newWitness() *witness {
	return &witness{recipes: map[string]int{}, said: map[*child.Report]int64{}}
}

// Read reads a line.
func (w *witness) Read(line string) *child.Report {
	return w.note(w.reader.Read(line), w.placed.Read(line))
}

// Flush returns what is left over at the end.
func (w *witness) Flush() *child.Report { return w.note(w.reader.Flush(), w.placed.Flush()) }

// note returns the report of a line, with the step that a reader says who knows the checkpoint.
func (w *witness) note(p, placed *recipe.Point) *child.Report {
	if p == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.recipes[p.Recipe]++
	r := &child.Report{Step: cmp.Or(placed, p).Step}
	for _, v := range p.Values {
		r.Values = append(r.Values, child.Value{Tag: v.Tag, Value: v.Value})
	}
	w.said[r] = p.Step
	return r
}

// Reported notes a report.
func (w *witness) Reported(r *child.Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	step, isOfLine := w.said[r]
	if delete(w.said, r); !isOfLine {
		step = r.Step
	}
	if w.reports++; w.reports == 1 {
		w.first = step
	}
	w.last = max(w.last, step)
	for _, v := range r.Values {
		if !slices.Contains(w.tags, v.Tag) {
			w.tags = append(w.tags, v.Tag)
		}
	}
}

// Started does nothing.
func (w *witness) Started(int, *child.Checkpoint) {}

// Saved does nothing: no checkpoints are looked after.
func (w *witness) Saved(child.Checkpoint) {}

// Paused does not come: nobody asks for it.
func (w *witness) Paused(bool) {}

// Waits implements [child.Observer].
func (w *witness) Waits(string) {}

// Ended does nothing.
func (w *witness) Ended(child.Exit, bool, time.Duration) {}

func (w *witness) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reports
}

// tell puts what was noted into the findings, when nothing more comes.
func (w *witness) tell(f *Findings) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f.Reports, f.First, f.Last, f.Tags, f.Lines = w.reports, w.first, w.last, w.tags, w.lines
	f.Recipe = kindOf(w.recipes)
	f.Counted = w.reader != nil && w.reader.Counted()
}

// tee returns a writer that shows lines, and keeps the first of them.
func (w *witness) tee(show io.Writer) io.Writer { return &tee{w, show} }

type tee struct {
	*witness
	show io.Writer
}

// Write takes a line.
func (t *tee) Write(b []byte) (int, error) {
	const most = 5
	t.mu.Lock()
	if line := strings.TrimSpace(string(b)); len(t.lines) < most && strings.ContainsAny(line, "0123456789") {
		t.lines = append(t.lines, line)
	}
	t.mu.Unlock()
	if t.show == nil {
		return len(b), nil
	}
	return t.show.Write(b)
}
