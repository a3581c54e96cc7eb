package trainerd

import (
	"testing"

	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// The training session of a store is one too, and leads to the original.
func TestManagedSession(t *testing.T) {
	v := new(Variables)
	s := manage(v, nil, nil)
	if w, ok := s.(session.Wrapper); !ok || w.Saved() != session.VariableStore(v) {
		t.Errorf("%T does not lead to its VariableStore", s)
	}
	if got := s.(interface{ Unwrap() session.Session }).Unwrap(); got != session.Session(v) {
		t.Errorf("Unwrap = %v", got)
	}
	if _, ok := manage(sessiontest.OpSession{Session: v}, nil, nil).(session.VariableStore); ok {
		t.Error("the managed session of another session is a VariableStore")
	}
}
