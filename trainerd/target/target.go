package target

import (
	"context"
	"io"
	"log/slog"
	"net"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/master"
	"github.com/trainerd/trainerd/trainerd/remote"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Local is the master string of a session of this process that is served to
// other processes.
const Local = "local"

// Options changes how sessions are made. The zero value and nil are valid.
type Options struct {
	// Dir is the directory to which file names in the graph are relative, in a
	// session of this process. "" means the working directory.
	Dir string
	// Logger is for a session of this process; nil discards.
	Logger *slog.Logger
	// Stdout and Stderr are where ops of a session of this process print; nil
	// discards.
	Stdout, Stderr io.Writer
	// MaxMemory limits the memory of a session of this process, like the option
	// of the same name in package runtime, and MemoryOption is its name in
	// errors.
	MaxMemory    int64
	MemoryOption string
	// Listener is where the master "local" is served; the session closes it. Nil
	// means any free port of the loopback interface. See [Served.Master].
	Listener net.Listener
	// FilesWithin are the directories in which clients of the master "local" may
	// use files; nil means any. It does not restrict the session itself.
	FilesWithin []string
	// Server is for serving the master "local"; its Runtime is not used.
	Server master.Options

	// Remote is for the connection to a server.
	Remote *remote.Options
	// Config configures a session on a server; nil is TensorFlow's default.
	Config *tfpb.ConfigProto
	// ServerDisk makes the servers write and read the checkpoints, with the save
	// and restore ops of the graph, on a disk that they share with this process.
	// Otherwise the variables are copied over the connection, and the servers
	// need no disk.
	ServerDisk bool
}

// Open makes a session for a graph at a master. Use it as Supervisor.Open.
func Open(ctx context.Context, master string, meta *tfpb.MetaGraphDef) (session.Session, error) {
	return (*Options)(nil).Open(ctx, master, meta)
}

// Open is like the function Open, with options. For a session on a server, ctx
// only bounds making it. Closing the session also closes its connection, or
// stops serving it.
func (o *Options) Open(ctx context.Context, master string, meta *tfpb.MetaGraphDef) (session.Session, error) {
	def := meta.GetGraphDef()
	switch {
	case master == "":
		return opened(runtime.New(def, o.orZero().runtime()))
	case master == Local:
		return opened(o.Serve(def))
	}
	sess, err := o.Dial(ctx, master, def)
	if err != nil || o.orZero().ServerDisk {
		return opened(sess, err)
	}
	return opened(sess.Store(ctx, def))
}

// opened keeps the nil of a type out of an interface.
func opened[S session.Session](sess S, err error) (session.Session, error) {
	if err != nil {
		return nil, err
	}
	return sess, nil
}

// runtime returns the options of a session of this process.
func (o *Options) runtime() *runtime.Options {
	return &runtime.Options{Dir: o.Dir, Logger: o.Logger, Stdout: o.Stdout, Stderr: o.Stderr, MaxMemory: o.MaxMemory, MemoryOption: o.MemoryOption}
}

func (o *Options) orZero() *Options {
	if o == nil {
		return &Options{}
	}
	return o
}
