package rewrite

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt/mapping"
)

func TestTakeOffPrefix(t *testing.T) {
	for _, c := range []struct{ about, source, wanted, prefix, want string }{
		{"DistributedDataParallel", "module.a.w module.b.w", "a.w b.w", "module.", "a.w b.w"},
		{"compiled, in a LightningModule, next to its optimizer", "state_dict.model._orig_mod.a.w optimizer_states.0.step", "a.w b.w",
			"state_dict.model._orig_mod.", "a.w optimizer_states.0.step"},
		{"a program's own", "net.a.w net.b.w", "a.w", "net.", "a.w b.w"},
		{"a program's own, and others", "net.a.w head.w", "a.w", "", "head.w net.a.w"},
		{"two models", "model.a.w module.a.w", "a.w", "", "model.a.w module.a.w"},
		{"the target has it", "model.a.w model.b.w", "model.a.w a.w b.w", "", "model.a.w model.b.w"},
		{"a name that is there", "model.a.w model.b.w b.w", "a.w", "", "b.w model.a.w model.b.w"},
		{"another model", "module.a.w", "c.w", "", "module.a.w"},
	} {
		s := sourceOf(t, strings.Fields(c.source), nil)
		prefix, err := s.TakeOffPrefix(strings.Fields(c.wanted))
		if err != nil || prefix != c.prefix {
			t.Errorf("%s: %q, %v; want %q", c.about, prefix, err, c.prefix)
		}
		if diff := cmp.Diff(strings.Fields(c.want), left(s)); diff != "" {
			t.Errorf("%s: %s", c.about, diff)
		}
	}
}

// The names that a map makes have prefixes too, with slashes where it writes these.
func TestTakeOffPrefixOfMappedNames(t *testing.T) {
	for _, c := range []struct{ source, wanted, prefix, want string }{
		{"module.a.w module.b.w", "a/w", "module/", "a/w b/w"},
		{"state_dict.model.a.w state_dict.model.b.w", "a/w", "state_dict/model/", "a/w b/w"},
		{"net.a.w head.w", "a/w", "", "head/w net/a/w"},
		{"model.a.w module.a.w", "a/w", "", "model/a/w module/a/w"},
	} {
		m, err := mapping.Parse("m", []byte("separator = ['.', '/']\n[[rule]]\nfrom = '(.*)'\nto = '$1'"))
		if err != nil {
			t.Fatal(err)
		}
		s := sourceOf(t, strings.Fields(c.source), nil)
		if _, err := s.Map(m); err != nil {
			t.Fatal(err)
		}
		prefix, err := s.TakeOffPrefix(strings.Fields(c.wanted))
		if err != nil || prefix != c.prefix {
			t.Errorf("%s: %q, %v; want %q", c.source, prefix, err, c.prefix)
		}
		if diff := cmp.Diff(strings.Fields(c.want), left(s)); diff != "" {
			t.Errorf("%s: %s", c.source, diff)
		}
	}
	// Names of TensorFlow have slashes of their own: the scope of a model is none of the usual prefixes.
	s := sourceOf(t, []string{"model/a/w"}, nil)
	if prefix, err := s.TakeOffPrefix([]string{"a/w"}); prefix != "" || err != nil {
		t.Errorf("a scope: %q, %v", prefix, err)
	}
}
