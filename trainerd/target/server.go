package target

import (
	"context"
	"errors"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/remote"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Session is a session on a server, with its own connection.
type Session struct {
	*remote.Session
	Client *remote.Client
}

// Store is a Session whose variables this process copies.
type Store struct {
	*remote.Store
	Client *remote.Client
}

var (
	_ session.Session       = (*Session)(nil)
	_ session.VariableStore = (*Store)(nil)
)

// Dial makes a session on the server that master names, with checkpoints
// written by the ops of the graph.
func (o *Options) Dial(ctx context.Context, master string, def *tfpb.GraphDef) (*Session, error) {
	o = o.orZero()
	client, err := remote.Dial(ctx, master, o.Remote)
	if err != nil {
		return nil, err
	}
	sess, err := client.NewSession(ctx, def, o.Config)
	if err != nil {
		client.Close()
		return nil, err
	}
	return &Session{sess, client}, nil
}

// Close closes the session, then the connection.
func (s *Session) Close() error { return errors.Join(s.Session.Close(), s.Client.Close()) }

// Store returns the session as one whose variables this process copies. It
// takes over s: after an error s is closed.
func (s *Session) Store(ctx context.Context, def *tfpb.GraphDef) (*Store, error) {
	store, err := remote.NewStore(ctx, s.Session, def)
	if err != nil {
		s.Close()
		return nil, err
	}
	return &Store{store, s.Client}, nil
}

// Close closes the session, then the connection.
func (s *Store) Close() error { return errors.Join(s.Store.Close(), s.Client.Close()) }
