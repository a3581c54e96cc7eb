// Package trainerd keeps long trainings alive: the supervisor, coordinator,
// session manager and saver of TensorFlow's tf.train, for Go.
//
// A training runs against a [session.Session], which may be a graph executor in this
// process, a TensorFlow server, or the program itself: [Variables] turns slices
// of numbers into a session without any graph. A [Supervisor] prepares the
// session, runs the training function, and in the end stops everything in
// order:
//
//	sv := &trainerd.Supervisor{MetaGraph: meta, Open: target.Open, Logdir: "logs"}
//	err := sv.Run(ctx, func(ctx context.Context, s trainerd.Session) error {
//		return sv.UntilStop(func() error { return trainerd.RunOps(ctx, s, "train") })
//	})
//
// Package target makes the sessions of graphs; a program without a graph sets
// NewSession instead.
//
// What a training's own code names often, such as [Session], [Variables], [Saver],
// [Coordinator], [KeepBest], the common hooks and the errors, is here under its
// plain name; the types are those of the packages session, variables, checkpoint,
// coord, retention and hook.
//
// # Life of a run
//
//  1. The logdir is made and locked. Its lock file names the process that
//     holds it; a second chief gets a [*logdir.LockedError]. Temporary files of a run
//     that was killed are removed.
//  2. The newest intact checkpoint is restored. One that is damaged or missing
//     is skipped with a line in the log, and damaged ones are moved into
//     the directory "damaged". If there are checkpoints but none is intact, or
//     they are of another model, the run ends with an error: it never starts
//     from the beginning over them. Without any checkpoint the init op runs.
//  3. The local init op runs, and the ready op has to find the model ready.
//  4. A new events file begins with SessionLog START, at the step after the
//     restored one, or at the current step after an initialisation. The graph
//     follows. Both of TensorBoard's loaders then show one curve over all runs
//     and lose no point. graph.pbtxt is written.
//  5. The services start: checkpoints, summaries, the step counter, the queue
//     runners, and those that the program adds. A model that was initialised is
//     saved as it is before the first step.
//  6. The training runs until it returns, or until a stop is asked for.
//  7. The services end; those that do not within the grace period are named,
//     with the place where they hang.
//  8. A last checkpoint is written, unless the training failed or the step has
//     one already, or the disk takes longer than Supervisor.SaveGrace.
//  9. SessionLog STOP is written, the events file closed, the report of the run
//     written, the logdir unlocked, the session closed.
//
// A worker (Supervisor.NonChief) waits in place of 1 to 4 until the chief has
// made the model ready, and writes nothing.
//
// # What a checkpoint promises
//
// A checkpoint holds all variables as they were between the same two steps, and
// the session's own state, such as random-number streams, under names that
// TensorFlow ignores. Once "saved step=N" is logged, the checkpoint survives a
// crash at any later moment: data, index, meta graph and state file were
// written aside, synced, renamed in this order, and their directory synced. A
// manifest next to it has its step, metrics and checksums. A
// save that fails leaves the checkpoint before it current, and the training
// continues; see Supervisor.MaxSaveFailures.
//
// # Goroutines
//
// Each is started by Coordinator.Go, is stopped by the coordinator's context,
// and is waited for by Coordinator.Join, which Stop and Run call:
//
//	name                owner                   ends
//	checkpoint service  Supervisor              at the stop, after the save under way
//	checkpoint          Supervisor or StepDone  when its checkpoint is durable
//	summary service     Supervisor              at the stop
//	step counter        Supervisor              at the stop
//	queue runners       Supervisor              when their input ends, or at the stop
//	services and loops  the program             at the stop
//
// The goroutine that ends the grace period for the steps of a training belongs
// to Run and ends with it. That of the final checkpoint belongs to Stop, which
// names it as a straggler if the disk hangs. Those that read a checkpoint have
// ended when Restore returns.
//
// # Differences from TensorFlow
//
// The names and defaults are those of tf.train.Supervisor; what differs does so
// on purpose. There is a final checkpoint. Restart falls back to older
// checkpoints where the newest is damaged or gone, and ends where it cannot be
// read. A save that fails is tried again and does not end the training, and
// neither does an events file that cannot be written. START is at the restored
// step + 1, with Supervisor's StartAtRestoredStep at the restored step. What
// the current checkpoint holds is not saved again, where the session can say
// that no variable has changed. Timers that missed several ticks make up for
// them in one call instead of a burst. The step counter has no meaningless
// first point, and no service writes a second point at the same step while
// nothing changes. MaxToKeep removes as many checkpoints as are too many at
// once. Keep-every periods continue across restarts. Paths in the state file are
// relative, and nothing outside the logdir is ever deleted.
package trainerd
