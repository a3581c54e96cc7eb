// Package child keeps the training of another program alive, in any language: it
// starts the program, turns its reports into an events file that TensorBoard
// shows, manages the checkpoints that it writes, and restarts it when it fails.
//
// # The program's environment
//
// In addition to the environment of this process and [Supervisor.Env], the program gets:
//
//	TRAINERD_LOGDIR      the logdir, an absolute path; checkpoints belong there
//	TRAINERD_ATTEMPT     1 for the first start, 2 for the second, and so on
//	TRAINERD_CHECKPOINT  the newest intact checkpoint, an absolute path
//	TRAINERD_STEP        the step of that checkpoint
//	TRAINERD_STEPS       how far to train, if that is set
//	TRAINERD_SOCKET      a unix stream socket that takes reports, unless such sockets are forbidden
//	TRAINERD_GRACE       the seconds between SIGTERM and SIGKILL
//	TRAINERD_NODES       on how many nodes it runs, if that is more than one
//	TRAINERD_NODE        the number of this one, from 0
//	TRAINERD_CHIEF       the host of the chief's node
//	TRAINERD_RENDEZVOUS  a name that this start has on all nodes, and no other start
//
// TRAINERD_CHECKPOINT and TRAINERD_STEP are missing if there is no checkpoint, and the latter
// if its name has no step. PYTHONUNBUFFERED is set unless it already is:
// Python buffers its output to a pipe.
//
// # What the program reports
//
// A report is a line of at most [MaxLine] bytes, on standard output or sent to
// the socket. It is in one of two forms:
//
//	{"step": 120, "loss": 0.31, "val": {"loss": 0.4}}
//	step=120 loss=0.31 val/loss=0.4
//
// A line is a report if it has a step: "step" or "global_step" (which wins), a
// whole number from 0. Every other number in it is a point of the curve with
// that name; names of nested objects are joined with "/". NaN and Infinity are
// numbers, in JSON too, bare as Python writes them. The JSON key "wall_time"
// gives the time of the points in seconds since 1970; otherwise they have the
// time of their arrival. Strings, booleans, lists and null are ignored, as are
// words without "=" around pairs. Values in quotes are strings.
//
// The socket and the output are read concurrently: a program should use one of the two for curves
// that belong together. [Supervisor.Patterns] or [Supervisor.Lines] can read lines in the program's
// own format; package recipe provides Lines for the common frameworks. Only these two read standard
// error.
//
// Lines from the socket that are not reports are dropped. A line of the outputs that is not
// a report is passed to [Supervisor.Stdout] or [Supervisor.Stderr], and so is a report with
// other words in it. If the program overwrites a line with carriage returns, as progress
// bars do, each text may be a report, and the last is passed on. Lines longer than MaxLine
// are passed on in pieces, and are not reports.
//
// # The events file
//
// The points, global_step/sec, SessionLog START before the first point of each start of the
// program, at the step of that point, CHECKPOINT for each checkpoint, STOP, and
// [Supervisor.HParams]. A restarted program goes back to its checkpoint and repeats some steps;
// START makes TensorBoard drop their earlier points, so that each curve continues as if nothing had
// happened. The same is done if the program restarts its training itself, as a launcher restarts
// its workers. That is recognised by two reports in a row of steps that were made before, but not
// before the newest checkpoint.
//
// If the program writes its own events files into the logdir, those of this package are in the
// folder "trainerd" below it, a separate run. Before each start from a checkpoint, every folder
// below the logdir with events of the program gets one more file, which sorts right after the
// newest and drops earlier points from the first repeated step on, so that the program's curves do
// not step back either. The program's own files do not change. At a start without a checkpoint, its
// first report gives that step.
//
// # Checkpoints
//
// Package found finds the checkpoints that match [Supervisor.Checkpoints], verifies them, deletes
// those that [Supervisor.Retention] does not keep, and moves damaged ones out of the way before a
// start. Only a checkpoint that is verified and durable is logged as "saved", and survives a crash
// at any later moment. A program that has failed is started again as soon as its last checkpoint
// has been read and found intact; it is made durable, and counts, while the program runs. The start
// waits only if something is damaged, or may be.
//
// For a program that saves on a signal, [Supervisor.SaveSignal], this package can decide when: see
// [Supervisor.SaveEvery], SaveSteps and SaveBudget. The program must handle the signal before its
// first report. On Linux, a program that does not handle it, such as torchrun, does not get it; its
// nearest descendants that handle it do.
//
// If the program fails twice in a row before it has reported or saved anything, both times
// starting from the same checkpoint, it is given the previous one. If it has done nothing
// since that checkpoint was written, and its format does not show whether it is
// complete, it may be unfinished: it goes to damaged/, even if there is no previous
// one, and comes back if the program fails without it too.
//
// [Supervisor.Config] is kept in the file [ConfigName] of the logdir: from it and
// the records `ckpt ls` says why each checkpoint is kept.
//
// # How a program ends
//
// Exit code 0 is the end of the job. SIGTERM from elsewhere, and exit code 75 (EX_TEMPFAIL), are
// preemptions: the program is restarted and nothing is counted. The codes 64, 65, 78, 126 and 127,
// and 2 before the very first report, mean that another start would fail too. Everything else is a
// failure, and so is a program that reports no step for [Supervisor.HangAfter]: it is restarted as
// often as [Supervisor.Restarts] allows: at once if it got further than all earlier starts,
// otherwise after a pause, counted from its last start, that doubles until a start gets further (a
// SIGKILL from elsewhere does not double it).
//
// When the context of [Supervisor.Run] ends, a program that saves on a signal gets
// [Supervisor.SaveSignal], if it has done steps since its last checkpoint, and up to half of
// [Supervisor.Grace] to write one. Then it alone gets SIGTERM, because a launcher ends its own
// workers. These get SIGTERM once the program has ended, or after half of the remaining Grace, and
// all get SIGKILL when Grace is over. If no checkpoint then has the last steps, the error is a
// [*SaveLostError]. On Linux the program is also killed when this process dies. Processes that it
// had started may survive that, or a kill of the program itself: before it starts the program, Run
// ends all processes with TRAINERD_GROUP of the logdir in their environment, so that there is one
// writer. Those that have changed their environment are recognised by the lock that they inherit,
// see [logdir.HoldGroup]: if an invisible process holds it, Run fails with a [*logdir.GroupError].
// As the first process of a container, this one reaps orphans.
//
// # Several nodes
//
// With [Supervisor.Nodes] there is a Supervisor on each node, and all have the same logdir. The one
// that holds its lock is the chief: only it manages checkpoints, events and reports. The others are
// workers. They find each other through small files in the folder trainerd.nodes. job.json and
// state.json are replaced atomically:
//
//	job.json            by the chief: its life and attempt, the checkpoint of that attempt,
//	                    whether it is running, paused, ending, ended, or the job has
//	                    ended, the node whose reports count, and the newest save that
//	                    was asked for: its number, and the time of the signal
//	nodeN/state.json    by the worker N: the attempt that it runs or has run, and its exit
//	nodeN-*.reportsM    by the worker N: what its program reports
//
// The reports of the chief's program are used if they have numbers. Otherwise those of the first
// node that has reported two steps are used, for the whole attempt.
//
// A worker starts, pauses and ends the program when the chief does. Both send SaveSignal at the
// time that the chief has published. When the program ends on a worker, or the worker is asked to
// stop, the chief ends it too and restarts it on all nodes; the pauses and the number of such
// starts are those of [Supervisor.Restarts]. At each end the chief waits until the program has
// ended on all nodes that had started it, for Grace and the time that it takes to kill it there.
// When nobody has the lock any more, the workers end the program and try to become the chief. Each
// node checks every ScanEvery.
//
// # Goroutines
//
// Run handles reports, checkpoints and events in the goroutine of its caller.
// Each start of the program has a goroutine that waits for it, and readers of
// its pipes and connections; all of them have ended before the next start, and
// when Run returns.
package child
