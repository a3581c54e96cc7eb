package target

import (
	"errors"
	"net"
	"sync"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/master"
	"github.com/trainerd/trainerd/trainerd/runtime"
)

// Served is a session of this process whose variables other processes can
// access while it is open.
type Served struct {
	*runtime.Session
	master string
	close  func() error // once
}

// Serve makes a session of this process and serves its variables at
// Options.Listener.
func (o *Options) Serve(def *tfpb.GraphDef) (*Served, error) {
	o = o.orZero()
	options := o.runtime()
	options.Resources = &runtime.Resources{}
	ln, err := o.listen()
	if err != nil {
		return nil, err
	}
	sess, err := runtime.New(def, options)
	if err != nil {
		ln.Close()
		return nil, err
	}
	serverOptions := o.Server
	serverOptions.Runtime = runtime.Options{Dir: o.Dir, Resources: options.Resources, FilesWithin: o.FilesWithin}
	if o.MemoryOption != "" { // no Go program's, so no option of one may be named
		serverOptions.Runtime.MemoryOption = "the server"
	}
	server, ended := master.New(&serverOptions), make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	return &Served{Session: sess, master: MasterOf(ln.Addr()), close: sync.OnceValue(func() error {
		return errors.Join(server.Close(), <-ended, sess.Close(), options.Resources.Close())
	})}, nil
}

func (o *Options) listen() (net.Listener, error) {
	if o.Listener != nil {
		return o.Listener, nil
	}
	return net.Listen("tcp", "127.0.0.1:0")
}

// Master returns the master string with which other processes reach the
// session.
func (s *Served) Master() string { return s.master }

// Close stops serving, then closes the session. Closing again returns the same
// result.
func (s *Served) Close() error { return s.close() }

// MasterOf returns the master string of a server that listens at an address.
func MasterOf(addr net.Addr) string {
	if addr.Network() == "unix" {
		return "unix:" + addr.String()
	}
	return "grpc://" + addr.String()
}
