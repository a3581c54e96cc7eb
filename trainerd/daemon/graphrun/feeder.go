package graphrun

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/fileerr"
	"github.com/trainerd/trainerd/internal/lazyregexp"
	"github.com/trainerd/trainerd/internal/npy"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
)

// FeedError says that a value to be fed is missing, cannot be read, or does not
// fit the graph.
type FeedError struct {
	Source string // file, or prefix of the bundle
	Key    string // in the bundle, "" for a file
	Err    error
}

func (e *FeedError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("%s: %v", e.Source, e.Err)
	}
	return fmt.Sprintf("%s: %s: %v", e.Source, e.Key, e.Err)
}

func (e *FeedError) Unwrap() error { return e.Err }

// feeder has the values that are fed: some at every step, some each at its own.
type feeder struct {
	graph *graphFile
	fixed map[string]*ckptfmt.Tensor // by tensor

	prefix string // of the bundle, "" for none
	bundle *ckptfmt.BundleReader
	steps  []map[string]string // by step: keys in the bundle, by tensor
}

// newFeeder opens the feeds that o names and checks them against the graph. The
// values of the bundle are read step by step.
func newFeeder(g *graphFile, o *Options) (*feeder, error) {
	f := &feeder{graph: g, fixed: map[string]*ckptfmt.Tensor{}, prefix: o.Feeds}
	for _, assignment := range o.Feed {
		if err := f.addFile(g, assignment); err != nil {
			return nil, err
		}
	}
	if o.Feeds == "" {
		return f, nil
	}
	r, err := ckptfmt.OpenBundle(o.Feeds, nil)
	if err != nil {
		return nil, &FeedError{Source: o.Feeds, Err: err}
	}
	f.bundle = r
	if err := f.index(g); err != nil {
		r.Close()
		return nil, err
	}
	return f, nil
}

func (f *feeder) close() {
	if f.bundle != nil {
		f.bundle.Close()
	}
}

// addFile reads the value of NAME=FILE.npy, to be fed at every step.
func (f *feeder) addFile(g *graphFile, assignment string) error {
	name, file, ok := strings.Cut(assignment, "=")
	if !ok || name == "" || file == "" {
		return argumentErrorf("--feed %s: not of the form NAME=FILE.npy", assignment)
	}
	tensor, err := g.tensor("--feed", name)
	if err != nil {
		return err
	}
	if f.fixed[tensor] != nil {
		return argumentErrorf("--feed %s: %s is fed twice", assignment, tensor)
	}
	array, err := npy.ReadFile(file)
	var bad *npy.Error
	if errors.As(err, &bad) {
		return &FeedError{Source: file, Err: fmt.Errorf("offset %d: %s", bad.Offset, bad.Reason)}
	}
	if err != nil {
		return &FeedError{Source: file, Err: errors.New(fileerr.Cause(err))}
	}
	if err := g.checkFeed(tensor, array.DType, array.Shape); err != nil {
		return &FeedError{Source: file, Err: err}
	}
	value, err := g.narrowed(tensor, &ckptfmt.Tensor{DType: array.DType, Shape: array.Shape, Data: array.Data, Strings: array.Strings})
	if err != nil {
		return &FeedError{Source: file, Err: err}
	}
	f.fixed[tensor] = value
	return nil
}

// feedKeys is what a bundle of feeds has as keys.
var feedKeys = lazyregexp.New(`^step_([0-9]{3,9})/(.+)$`)

// maxFeedSteps bounds the steps that a key may count, for a damaged one.
const maxFeedSteps = 1 << 24

// index finds in the bundle what each step is fed.
func (f *feeder) index(g *graphFile) error {
	for info, err := range f.bundle.Tensors() {
		if err != nil {
			return &FeedError{Source: f.prefix, Err: err}
		}
		if err := f.addKey(g, info); err != nil {
			return &FeedError{Source: f.prefix, Key: info.Name, Err: err}
		}
	}
	if len(f.steps) == 0 {
		return &FeedError{Source: f.prefix, Err: errors.New("the bundle is empty; its keys must be step_000/PLACEHOLDER, step_001/PLACEHOLDER and so on")}
	}
	return nil
}

func (f *feeder) addKey(g *graphFile, info ckptfmt.TensorInfo) error {
	match := feedKeys().FindStringSubmatch(info.Name)
	if match == nil {
		return errors.New("the key is not of the form step_000/PLACEHOLDER")
	}
	step, err := strconv.Atoi(match[1])
	if err != nil || step >= maxFeedSteps {
		return fmt.Errorf("step %s is beyond the %d that a bundle can feed", match[1], maxFeedSteps)
	}
	tensor, err := g.tensor("feed", match[2])
	if err != nil {
		return err
	}
	if err := g.checkFeed(tensor, info.DType, info.Shape); err != nil {
		return err
	}
	if f.fixed[tensor] != nil {
		return fmt.Errorf("%s is fed by --feed, too", tensor)
	}
	for len(f.steps) <= step {
		f.steps = append(f.steps, nil)
	}
	if f.steps[step] == nil {
		f.steps[step] = map[string]string{}
	}
	if other := f.steps[step][tensor]; other != "" {
		return fmt.Errorf("%s is fed by the key %s, too", tensor, other)
	}
	f.steps[step][tensor] = info.Name
	return nil
}

// count returns how many steps are fed, or 1 when nothing says.
func (f *feeder) count() int {
	if f.bundle == nil {
		return 1
	}
	return len(f.steps)
}

// check makes sure that each of the first steps gets a value for every
// placeholder that the named tensors and nodes ("^node") need.
func (f *feeder) check(g *graphFile, steps int, names []string) error {
	if steps == 0 {
		return nil
	}
	if f.bundle == nil {
		return f.checkStep(g, 0, f.names(0), names)
	}
	if steps > len(f.steps) {
		return argumentErrorf("--steps %d: %s feeds %d steps", steps, f.prefix, len(f.steps))
	}
	var before []string
	for i := range steps {
		fed := f.names(i)
		if i > 0 && slices.Equal(fed, before) {
			continue
		}
		if err := f.checkStep(g, i, fed, names); err != nil {
			return err
		}
		before = fed
	}
	return nil
}

func (f *feeder) checkStep(g *graphFile, step int, fed, names []string) error {
	isFed := map[string]bool{}
	for _, tensor := range fed {
		isFed[tensor] = true
	}
	missing := g.needed(isFed, names)
	if len(missing) == 0 {
		return nil
	}
	var list []string
	for _, p := range missing {
		list = append(list, fmt.Sprintf("%s (%s)", p.Name, describePlaceholder(p)))
	}
	what, first := strings.Join(list, " and "), program.NodeOf(missing[0].Name)
	if f.bundle == nil {
		return argumentErrorf("%s needs a value for %s; feed it with --feed %s=FILE.npy, or with --feeds PREFIX", g.name, what, first)
	}
	return &FeedError{Source: f.prefix, Err: fmt.Errorf("step %d has no value for %s; its key is step_%03d/%s", step, what, step, first)}
}

// names returns the tensors that a step is fed, sorted.
func (f *feeder) names(step int) []string {
	var list []string
	for tensor := range f.fixed {
		list = append(list, tensor)
	}
	if step < len(f.steps) {
		for tensor := range f.steps[step] {
			list = append(list, tensor)
		}
	}
	slices.Sort(list)
	return list
}

// at returns what a step is fed.
func (f *feeder) at(step int) (map[string]*ckptfmt.Tensor, error) {
	if step >= len(f.steps) {
		return f.fixed, nil
	}
	feeds := make(map[string]*ckptfmt.Tensor, len(f.fixed)+len(f.steps[step]))
	maps.Copy(feeds, f.fixed)
	for tensor, key := range f.steps[step] {
		value, err := f.bundle.Lookup(key)
		if err == nil {
			value, err = f.graph.narrowed(tensor, value)
		}
		if err != nil {
			return nil, &FeedError{Source: f.prefix, Key: key, Err: err}
		}
		feeds[tensor] = value
	}
	return feeds, nil
}
