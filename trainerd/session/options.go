package session

import (
	"context"
	"fmt"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// OptionsRunner is a [Session] whose steps take options.
type OptionsRunner interface {
	Session
	// RunWithOptions is Run with options, and returns the metadata that the
	// session recorded about the step.
	RunWithOptions(ctx context.Context, o *tfpb.RunOptions, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) (
		[]*ckptfmt.Tensor, *tfpb.RunMetadata, error)
}

// RunWithOptions is Session.Run with options, such as a trace level, and
// returns the metadata that the session recorded about the step. A session
// that is not an [OptionsRunner] supports only a timeout, not a trace.
func RunWithOptions(ctx context.Context, s Session, o *tfpb.RunOptions, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) (
	[]*ckptfmt.Tensor, *tfpb.RunMetadata, error) {
	if r, ok := s.(OptionsRunner); ok {
		return r.RunWithOptions(ctx, o, feeds, fetches, targets)
	}
	if o.GetTraceLevel() != tfpb.RunOptions_NO_TRACE {
		return nil, nil, &OpError{Code: tfpb.Code_UNIMPLEMENTED, Message: fmt.Sprintf("a session of type %T does not trace its steps", s)}
	}
	if ms := o.GetTimeoutInMs(); ms > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
		defer cancel()
	}
	out, err := s.Run(ctx, feeds, fetches, targets)
	return out, nil, err
}
