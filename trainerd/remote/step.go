package remote

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/session"
)

// step is what one run asks for, in the form in which the server takes it: each
// tensor is fetched once, and none that is fed.
type step struct {
	feeds   []string
	fetches []string
	targets []string

	fed   map[string]bool
	asked []string // what the caller fetches, in order
}

// newStep brings names into the server's form.
func newStep(index *graphIndex, feeds, fetches, targets []string) (*step, error) {
	s := &step{fed: make(map[string]bool, len(feeds))}
	for _, name := range feeds {
		name = tensorName(name)
		if s.fed[name] {
			return nil, invalid("%q is fed twice", name)
		}
		s.fed[name] = true
		s.feeds = append(s.feeds, name)
	}
	fetched := make(map[string]bool, len(fetches))
	for _, name := range fetches {
		if name = tensorName(name); !s.fed[name] {
			name = index.fetched(name)
		}
		s.asked = append(s.asked, name)
		if !s.fed[name] && !fetched[name] {
			fetched[name] = true
			s.fetches = append(s.fetches, name)
		}
	}
	targeted := make(map[string]bool, len(targets))
	for _, name := range targets {
		if name = graph.NodeName(name); !targeted[name] {
			targeted[name] = true
			s.targets = append(s.targets, name)
		}
	}
	return s, nil
}

// idle reports whether there is nothing for the server to do.
func (s *step) idle() bool { return len(s.fetches) == 0 && len(s.targets) == 0 }

// results puts the tensors together that the caller asked for. value gives
// those that were fetched and those that were fed. A tensor that is asked for
// twice is given as two, for the caller owns them.
func (s *step) results(value func(name string) (*ckptfmt.Tensor, error)) ([]*ckptfmt.Tensor, error) {
	out := make([]*ckptfmt.Tensor, len(s.asked))
	given := make(map[string]*ckptfmt.Tensor, len(s.asked))
	for i, name := range s.asked {
		if t, ok := given[name]; ok {
			out[i] = clone(t)
			continue
		}
		t, err := value(name)
		if err != nil {
			return nil, err
		}
		if s.fed[name] {
			t = clone(t)
		}
		out[i], given[name] = t, t
	}
	return out, nil
}

// feedNames returns the names of feeds, sorted: the server compiles and keeps
// a graph for each order of the names.
func feedNames(feeds map[string]*ckptfmt.Tensor) []string {
	return slices.Sorted(maps.Keys(feeds))
}

// tensorName completes "node" to "node:0".
func tensorName(name string) string {
	if name == "" || strings.Contains(name, ":") || strings.HasPrefix(name, "^") {
		return name
	}
	return name + ":0"
}

// requestID returns a number by which the server knows a request again if the
// network brings it twice. Zero would mean that it need not look.
func requestID() int64 { return 1 + rand.Int64N(1<<62) }

// missing is the error for a server that left out a fetched tensor.
func missing(name string) error {
	return &session.OpError{Code: tfpb.Code_INTERNAL, Message: "the server did not send the fetched " + name}
}
