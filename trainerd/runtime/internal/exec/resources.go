package exec

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// Resources holds what outlives the runs of a session, as a device of a
// TensorFlow server does: variables, queues, tables, readers. Sessions that
// are made with the same Resources see the same ones, by container and shared
// name, and their steps are atomic among each other. The zero value is empty
// and ready; a Resources must not be copied after first use.
type Resources struct {
	// state is the lock that makes steps atomic: a run holds it from its
	// first access to a variable or random stream to its end, shared when it
	// only reads.
	state sync.RWMutex
	// frozen counts the snapshots that may need what variables hold. It grows
	// only while state is held, so that a run that writes looks once.
	frozen atomic.Int32
	// buffers is how many bytes the buffers of all sessions take.
	buffers atomic.Int64
	// gate is where runs that move the input can be held for a moment.
	gate inputGate

	mu       sync.Mutex // guards what follows
	vars     map[string]*Variable
	named    map[string]any
	journals journals
}

// variable returns the variable of a key, which make is called for at first
// sight.
func (r *Resources) variable(key string, make func() *Variable) *Variable {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.vars[key]
	if ok {
		return v
	}
	if r.vars == nil {
		r.vars = map[string]*Variable{}
	}
	v = make()
	r.vars[key] = v
	return v
}

// object is as variable, for everything else.
func (r *Resources) object(key string, make func() any) any {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, ok := r.named[key]
	if ok {
		return o
	}
	if r.named == nil {
		r.named = map[string]any{}
	}
	o = make()
	r.named[key] = o
	return o
}

// put keeps an object under a key, in place of an earlier one.
func (r *Resources) put(key string, o any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.named == nil {
		r.named = map[string]any{}
	}
	r.named[key] = o
}

// lookup returns the object of a key, nil if there is none.
func (r *Resources) lookup(key string) any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.named[key]
}

// Close closes what can be closed.
func (r *Resources) Close() error {
	var errs []error
	for _, j := range r.openJournals() {
		errs = append(errs, j.Close())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.named {
		if c, ok := o.(io.Closer); ok {
			c.Close()
		}
	}
	return errors.Join(errs...)
}

// Clear forgets everything. Sessions that were made before keep what they
// have; later ones start with nothing.
func (r *Resources) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.vars)
	clear(r.named)
	r.journals = journals{}
}

// Resource returns the object of the builder's node, which nodes of
// one op with the same container and shared name have in common, making it at
// first use.
func (b *OpConstruction) Resource(kind string, make func(name string) any) any {
	name := b.String("shared_name")
	if name == "" {
		name = b.path
	}
	key := resourceKey(kind, b.String("container"), name)
	o := b.sess.res.object(key, func() any { return make(name) })
	b.sess.addInput(key, o)
	b.sess.addTable(b.String("container"), name, o)
	return o
}

func resourceKey(kind, container, name string) string {
	return kind + "\x00" + container + "\x00" + name
}

// HandleKernel makes output 0 a handle.
func HandleKernel(r any) Kernel {
	return func(c *KernelContext) error {
		t := c.Slot(0)
		t.DType, t.Value = Resource, r
		return nil
	}
}

// PutResource keeps an object under a key among the session's resources.
func (c *KernelContext) PutResource(key string, o any) { c.run.sess.res.put(key, o) }

// LookupResource returns the object of a key, nil if there is none.
func (c *KernelContext) LookupResource(key string) any { return c.run.sess.res.lookup(key) }
