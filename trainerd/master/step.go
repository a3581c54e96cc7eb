package master

import (
	"context"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

func (s *Server) runStep(ctx context.Context, req *tfpb.RunStepRequest) (*tfpb.RunStepResponse, error) {
	resp, err := s.step(ctx, req)
	if err != nil && req.GetStoreErrorsInResponseBody() {
		st := statusOf(err)
		return &tfpb.RunStepResponse{StatusCode: tfpb.Code(st.Code()), StatusErrorMessage: st.Message()}, nil
	}
	return resp, err
}

func (s *Server) step(ctx context.Context, req *tfpb.RunStepRequest) (*tfpb.RunStepResponse, error) {
	found, err := s.find(ctx, req.GetSessionHandle())
	if err != nil {
		return nil, err
	}
	if req.GetPartialRunHandle() != "" {
		return nil, errPartial
	}
	feeds := make(map[string]*ckptfmt.Tensor, len(req.GetFeed()))
	for _, f := range req.GetFeed() {
		if feeds[f.GetName()], err = decode(f.GetName(), f.GetTensor()); err != nil {
			return nil, err
		}
	}
	ctx, cancel := s.within(ctx, req.GetOptions().GetTimeoutInMs())
	defer cancel()
	tensors, metadata, err := found.rt.RunWithOptions(ctx, req.GetOptions(), feeds, req.GetFetch(), req.GetTarget())
	if err != nil {
		return nil, err
	}
	resp := &tfpb.RunStepResponse{Metadata: metadata}
	for i, t := range tensors {
		resp.Tensor = append(resp.Tensor, &tfpb.NamedTensorProto{Name: req.GetFetch()[i], Tensor: encode(t)})
	}
	return resp, nil
}

var errPartial = opError(tfpb.Code_UNIMPLEMENTED, "the embedded runtime runs a step whole: partial runs need a TensorFlow server")

func (s *Server) partialRunSetup(context.Context, *tfpb.PartialRunSetupRequest) (*tfpb.PartialRunSetupResponse, error) {
	return nil, errPartial
}

func (s *Server) makeCallable(ctx context.Context, req *tfpb.MakeCallableRequest) (*tfpb.MakeCallableResponse, error) {
	found, err := s.find(ctx, req.GetSessionHandle())
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.within(ctx, 0)
	defer cancel()
	o := req.GetOptions()
	compiled, err := found.rt.MakeCallable(ctx, o.GetFeed(), o.GetFetch(), o.GetTarget())
	if err != nil {
		return nil, err
	}
	found.mu.Lock()
	defer found.mu.Unlock()
	found.made++
	found.callables[found.made] = &callable{compiled: compiled, feeds: o.GetFeed()}
	return &tfpb.MakeCallableResponse{Handle: found.made}, nil
}

func (s *Server) runCallable(ctx context.Context, req *tfpb.RunCallableRequest) (*tfpb.RunCallableResponse, error) {
	found, err := s.find(ctx, req.GetSessionHandle())
	if err != nil {
		return nil, err
	}
	found.mu.Lock()
	c, ok := found.callables[req.GetHandle()]
	found.mu.Unlock()
	if !ok {
		return nil, opError(tfpb.Code_INVALID_ARGUMENT, "Attempted to run callable after handle was released: %d", req.GetHandle())
	}
	if len(req.GetFeed()) != len(c.feeds) {
		return nil, opError(tfpb.Code_INVALID_ARGUMENT, "%d tensors fed where the callable takes %d", len(req.GetFeed()), len(c.feeds))
	}
	feeds := make([]*ckptfmt.Tensor, len(c.feeds))
	for i, p := range req.GetFeed() {
		if feeds[i], err = decode(c.feeds[i], p); err != nil {
			return nil, err
		}
	}
	ctx, cancel := s.within(ctx, 0)
	defer cancel()
	tensors, err := c.compiled.Run(ctx, feeds)
	if err != nil {
		return nil, err
	}
	resp := &tfpb.RunCallableResponse{}
	for _, t := range tensors {
		resp.Fetch = append(resp.Fetch, encode(t))
	}
	return resp, nil
}

func (s *Server) releaseCallable(ctx context.Context, req *tfpb.ReleaseCallableRequest) (*tfpb.ReleaseCallableResponse, error) {
	found, err := s.find(ctx, req.GetSessionHandle())
	if err != nil {
		return nil, err
	}
	found.mu.Lock()
	defer found.mu.Unlock()
	delete(found.callables, req.GetHandle())
	return &tfpb.ReleaseCallableResponse{}, nil
}
