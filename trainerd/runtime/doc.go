// Package runtime is the embedded runtime: it executes TensorFlow graphs in
// this process, with kernels in Go and assembly.
//
//	sess, err := runtime.New(meta.GetGraphDef(), nil)
//	...
//	step, err := sess.MakeCallable(ctx, []string{"x:0", "y:0"}, []string{"loss:0"}, []string{"train"})
//	...
//	out, err := step.Run(ctx, []*ckptfmt.Tensor{x, y})
//
// # Plans
//
// A run names feeds, fetches and targets. The first run with given names
// compiles a plan, which the session keeps:
//
//	prune     only what fetches and targets need, up to what is fed
//	check     every node is built; those without a kernel are reported, in one
//	          error
//	idle      values that nothing uses, but that others wait for, are not computed
//	sort      data and control edges; else the order of the GraphDef. What
//	          leads to an op that may wait (a queue) comes first; reads and
//	          writes of one variable with no path between them come as
//	          TensorFlow's executor takes them
//	build     each node's attributes are parsed once, into its kernel
//	fold      what has only constant inputs is computed now; nodes that only
//	          pass their input on are no steps at all
//	lay out   every value gets a buffer, which the next value takes over when
//	          the last step that needs it is done
//
// A plan is a list of steps, run one after another. The state of a run is in a
// frame: the tensors, their buffers and the kernels' working memory. Frames
// are reused, and buffers only grow, so a warm step of a small model allocates
// nothing. Concurrent runs of one plan have a frame each.
//
// The order of steps is fixed and kernels do not race, so equal inputs give
// equal bits, on every run. Control flow is part of this: the outputs of a
// Switch that are not taken are dead, and so is everything that depends on
// them; If, Case, While and the calls of functions run plans of their own.
//
// # Variables, and the state lock
//
// Variables and the positions of random streams are the session's state. A run
// takes the state lock before its first access and holds it to its end: shared
// if its plan only reads, otherwise exclusively. So a step of a training is
// atomic: [Session.Snapshot] and other runs see the state before it or after
// it. An op that waits - for a queue, or for another run's turn at a reader -
// releases the lock while it does.
//
// A save copies nothing between two steps: [Session.Freeze] hands out the
// variables' memory, and while a save still needs it, a step that is about to
// change the variable moves it to other memory. The executor does this: a step
// with the flag WritesState is assumed to change all variables among its
// inputs.
//
// Reading a variable copies nothing unless the value is needed after a step
// that may change the variable; the compiler knows which.
//
// A value passed to Run is used in place during the run. Run returns copies.
//
// # Random numbers
//
// Random ops draw from TensorFlow's Philox streams: a graph with seeds gives
// TensorFlow's numbers, the same in every run of the program. The position of
// each stream is part of [Session.Snapshot], so that a resumed training draws
// the same numbers as without the interruption. Ops that have only drawn the
// initial values of variables are left out: nothing draws from them again.
//
// # Goroutines
//
// Long kernels share their work with the helpers of package parallel during one call; the number of
// helpers does not change a single bit of the results. [Session.Prepare] compiles in a goroutine,
// which [Session.Close] ends and waits for. A call that waits returns when its context is done or
// the session is closed.
//
// # Adding an op
//
// Inputs, outputs and attributes of all ops, with types and defaults, are in
// package opdef. The kernels are in internal/kernels, a package for each family
// of ops: its function Ops lists the tables that kernels.go joins. An entry lists
// the dtypes that have kernels, and a function that reads the attributes of a
// node and returns its kernel; package internal/exec says what the two may do.
// That function must refuse whatever it cannot build, because the check builds
// every node and a run does not check attributes or types again. An op
// with state or effects says so in its flags, or it may be folded. Then record
// what TensorFlow computes, with fixtures/graphs/kernels/recorded.py.
package runtime
