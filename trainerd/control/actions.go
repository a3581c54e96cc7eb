package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"
)

// action performs a request to a job, and returns the answer.
type action func(ctx context.Context, job Job, r *http.Request) (any, error)

// badRequest is a request that makes no sense.
type badRequest struct{ error }

// Result is an action's result, for people.
type Result struct {
	Text string `json:"result"`
}

// actions are those that wait for the training or the disk.
var actions = map[string]action{
	"save": save, "pause": pause, "resume": resume, "set": set, "keep": keep, "note": note,
}

// act answers with what an action returns.
func (s *Server) act(w http.ResponseWriter, r *http.Request, do action) {
	job, err := s.o.Monitor.Job()
	var body any
	if err == nil {
		body, err = do(r.Context(), job, r)
	}
	reply(w, body, err)
}

// reply answers with what an action has returned.
func reply(w http.ResponseWriter, body any, err error) {
	var refused *RefusedError
	var bad badRequest
	switch {
	case err == nil:
		answer(w, http.StatusOK, body)
	case errors.As(err, &bad):
		fail(w, http.StatusBadRequest, err)
	case errors.As(err, &refused):
		fail(w, http.StatusConflict, err)
	default:
		fail(w, http.StatusInternalServerError, err)
	}
}

func save(ctx context.Context, job Job, _ *http.Request) (any, error) {
	// Who asked may hang up; the checkpoint is worth finishing.
	saved, err := job.Save(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	return savedOf(saved), nil
}

func pause(ctx context.Context, job Job, _ *http.Request) (any, error) {
	return Result{"paused; `resume` continues"}, job.Pause(ctx)
}

func resume(ctx context.Context, job Job, _ *http.Request) (any, error) {
	return Result{"training continues"}, job.Resume(ctx)
}

// stop ends the training, also one that is not ready yet or is stopping, or with now the process.
func (s *Server) stop(r *http.Request) (any, error) {
	var q struct {
		Now bool `json:"now"`
	}
	if err := decode(r, &q); err != nil {
		return nil, badRequest{err}
	}
	if q.Now {
		if s.o.StopNow == nil {
			return nil, Refusef("this server cannot end its process")
		}
		s.o.StopNow()
		return Result{"ending at once; what came after the last checkpoint is lost"}, nil
	}
	return Result{cmp.Or(s.o.Stopping, "stopping")}, s.o.Monitor.Stop()
}

func set(ctx context.Context, job Job, r *http.Request) (any, error) {
	var q struct{ Key, Value string }
	if err := decode(r, &q); err != nil {
		return nil, badRequest{err}
	}
	if q.Key == "" {
		return nil, badRequest{errors.New("key is missing")}
	}
	text, err := job.Set(ctx, q.Key, q.Value)
	return Result{text}, err
}

func keep(_ context.Context, job Job, r *http.Request) (any, error) {
	q := struct{ Step int64 }{-1}
	if err := decode(r, &q); err != nil {
		return nil, badRequest{err}
	}
	if q.Step < 0 {
		return nil, badRequest{errors.New("step is missing, or less than 0")}
	}
	prefix, err := job.Keep(q.Step)
	return Result{fmt.Sprintf("%s is kept", prefix)}, err
}

func note(ctx context.Context, job Job, r *http.Request) (any, error) {
	var q struct{ Text string }
	if err := decode(r, &q); err != nil {
		return nil, badRequest{err}
	}
	if strings.TrimSpace(q.Text) == "" || !utf8.ValidString(q.Text) {
		return nil, badRequest{errors.New("text is missing")}
	}
	return Result{"noted"}, job.Note(ctx, q.Text)
}
