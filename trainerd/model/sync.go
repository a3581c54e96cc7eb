package model

import (
	"github.com/trainerd/trainerd/trainerd/graph/optimizer"
)

// SyncReplicas says how many replicas train together.
type SyncReplicas struct {
	// Total is the number of replicas.
	Total int
	// Aggregate is the number of gradients in an update; 0 means Total. Fewer
	// than Total leave out the slowest, more let each replica contribute
	// several.
	Aggregate int
}

// Sync has the names of the nodes for replicas that wait for each other, in the
// terms of TensorFlow's SyncReplicasOptimizer. Model.TrainOp contributes the
// gradients of a batch, waits for a token, and notes the step in it.
type Sync struct {
	Aggregate, Total int

	Token     string // the step that the train op notes
	Give      string // the part of the train op before it waits
	Take      string // waits for one more token and notes its step
	NextToken string // which is this

	Update     string // the chief's: waits for gradients, applies them, gives out tokens
	InitTokens string // the chief's, once
	ChiefInit  string // the chief's local init op
	LocalInit  string // that of the others

	Left       string   // the number of gradients in each accumulator
	Discard    []string // the ops that take them out
	Tokens     string   // the number of tokens
	Drain      string   // takes TokenCount tokens out
	PutTokens  string   // puts TokenCount tokens of the present step in
	TokenCount string
}

func (m *maker) trainSync() {
	r := optimizer.SyncReplicas{Total: max(m.sync.Total, 1), Aggregate: m.sync.Aggregate}
	if r.Aggregate <= 0 {
		r.Aggregate = r.Total
	}
	s := optimizer.MinimizeSync(m.b, m.objective(), newOptimizer(m.cfg), learningRate(m.cfg), r, m.step, m.weights, m.updates...)
	if m.b.Err() != nil {
		return
	}
	m.out.TrainOp, m.rate = s.Train.Name(), s.Rate
	m.out.Sync = &Sync{
		Aggregate: r.Aggregate, Total: r.Total,
		Give: s.Give.Name(), Take: s.Take.Name(), Token: s.Token.Name(), NextToken: s.NextToken.Name(),
		Update: s.Update.Name(), InitTokens: s.InitTokens.Name(),
		ChiefInit: s.ChiefInit.Name(), LocalInit: s.LocalInit.Name(),
		Left: s.Left.Name(), Tokens: s.Tokens.Name(), Drain: s.Drain.Name(),
		PutTokens: s.PutTokens.Name(), TokenCount: s.TokenCount.Name(),
	}
	for _, n := range s.Discard {
		m.out.Sync.Discard = append(m.out.Sync.Discard, n.Name())
	}
}
