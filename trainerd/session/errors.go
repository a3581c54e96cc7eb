package session

import (
	"fmt"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
)

// Errors that callers branch on. Each matches, by errors.Is, every [OpError]
// with its code.
var (
	// ErrOutOfRange says that the inputs are exhausted. It ends a run cleanly.
	ErrOutOfRange error = &OpError{Code: tfpb.Code_OUT_OF_RANGE}
	// ErrAborted says that the session is gone, as after a server's restart.
	ErrAborted error = &OpError{Code: tfpb.Code_ABORTED}
	// ErrUnavailable says that the runtime cannot be reached at the moment.
	ErrUnavailable error = &OpError{Code: tfpb.Code_UNAVAILABLE}
	// ErrFailedPrecondition says that the model is not in the state that an
	// op needs, such as a variable that was never initialised.
	ErrFailedPrecondition error = &OpError{Code: tfpb.Code_FAILED_PRECONDITION}
	// ErrInvalidArgument says that an op was given values it cannot take.
	ErrInvalidArgument error = &OpError{Code: tfpb.Code_INVALID_ARGUMENT}
	// ErrNotFound says that a name, file or tensor does not exist.
	ErrNotFound error = &OpError{Code: tfpb.Code_NOT_FOUND}
	// ErrUnimplemented says that the runtime lacks an op.
	ErrUnimplemented error = &OpError{Code: tfpb.Code_UNIMPLEMENTED}
	// ErrDeadlineExceeded says that waiting took longer than allowed.
	ErrDeadlineExceeded error = &OpError{Code: tfpb.Code_DEADLINE_EXCEEDED}
	// ErrCancelled says that the call was cancelled before it finished.
	ErrCancelled error = &OpError{Code: tfpb.Code_CANCELLED}
)

// ErrCompleted is for a training, or a hook, to return at the end of its last
// step. It ends a run as [ErrOutOfRange] does, which it matches; even if a
// stop was requested during that step, the run counts as completed, not as
// stopped.
var ErrCompleted = fmt.Errorf("the training is complete: %w", ErrOutOfRange)

// OpError is a failure inside a session, with TensorFlow's error code and the
// node that failed.
type OpError struct {
	Code    tfpb.Code
	Node    string // name of the node, "" if the failure is not due to one node
	Op      string // the node's op type, "" if unknown
	Message string
	Err     error // cause, may be nil
}

func (e *OpError) Error() string {
	var b strings.Builder
	b.WriteString(strings.ToLower(e.Code.String()))
	if e.Node != "" {
		b.WriteString(": node " + e.Node)
	}
	if e.Op != "" {
		fmt.Fprintf(&b, " (%s)", e.Op)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

func (e *OpError) Unwrap() error { return e.Err }

// Is reports whether target is the sentinel of e's code.
func (e *OpError) Is(target error) bool {
	t, ok := target.(*OpError)
	return ok && t.Code == e.Code && *t == OpError{Code: t.Code}
}
