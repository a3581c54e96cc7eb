// Package world runs whole trainings in a world made from one seed, and checks the rules of
// doc/reliability.md after each of their lives. It consists of tests; this file says how it works.
//
// A history is one training from its first step to its last, in as many lives as
// the world leaves it: in each the process is killed, the power is cut, the disk
// is full, slow or fails, the session is lost, a checkpoint is damaged, or people
// stop it, save, pin and look on. Everything comes from the seed: the kind of
// session, the length of a step, the options, and what goes wrong when. The clock
// is that of testing/synctest, so that days pass in milliseconds; the disk is the
// model of internal/atomicfile/faultfs, which knows what a power cut may leave.
//
// In half of the lives two of these come at once, if the rules still define what is right: a save
// on a full disk in a pause, a stop while the logdir is removed.
//
// There are four worlds. That of the library has each option of Supervisor and Saver.
// That of the daemon runs jobs as it reads them from TOML files: each model family
// and exported graphs, with each key of the config, a control server at a network
// in memory, and people who ask it to stop, save, pause, set, keep and note, start a
// second run, or remove the lock file. A new option or key that has no line in the
// tables of options_test.go and daemon_keys_test.go fails a test.
//
// The third runs programs of others, each of which is a function here, on a simulated
// system.System: a machine whose processes print lines, save files and folders as
// frameworks do and sync nothing, fail, hang, diverge, leave workers, are killed, or
// die with their trainerd. Programs and trainerd write to one disk.
//
// The fourth has the processes of a job on servers: a chief and workers, each with a config of its
// own, and a model of TensorFlow's servers. They speak gRPC over a network in memory, on which
// packets are late, hosts are cut off, refuse, or break connections at one end or at both. Servers,
// processes and the chief's machine are killed, frozen or stopped, one or several at a time, and
// come back. The logdir is removed. A freeze stops the host and its servers, but not the timers of
// a trainerd process.
//
// The rules:
//
//   - no announced save is lost or torn: a life begins at the step announced last
//     or later, with the bits that the undisturbed training has there
//   - there is an intact checkpoint from the first announced save on
//   - the last life ends with the bits of the undisturbed training, whatever the
//     options are and whatever else reads the files
//   - the curve has each point of the undisturbed training, once, in rising order,
//     with TensorFlow's rule of restarts and with those of both loaders of TensorBoard
//   - no temporary file and no goroutine is left, and nothing outside the logdir
//     was touched
//
// and of jobs also:
//
//   - each step has the bits of a training with none of the options that must not
//     matter, and so have the best checkpoints, which are those of the best evaluations
//   - exit codes and last words are those of doc/exit-codes.md
//   - a second run is refused, a pause makes no step, a kept checkpoint stays
//   - no file is left open, and no run stops making progress
//
// and in half of the histories of jobs and programs, where a data server looks at the
// logdir from the first life to the last, over a network in memory:
//
//   - after each life and now and then it has the points of the events files, each once,
//     and no others; it has no file open
//
// and of programs:
//
//   - no start of the program begins before the step that was announced, unless
//     trainerd has gone back on purpose, nor with a checkpoint that is damaged
//   - there is one writer: no process of an earlier start is alive
//   - a save that is lost at a stop is not exit code 0, and no other is said to be lost
//   - the points that a death of trainerd may cost are those after what was announced
//   - a second name of the newest checkpoint, in a file or as a link, leads to an intact one, and
//     so does a copy of it, which a kill may have cut short
//   - a disk that is full for hours does not end a run
//   - on several nodes a pause outlives its chief, and a worker that is stopped: no start
//     begins before it is resumed; and no chief waits in vain for a node whose program has ended
//
// and of jobs on servers:
//
//   - a model on servers that have lost nothing never goes back to an earlier step,
//     and one that a chief makes ready is not older than what was announced
//   - a worker trains only what the chief has made ready, and each time that a model
//     is put onto servers it has a new generation
//   - whatever was away, all tasks make steps again without help, none ends with an
//     error, and no log is silent for more than 30 s
//   - a task that is stopped ends soon; a second chief is refused
//
// A history that breaks one is run again with fewer lives and options for as long
// as it still does, and is printed as the flags that repeat it.
//
//	go test ./trainerd/world                               some seeds, the same each time
//	go test ./trainerd/world -run World -for 1h -v         as many as an hour takes
//	go test ./trainerd/world -run TestWorld -seed 4711 -v  one, with its story
//
// The rules are tested too: defects_test.go, daemon_defects_test.go, child_defects_test.go and
// cluster_defects_test.go plant defects, and code_defects_test.go plants some in the code itself;
// each must be found.
//
// A seed decides what happens, but not how goroutines are scheduled, nor the random names of the
// config: reproducing a rare failure may need several runs.
//
// Not in these worlds yet: exported graphs on servers.
package world
