package runtime

import (
	"log/slog"
	"time"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Options changes how a Session works. The zero value, and nil, are good.
type Options struct {
	// MaxTensorBytes bounds the memory of one tensor, so that a damaged graph
	// or feed cannot exhaust the machine. 0 means 16 GiB.
	MaxTensorBytes int64
	// Dir is the directory that relative file names in the graph start from.
	// "" means the working directory.
	Dir string
	// Resources are the variables, queues and tables that the session shares
	// with others. nil gives it some of its own.
	Resources *Resources
	// MaxInputState bounds the state of one queue, reader or iterator in a
	// checkpoint, in bytes: a shuffle buffer of large elements takes as much
	// memory again while it is saved. What takes more is not saved. 0 means
	// 1 GiB.
	MaxInputState int
	// FilesWithin limits what the graph reads and writes to files in these
	// directories, whatever links lead to; an empty list that is not nil refuses
	// all. nil sets no limit.
	FilesWithin []string
	// MaxMemory bounds the memory that the session holds in all: values of its
	// steps, variables, elements of queues, lists and input pipelines. A step that
	// needs more ends with RESOURCE_EXHAUSTED and gives its memory back. 0 means
	// three quarters of what the machine, or the control group, has, and 16 GiB
	// where that is unknown; a negative number means no limit.
	MaxMemory int64
	// MemoryOption is what that error names as the place of the limit, such as a
	// flag of a program. "" means Options.MaxMemory.
	MemoryOption string
	// MaxNodes bounds the nodes that calls of functions add to a step, since
	// functions that call each other twice each make any number of nodes out of
	// a small graph. All different steps of a session may have 16 times as many
	// as one. 0 means 262,144.
	MaxNodes int
	// MaxConstantBytes bounds the constants of a step in the same way. 0 means
	// 8 GiB.
	MaxConstantBytes int64
	// CompileTimeout bounds how long the first run of a step may take to
	// compile it; the context of the run does, too. 0 means 10 minutes.
	CompileTimeout time.Duration
	// Logger gets what there is to say about the input of the graph when it is
	// saved and restored. nil discards it.
	Logger *slog.Logger
}

// exec returns the options as the executor takes them. nil are the zero ones.
func (o *Options) exec() *exec.Options {
	if o == nil {
		return nil
	}
	e := &exec.Options{
		MaxTensorBytes: o.MaxTensorBytes, Dir: o.Dir, MaxInputState: o.MaxInputState, FilesWithin: o.FilesWithin, MaxMemory: o.MaxMemory, MemoryOption: o.MemoryOption,
		MaxNodes: o.MaxNodes, MaxConstantBytes: o.MaxConstantBytes, CompileTimeout: o.CompileTimeout, Logger: o.Logger,
	}
	if o.Resources != nil {
		e.Resources = &o.Resources.exec
	}
	return e
}

// Resources holds what outlives the runs of a session, as a device of a
// TensorFlow server does: variables, queues, tables, readers. Sessions that
// are made with the same Resources see the same ones, by container and shared
// name, and their steps are atomic among each other. The zero value is empty
// and ready; a Resources must not be copied after first use.
type Resources struct{ exec exec.Resources }

// Clear forgets everything. Sessions that were made before keep what they
// have; later ones start with nothing.
func (r *Resources) Clear() { r.exec.Clear() }
