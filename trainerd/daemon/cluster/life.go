package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/session"
)

// A chief that evaluates, saves, is paused or waits for its workers makes no steps, and is alive all the
// same. It says so by a number on the servers, next to the tag, which it changes every lifeEvery.
const (
	lifeHas   = tagScope + "life_has"
	lifeRead  = tagScope + "life_read"
	lifeValue = tagScope + "life_value"
	lifeSet   = tagScope + "life_set"

	lifeEvery = 3 * time.Second
)

// addLife adds the number to a graph, on the device of another variable.
func addLife(def *tfpb.GraphDef, beside string) {
	number := attr.Type(tfpb.DataType_DT_INT64)
	scalar := attr.Shape(graph.MakeShape().Proto())
	node := nodeAdder(def, beside)
	const id = tagScope + "life"
	node(id, "VarHandleOp", graph.Attrs{"dtype": number, "shape": scalar, "shared_name": attr.String(id)})
	node(lifeHas, "VarIsInitializedOp", nil, id)
	node(lifeRead, "ReadVariableOp", graph.Attrs{"dtype": number}, id)
	node(lifeValue, "Placeholder", graph.Attrs{"dtype": number, "shape": scalar})
	node(lifeSet, "AssignVariableOp", graph.Attrs{"dtype": number}, id, lifeValue)
}

// readLife returns the number, 0 for none.
func readLife(ctx context.Context, sess session.Session) (int64, error) {
	out, err := sess.Run(ctx, nil, []string{lifeHas}, nil)
	if err != nil || len(out[0].Data) != 1 || out[0].Data[0] == 0 {
		return 0, err
	}
	if out, err = sess.Run(ctx, nil, []string{lifeRead}, nil); err != nil {
		return 0, err
	}
	return session.ScalarInt(out[0])
}

// life is the giving of signs by a session of a chief.
type life struct {
	begin, end sync.Once
	cancel     context.CancelFunc // nil before it has begun
	ended      chan struct{}
}

// beginLife gives signs until endLife is called.
func (w *watch) beginLife() {
	if w == nil {
		return
	}
	l := &w.owner.life
	l.begin.Do(func() {
		var ctx context.Context
		ctx, l.cancel = context.WithCancel(context.Background())
		l.ended = make(chan struct{})
		go func() {
			defer close(l.ended)
			for w.giveLife(ctx); !w.owner.taken.Load() && coord.Sleep(ctx, lifeEvery); {
				w.giveLife(ctx)
			}
		}()
	})
}

// endLife is called when the session is closed.
func (w *watch) endLife() {
	l := &w.owner.life
	l.end.Do(func() {
		if l.cancel != nil {
			l.cancel()
			<-l.ended
		}
	})
}

// giveLife gives a sign, also while variables are saved, and looks whose model is there. The call
// after a sign that was lost shows why.
func (w *watch) giveLife(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	number := program.Feed{lifeValue: ckptfmt.Scalar(time.Now().UnixNano())}
	if _, err := w.sess.RunWhileHeld(ctx, number, nil, []string{lifeSet}); err == nil {
		_ = w.checkModel(ctx)
	}
}
