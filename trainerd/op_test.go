package trainerd

import (
	"context"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/trainerd/session"
)

func TestOpText(t *testing.T) {
	for op, want := range map[string]Op{"default": {}, "none": None(), "a, b:0": Nodes("a", "b:0")} {
		if want.String() != op {
			t.Errorf("String = %q; want %q", want, op)
		}
	}
	if !None().IsNone() || None().IsDefault() || !(Op{}).IsDefault() || !Nodes().IsNone() || Nodes().IsDefault() {
		t.Error("default and none are not told apart")
	}
	if got := Func(func(context.Context, session.Session) error { return nil }).String(); !strings.Contains(got, "Go function") {
		t.Errorf("String = %q", got)
	}
}
