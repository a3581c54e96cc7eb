// Package child keeps a training alive that another program does, in any
// language: it starts the program, turns what it reports into an events file
// that TensorBoard shows, looks after the checkpoints that it writes, and starts
// it again when it fails.
//
// # What the program is given
//
// The environment has, besides that of this process and [Supervisor.Env]:
//
//	TRAINERD_LOGDIR      the logdir, an absolute path; checkpoints belong there
//	TRAINERD_ATTEMPT     1 for the first start, 2 for the second, and so on
//	TRAINERD_CHECKPOINT  the newest verified checkpoint, an absolute path
//	TRAINERD_STEP        the step of that checkpoint
//	TRAINERD_STEPS       how far to train, if that is set
//	TRAINERD_SOCKET      a unix stream socket that takes reports
//	TRAINERD_GRACE       the seconds between SIGTERM and SIGKILL
//	TRAINERD_NODES       on how many nodes it runs, if that is more than one
//	TRAINERD_NODE        the number of this one, from 0
//	TRAINERD_CHIEF       the host of the chief's node
//	TRAINERD_RENDEZVOUS  a name that this start has on all nodes, and no other start
//
// TRAINERD_CHECKPOINT and TRAINERD_STEP are missing when there is no checkpoint,
// or none with a step in its name. PYTHONUNBUFFERED is set unless it is already:
// Python holds back what it prints into a pipe.
//
// # What the program reports
//
// A report is a line of at most [MaxLine] bytes, on standard output or sent to
// the socket. It is in one of two forms:
//
//	{"step": 120, "loss": 0.31, "val": {"loss": 0.4}}
//	step=120 loss=0.31 val/loss=0.4
//
// A line is a report when it has a step: "step" or "global_step" (which wins), a
// whole number from 0. Every other number in it is a point of the curve with
// that name; names of nested objects are joined by "/". NaN and Infinity are
// numbers, in JSON too, bare as Python writes them. The JSON key "wall_time"
// gives the time of the points in seconds since 1970; otherwise they have the
// time at which they came. Strings, truth values, lists and null are passed
// over, as are words without "=" around pairs. Values in quotes are strings.
//
// What comes by the socket and what is printed are read side by side: a program
// should use one of the two for curves that belong together. Lines in a form of
// the program's own can be read by [Supervisor.Patterns], or by [Supervisor.Lines],
// for which package recipe knows those of the frameworks. Standard error is read by
// these alone.
//
// What comes by the socket and is no report is dropped. A line of the outputs
// that is no report is passed to [Supervisor.Stdout] or [Supervisor.Stderr], and
// so does a report with other words in it. Of a line that the program draws over
// with carriage returns, as progress bars do, each text may be a report, and the
// last is passed on. Longer lines than MaxLine are passed on in pieces, and are no reports.
//
// # What the events file has
//
// The points, global_step/sec, SessionLog START before the first point of each
// start of the program, at the step of that point, CHECKPOINT for each
// checkpoint, STOP, and [Supervisor.HParams]. A program that is started again goes back to its
// checkpoint and does some steps once more; START makes TensorBoard drop the
// points of the first time, so that each curve continues as if nothing had
// happened.
//
// Where the program writes events files of its own into the logdir, those of this
// package are in the folder "trainerd" below it, a run of its own. Before each
// start from a checkpoint, every folder with events of the program below the
// logdir gets one more file, which sorts right after the newest and drops what
// comes before it from the step on that is done again: so the program's curves do
// not step back either. Its own files stay as they are. Without a checkpoint the
// first report of the start says the step.
//
// # Checkpoints
//
// [Supervisor.Checkpoints] is a pattern of file or folder names below the
// logdir. The step is the number after "step" in a name, or else the last one
// before the extension: ckpt-120.pt, epoch=3-step=120.ckpt, step_120/. Files of
// the same step are one checkpoint, as model.ckpt-120.index and
// model.ckpt-120.data-00000-of-00001, which is then named model.ckpt-120. Of a
// pattern with alternatives, {weights,optim}_*.npz, each checkpoint has files of all,
// or else is not finished, unless two in a row lack the same; it has the name of the
// first, where they begin with nothing common. Files without a step that such a
// pattern means are one checkpoint, too.
//
// A checkpoint counts once it has stopped changing, is synced to the disk with its
// folders, is verified by package integrity, and has a [manifest.Record] in the
// folder [manifest.RecordsDir]: only then is "saved" logged, and it survives a crash
// at any later moment. What the one before it has (trainer_state.json, _SUCCESS, an
// optimizer) it must have too, unless the next one lacks it as well. A later run
// holds checkpoints against their records: the newest byte by byte, older ones by
// size and time until one of them is needed. A program that writes to a name of
// another kind (beginning with "." or ending in .tmp, .part or ~) and renames the
// file when it is complete takes no risk at all.
//
// Where no checkpoint has a step, the program overwrites the only one it has. Then
// the last verified one has a copy in the folder trainerd.copies, which takes its
// place when a start finds it damaged.
//
// Before a start, damaged checkpoints that are newer than all verified ones are
// moved to the folder "damaged" below the logdir, so that a program that picks
// its newest checkpoint by itself finds one that it can load. A file of TensorFlow,
// DeepSpeed, detectron2 or Megatron-LM that names such a checkpoint is made to name the newest
// verified one. What cannot be read for lack of rights, or because of the device, is
// not damaged: it stays, and does not count.
//
// A program that saves on a signal, [Supervisor.SaveSignal], may leave it to this
// package when: [Supervisor.SaveEvery], SaveSteps and SaveBudget say so. It must
// know the signal before its first report.
//
// [Supervisor.Retention] decides which checkpoints stay. The newest verified one always does,
// and so do those with a file NAME.pin next to them. Nothing outside the logdir
// is ever deleted, nor what symbolic links name, nor a file without a step.
//
// When the program fails twice in a row before its first report, both times
// begun with the same checkpoint, it is given the one before. If it has done nothing
// since that was written, it may not have finished it, in a form that does not show
// that: then the checkpoint goes to damaged/, also where there is none before it,
// and comes back if the program fails without it as well.
//
// [Supervisor.Config] is kept in the file [ConfigName] of the logdir: by it and the
// records `ckpt ls` says why each checkpoint stays.
//
// # How it ends
//
// Exit code 0 is the end of the job. SIGTERM from elsewhere, and exit code 75
// (EX_TEMPFAIL), are preemptions: the program is started again and nothing is
// counted. The codes 64, 65, 78, 126 and 127, and 2 before the first report of
// all, say that another start would fail as well. Everything else is a failure, and so is a program that reports
// no step for [Supervisor.HangAfter]: it is started again, at once when it
// got further than all starts before, and else some time after its last start, which
// doubles until one does (a SIGKILL from elsewhere doubles nothing), as often as
// [Supervisor.Restarts] allows.
//
// When the context of [Supervisor.Run] ends, a program that saves on a signal gets
// [Supervisor.SaveSignal], if it has done steps since its last checkpoint, and up
// to half of [Supervisor.Grace] to write one. Then it gets SIGTERM, it alone: a
// launcher ends its workers by itself. They get SIGTERM once the program has
// ended, or half of what is left of Grace has passed, and all get SIGKILL when
// Grace is over. A stop after which no checkpoint has the last steps is a
// [*SaveLostError]. On Linux the program is also killed when this process dies. What
// it had started may live on then, or when the program itself was killed: Run ends
// all processes with TRAINERD_GROUP of the logdir in their environment before it
// starts the program, so that there is one writer. Those that have changed their
// environment are known by the lock that they inherit, see [logdir.HoldGroup]: where
// somebody has it who cannot be seen, Run fails with a [*logdir.GroupError].
// As the first process of a container, this one waits for orphans.
//
// # Several nodes
//
// With [Supervisor.Nodes] there is a Supervisor on each node, and all have the same
// logdir. The one that has its lock is the chief: it alone looks after checkpoints,
// events and reports. The others are workers. They find each other by small files in
// the folder trainerd.nodes, each of which is replaced as a whole:
//
//	job.json    by the chief: its life and attempt, the checkpoint of that attempt,
//	            and whether it is running, ending, ended, or the job has ended
//	nodeN.json  by the worker N: the attempt that it runs or has run, and its exit
//
// A worker starts the program when the chief does, and ends it when the chief does.
// When the program ends on a worker, or the worker is asked to stop, the chief ends it
// too and starts it again on all nodes; the pauses and the number of such starts are
// those of [Supervisor.Restarts]. The chief waits up to Grace until the program has
// ended on all nodes that had begun it. When nobody has the lock any more the workers
// end the program and try to be the chief. Each node looks every LookEvery.
//
// # Goroutines
//
// Run handles reports, checkpoints and events in the goroutine of its caller.
// Each start of the program has one that waits for it, and readers of its pipes
// and connections; all of them have ended before the next start, and when Run
// returns.
package child
