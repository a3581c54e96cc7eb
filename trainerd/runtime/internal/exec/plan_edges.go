package exec

// edge leads from one node to another.
type edge struct{ from, to int }

// edges are the edges of a graph by the nodes that they come from.
type edges struct {
	first []int // by node: its first in to; one more at the end
	to    []int
}

// edgesOf sorts edges by the nodes that they come from. Those of one node keep their
// order.
func edgesOf(nodes int, list []edge) edges {
	e := edges{first: make([]int, nodes+1), to: make([]int, len(list))}
	for _, x := range list {
		e.first[x.from+1]++
	}
	for i := range nodes {
		e.first[i+1] += e.first[i]
	}
	next := append([]int(nil), e.first...)
	for _, x := range list {
		e.to[next[x.from]] = x.to
		next[x.from]++
	}
	return e
}

// from returns the nodes that the edges of node n lead to.
func (e *edges) from(n int) []int { return e.to[e.first[n]:e.first[n+1]] }
