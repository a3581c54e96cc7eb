package runtime

import (
	"io"
	"log/slog"
	"time"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Options changes how a Session works. The zero value and nil are valid.
type Options struct {
	// MaxTensorBytes limits the memory of one tensor, so that a damaged graph
	// or feed cannot exhaust the machine. 0 means 16 GiB.
	MaxTensorBytes int64
	// Dir is the directory to which file names in the graph are relative. ""
	// means the working directory.
	Dir string
	// Resources are the variables, queues and tables that the session shares
	// with others. nil gives it its own.
	Resources *Resources
	// MaxInputState limits the state of one queue, reader or iterator in a
	// checkpoint, in bytes: a shuffle buffer of large elements takes twice its
	// memory while it is saved. A larger state is not saved. 0 means 1 GiB.
	MaxInputState int
	// FilesWithin restricts the graph to files in these directories, after links
	// are resolved; an empty list that is not nil refuses all. nil means no
	// restriction.
	FilesWithin []string
	// MaxMemory limits the total memory of the session: values of its steps,
	// variables, elements of queues, lists and input pipelines. A step that needs
	// more ends with RESOURCE_EXHAUSTED and frees its memory. 0 means three
	// quarters of the memory of the machine, or of the control group, or 16 GiB if
	// that is unknown; negative means no limit.
	MaxMemory int64
	// MemoryOption is the name of the limit in that error, such as a flag of a
	// program. "" means Options.MaxMemory.
	MemoryOption string
	// MaxNodes limits the nodes that function calls add to a step, since a
	// chain of functions that each call the next one twice turns a small graph
	// into any number of nodes. All different steps of a session together may
	// have 16 times as many. 0 means 262,144.
	MaxNodes int
	// MaxConstantBytes limits the constants of a step in the same way. 0 means
	// 8 GiB.
	MaxConstantBytes int64
	// CompileTimeout limits how long the first run of a step may take to
	// compile it, in addition to the context of the run. 0 means 10 minutes.
	CompileTimeout time.Duration
	// Logger receives messages about saving and restoring the input of the
	// graph, and what ops print with a level, as tf.print does for
	// output_stream=tf.compat.v1.logging.info. nil discards them.
	Logger *slog.Logger
	// Stdout and Stderr are where ops print: PrintV2, which tf.print makes, to
	// either, and Print to Stderr. Each message is one Write, one at a time. nil
	// discards.
	Stdout, Stderr io.Writer
}

// exec returns the options as the executor takes them. nil are the zero ones.
func (o *Options) exec() *exec.Options {
	if o == nil {
		return nil
	}
	e := &exec.Options{
		MaxTensorBytes: o.MaxTensorBytes, Dir: o.Dir, MaxInputState: o.MaxInputState, FilesWithin: o.FilesWithin, MaxMemory: o.MaxMemory, MemoryOption: o.MemoryOption,
		MaxNodes: o.MaxNodes, MaxConstantBytes: o.MaxConstantBytes, CompileTimeout: o.CompileTimeout, Logger: o.Logger, Stdout: o.Stdout, Stderr: o.Stderr,
	}
	if o.Resources != nil {
		e.Resources = &o.Resources.exec
	}
	return e
}

// Resources holds what outlives the runs of a session, like a device of a
// TensorFlow server: variables, queues, tables, readers. Sessions made with
// the same Resources share them, by container and shared name, and their steps
// are atomic with respect to each other. The zero value is empty
// and ready; a Resources must not be copied after first use.
type Resources struct{ exec exec.Resources }

// Clear forgets everything. Existing sessions keep what they have; later ones
// start empty.
func (r *Resources) Clear() { r.exec.Clear() }

// Close closes the files of readers, iterators and summary writers, when no session has
// the Resources any more.
func (r *Resources) Close() error { return r.exec.Close() }
