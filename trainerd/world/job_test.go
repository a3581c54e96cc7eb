//go:build unix

package world

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/model"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// A digest identifies all weights of a model.
type digest [sha256.Size]byte

// A job is one process of a training. Every step depends on all before it and on
// random numbers, so that whatever is lost, doubled or torn shows in the weights.
type job interface {
	// open makes a session: at the beginning, and when one was lost.
	open(ctx context.Context) (session.Session, error)
	meta() *tfpb.MetaGraphDef
	// step trains, and returns the global step with the loss.
	step(ctx context.Context, s session.Session) (int64, float64, error)
	// look reads and computes what an evaluation would.
	look(ctx context.Context, s session.Session) error
	digest(ctx context.Context, s session.Session) (digest, error)
}

// A jobKind is a kind of session with a kind of model.
type jobKind struct {
	name string
	most int64 // steps of a history
	make func() (job, error)
	// wrap hides what the Supervisor may not see of the session.
	wrap func(session.VariableStore) session.Session

	mu        sync.Mutex
	reference *reference
}

var jobKinds = []*jobKind{
	{name: "Go variables", most: 700, make: newGoJob},
	{name: "graph", most: 120, make: newGraphJob},
	{name: "graph, copied", most: 120, make: newGraphJob, wrap: func(s session.VariableStore) session.Session {
		return struct{ session.VariableStore }{s}
	}},
}

// at returns what the undisturbed training has after a step: the weights, and the
// losses up to there.
func (k *jobKind) at(ctx context.Context, step int64) (digest, []float64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.reference == nil {
		r, err := newReference(ctx, k)
		if err != nil {
			return digest{}, nil, err
		}
		k.reference = r
	}
	return k.reference.at(ctx, step)
}

// A reference is a training that nothing disturbs.
type reference struct {
	job     job
	session session.Session
	digests []digest  // after each step, from 0
	losses  []float64 // of the steps from 1
}

func newReference(ctx context.Context, k *jobKind) (*reference, error) {
	j, err := k.make()
	if err != nil {
		return nil, err
	}
	r := &reference{job: j}
	if r.session, err = j.open(ctx); err != nil {
		return nil, err
	}
	if init := j.meta().GetCollectionDef()["init_op"]; init != nil {
		if _, err := r.session.Run(ctx, nil, nil, init.GetNodeList().GetValue()); err != nil {
			return nil, err
		}
	}
	first, err := j.digest(ctx, r.session)
	r.digests = []digest{first}
	return r, err
}

func (r *reference) at(ctx context.Context, step int64) (digest, []float64, error) {
	for int64(len(r.losses)) < step {
		_, loss, err := r.job.step(ctx, r.session)
		if err != nil {
			return digest{}, nil, err
		}
		d, err := r.job.digest(ctx, r.session)
		if err != nil {
			return digest{}, nil, err
		}
		r.losses, r.digests = append(r.losses, loss), append(r.digests, d)
	}
	return r.digests[step], r.losses[:step], nil
}

// goJob keeps its parameters in Go.
type goJob struct {
	vars    trainerd.Variables
	weights []int64
	average []float32
	random  *rand.PCG
}

func newGoJob() (job, error) {
	j := &goJob{weights: []int64{1, 2, 3}, average: make([]float32, 40), random: rand.NewPCG(1, 2)}
	return j, errors.Join(j.vars.Int64("weights", j.weights), j.vars.Float32("average", j.average, 8, 5), j.vars.State("random", j.random))
}

func (j *goJob) open(ctx context.Context) (session.Session, error) { return j.vars.Session(ctx) }
func (j *goJob) meta() *tfpb.MetaGraphDef                          { return nil }

func (j *goJob) step(context.Context, session.Session) (int64, float64, error) {
	var loss float64
	n, err := j.vars.Step(func() error {
		draw := j.random.Uint64()
		i := draw % 3
		j.weights[i] = 31*j.weights[(i+1)%3] + int64(draw>>1)
		at := draw % uint64(len(j.average))
		j.average[at] = 0.9*j.average[at] + float32(draw>>40)
		loss = float64(draw >> 44)
		return nil
	})
	return n, loss, err
}

func (j *goJob) look(ctx context.Context, s session.Session) error {
	_, err := s.Run(ctx, nil, []string{"weights", "average"}, nil)
	return err
}

func (j *goJob) digest(context.Context, session.Session) (digest, error) {
	state, err := j.random.MarshalBinary()
	if err != nil {
		return digest{}, err
	}
	return sha256.Sum256(fmt.Append(nil, j.vars.GlobalStep(), j.weights, j.average, state)), nil
}

// graphJob trains a perceptron with dropout and Adam on the embedded runtime.
type graphJob struct {
	model *model.Model
}

func newGraphJob() (job, error) {
	m, err := model.Build(model.Config{Family: "mlp", Inputs: 4, Classes: 3, Hidden: []int{8}, Dropout: 0.3, Seed: 3, Optimizer: "adam"})
	return &graphJob{m}, err
}

func (j *graphJob) open(context.Context) (session.Session, error) {
	return runtime.New(j.model.Meta.GetGraphDef(), nil)
}

func (j *graphJob) meta() *tfpb.MetaGraphDef { return j.model.Meta }

// batch returns the examples of a step. They follow from its number, as those of
// a training that resumes exactly do.
func (j *graphJob) batch(step int64, training bool) map[string]*ckptfmt.Tensor {
	rnd := rand.New(rand.NewPCG(uint64(step), 9))
	x, y := make([]float32, 4*4), make([]int64, 4)
	for i := range x {
		x[i] = rnd.Float32()
	}
	for i := range y {
		y[i] = rnd.Int64N(3)
	}
	feeds := map[string]*ckptfmt.Tensor{j.model.X.Name: tensor([]int64{4, 4}, x), j.model.Y.Name: tensor([]int64{4}, y)}
	if j.model.Training != "" {
		feeds[j.model.Training] = ckptfmt.Scalar(training)
	}
	return feeds
}

// tensor makes a tensor whose shape fits.
func tensor[T ckptfmt.Element](shape []int64, values []T) *ckptfmt.Tensor {
	v, err := ckptfmt.FromValues(shape, values)
	if err != nil {
		panic(err)
	}
	return v
}

func (j *graphJob) step(ctx context.Context, s session.Session) (int64, float64, error) {
	before, err := session.ReadStep(ctx, s, "global_step")
	if err != nil {
		return 0, 0, err
	}
	out, err := s.Run(ctx, j.batch(before+1, true), []string{j.model.Loss}, []string{j.model.TrainOp})
	if err != nil {
		return 0, 0, err
	}
	loss, err := ckptfmt.Values[float32](out[0])
	if err != nil {
		return 0, 0, err
	}
	return before + 1, float64(loss[0]), nil
}

func (j *graphJob) look(ctx context.Context, s session.Session) error {
	_, err := s.Run(ctx, j.batch(0, false), []string{j.model.Loss, j.model.Predictions}, nil)
	return err
}

func (j *graphJob) digest(ctx context.Context, s session.Session) (digest, error) {
	store, ok := s.(session.VariableStore)
	if !ok {
		return digest{}, fmt.Errorf("%T gives no variables", s)
	}
	var names []string
	infos, err := store.Variables(ctx)
	if err != nil {
		return digest{}, err
	}
	for _, v := range infos {
		names = append(names, v.Name)
	}
	all, err := store.Snapshot(ctx, names)
	if err != nil {
		return digest{}, err
	}
	sum := sha256.New()
	for i, v := range all.Tensors {
		fmt.Fprintf(sum, "%s %d ", names[i], len(v.Data))
		sum.Write(v.Data)
	}
	for _, v := range all.State {
		fmt.Fprintf(sum, "%s ", v.Name)
		binary.Write(sum, binary.LittleEndian, int64(len(v.Tensor.Data)))
		sum.Write(v.Tensor.Data)
	}
	var d digest
	sum.Sum(d[:0])
	return d, nil
}
