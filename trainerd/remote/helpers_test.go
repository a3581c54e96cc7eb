package remote

import (
	"cmp"
	"errors"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

var smallGraph = &tfpb.GraphDef{Node: []*tfpb.NodeDef{{Name: "x", Op: "Placeholder"}, {Name: "y", Op: "Identity", Input: []string{"x"}}}}

func dial(t *testing.T, target string, o *Options) *Client {
	t.Helper()
	var opts Options
	if o != nil {
		opts = *o
	}
	opts.ConnectTimeout = cmp.Or(opts.ConnectTimeout, patience)
	c, err := Dial(t.Context(), target, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// open starts a fake and opens a session on it.
func open(t *testing.T) (*fakeMaster, *Client, *Session) {
	t.Helper()
	f := startFake(t)
	f.step = echo
	c := dial(t, f.target(), nil)
	return f, c, newSession(t, c)
}

func newSession(t *testing.T, c *Client) *Session {
	t.Helper()
	s, err := c.NewSession(t.Context(), smallGraph, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func vector(v ...float32) *ckptfmt.Tensor {
	t, err := ckptfmt.FromValues([]int64{int64(len(v))}, v)
	if err != nil {
		panic(err)
	}
	return t
}

// wantError checks the code, by the sentinel, and what the text says.
func wantError(t *testing.T, err, sentinel error, parts ...string) {
	t.Helper()
	if !errors.Is(err, sentinel) {
		t.Fatalf("got error %v, want one of the kind %v", err, sentinel)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}
