// Package trainerd keeps long trainings alive: the supervisor, coordinator,
// session manager and saver of TensorFlow's tf.train, for Go.
//
// A training runs against a [session.Session], which may be a graph executor in this
// process, a TensorFlow server, or the program itself: [Variables] turns slices
// of numbers into a session without any graph. A [Supervisor] prepares the
// session, runs the training function, and finally stops everything in order:
//
//	sv := &trainerd.Supervisor{MetaGraph: meta, Open: target.Open, Logdir: "logs"}
//	err := sv.Run(ctx, func(ctx context.Context, s trainerd.Session) error {
//		return sv.UntilStop(func() error { return trainerd.RunOps(ctx, s, "train") })
//	})
//
// Package target opens the sessions of graphs; a program without a graph sets
// NewSession instead.
//
// The names that a training's own code uses often, such as [Session], [Variables],
// [Saver], [Coordinator], [KeepBest], the common hooks and the errors, are aliases
// here; the types are those of the packages session, variables, checkpoint, coord,
// retention and hook.
//
// # Life of a run
//
//  1. The logdir is made and locked. Its lock file names the process that
//     holds it; a second chief gets a [*logdir.LockedError]. Temporary files
//     of a run that was killed are removed.
//  2. The newest intact checkpoint is restored. Damaged or missing ones are
//     skipped with a line in the log, and damaged ones are moved into the
//     directory "damaged". If there are checkpoints but none is intact, or
//     they are of another model, the run ends with an error: it never starts
//     from scratch over them. Without any checkpoint the init op runs.
//  3. The local init op runs, and the ready op must find the model ready.
//  4. A new events file begins with SessionLog START, at the step after the
//     restored one, or at the current step after an initialisation. The graph
//     follows. Both of TensorBoard's loaders then show one curve over all runs
//     and lose no points. graph.pbtxt is written.
//  5. The services start: checkpoints, summaries, the step counter, the queue
//     runners, and those that the program adds. An initialised model is saved
//     before the first step.
//  6. The training runs until it returns, or until a stop is requested.
//  7. The services end; those that do not end within the grace period are
//     named, with the place where they hang.
//  8. A last checkpoint is written, unless the training failed, the step
//     already has one, or the disk takes longer than Supervisor.SaveGrace.
//  9. SessionLog STOP is written, the events file closed, the report of the
//     run written, the session closed, and the logdir unlocked. It stays locked
//     from one session of a call of Run to the next.
//
// A worker (Supervisor.NonChief) skips 1 to 4, waits until the chief has made the model ready, and
// writes nothing.
//
// # What a checkpoint promises
//
// A checkpoint holds all variables as they were between the same two steps, and
// the session's own state, such as random-number streams, under names that
// TensorFlow ignores. Once "saved step=N" is logged, the checkpoint survives a
// crash at any later moment: data, index, meta graph and state file were
// written under temporary names, synced, renamed in this order, and their
// directory synced. A manifest next to it has its step, metrics and checksums.
// A save that fails leaves the previous checkpoint current, and the training
// continues; see Supervisor.MaxSaveFailures.
//
// # Goroutines
//
// Coordinator.Go starts each one, the coordinator's context stops it, and
// Coordinator.Join, which Stop and Run call, waits for it:
//
//	name                owner                   ends
//	graph.pbtxt         Supervisor              when the file is written
//	checkpoint service  Supervisor              at the stop, after the save under way
//	checkpoint          Supervisor or StepDone  when its checkpoint is durable
//	summary service     Supervisor              at the stop
//	step counter        Supervisor              at the stop
//	queue runners       Supervisor              when their input ends, or at the stop
//	services and loops  the program             at the stop
//
// The goroutine that ends the grace period for the steps of a training belongs
// to Run and ends with it. The one that writes the final checkpoint belongs to
// Stop, which reports it as a straggler if the disk hangs. Those that read a
// checkpoint have ended when Restore returns.
//
// # Differences from TensorFlow
//
// The names and defaults are those of tf.train.Supervisor; all differences are deliberate. There is
// a final checkpoint. A restart falls back to older checkpoints if the newest is damaged or
// missing, and fails if it cannot be read. A failed save is retried and does not end the training,
// and neither does an events file that cannot be written. START is at the restored step + 1, or
// with Supervisor's StartAtRestoredStep at the restored step. Nothing is saved if the session knows
// that no variable has changed since the current checkpoint. A timer that missed several ticks
// makes up for them in one call instead of a burst. A timed save leaves the training at least as
// much time for its steps as they had to wait for the last save. The step counter has no
// meaningless first point, and no service writes a second point at the same step while nothing
// changes. MaxToKeep removes all surplus checkpoints at once. Keep-every periods continue across
// restarts. Paths in the state file are relative, and nothing outside the logdir is ever deleted.
package trainerd
