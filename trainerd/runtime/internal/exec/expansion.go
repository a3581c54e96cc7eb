package exec

import (
	"fmt"
	"math"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// expansion is what the calls of functions add to a step. A function is compiled
// once for each call, so the number of nodes may be exponential in the size of
// the graph; counting them looks at each function once.
type expansion struct {
	sess *Session
	of   map[string]expanded // by function
}

// expanded is what one call of a function expands to.
type expanded struct {
	nodes int64 // its own, and those of the functions that it calls
	depth int   // how deep calls are nested, itself included
}

// endless is a function that calls itself: it is compiled without end.
var endless = expanded{math.MaxInt64, math.MaxInt}

func (a expanded) plus(b expanded) expanded {
	if a.nodes > math.MaxInt64-b.nodes {
		return expanded{math.MaxInt64, max(a.depth, b.depth)}
	}
	return expanded{a.nodes + b.nodes, max(a.depth, b.depth)}
}

// function counts what a call expands to. A function that does not exist, or is
// not valid, is nothing: the node that calls it reports that.
func (x *expansion) function(name string) expanded {
	if n, ok := x.of[name]; ok {
		return n
	}
	x.of[name] = endless // for its calls of itself
	n := expanded{}
	if f, err := x.sess.body(name); err == nil {
		n = x.body(f)
	}
	x.of[name] = n
	return n
}

func (x *expansion) body(f *body) expanded {
	c := newCompiler(x.sess, f.g, "", 1, nil)
	if c.addFeeds(f.args) != nil {
		return expanded{}
	}
	_, roots, err := c.roots(f.results, f.effects)
	if err != nil {
		return expanded{}
	}
	needed := c.prune(roots)
	sum := expanded{nodes: int64(len(f.g.nodes)), depth: 1}
	for i := range f.g.nodes {
		if !needed[i] {
			continue
		}
		for _, name := range f.g.nodes[i].calls {
			called := x.function(name)
			if called.depth < math.MaxInt {
				called.depth++
			}
			sum = sum.plus(called)
		}
	}
	return sum
}

// checkSize refuses a step whose calls of functions cannot be written out. It costs
// no more than looking at each function once.
func (c *compiler) checkSize(x *expansion, needed []bool) error {
	var sum expanded
	limit := c.sess.maxNodes
	for i := range c.g.nodes {
		n := &c.g.nodes[i]
		if !needed[i] {
			continue
		}
		for _, name := range n.calls {
			called := x.function(name)
			if called.depth > maxCallDepth {
				return &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Node: c.prefix + n.name, Op: n.op, Message: fmt.Sprintf(tooDeep, maxCallDepth, name)}
			}
			if sum = sum.plus(called); sum.nodes > int64(limit) {
				return exhausted(c.prefix+n.name, "the graph is too large with its function calls expanded: function %s expands to %d nodes here, and all calls of a step may add %d; let functions call each other less often",
					name, called.nodes, limit)
			}
		}
	}
	return nil
}

// checkSizes is [compiler.checkSize] of steps that are not known yet: each root
// is in one of them.
func (c *compiler) checkSizes(roots []int) error {
	x := &expansion{sess: c.sess, of: map[string]expanded{}}
	if c.checkSize(x, c.prune(slices.Clone(roots))) == nil {
		return nil
	}
	for _, root := range roots {
		if err := c.checkSize(x, c.prune([]int{root})); err != nil {
			return err
		}
	}
	return nil
}
