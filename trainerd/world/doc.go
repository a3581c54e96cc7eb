// Package world runs whole trainings in a world made from one seed, and asks the
// rules of doc/reliability.md after each of their lives. All of it is tests; this
// file says how it works.
//
// A history is one training from its first step to its last, in as many lives as
// the world leaves it: in each the process is killed, the power is cut, the disk
// is full, slow or fails, the session is lost, a checkpoint is damaged, or people
// stop it, save, pin and look on. Everything comes from the seed: the kind of
// session, the length of a step, the options, and what goes wrong when. The clock
// is that of testing/synctest, so that days pass in milliseconds; the disk is the
// model of internal/atomicfile/faultfs, which knows what a power cut may leave.
//
// There are three worlds. That of the library has each option of Supervisor and Saver.
// That of the daemon runs jobs as it reads them from TOML files: each model family
// and exported graphs, with each key of the config, a control server at a network
// in memory, and people who ask it to stop, save, pause, set, keep and note, start a
// second run, or remove the lock file. A new option or key that has no line in the
// tables of options_test.go and daemon_keys_test.go fails a test.
//
// The third runs programs of others, each of which is a function here, on a simulated
// child.System: a machine whose processes print lines, save files and folders as
// frameworks do and sync nothing, fail, hang, diverge, leave workers, are killed, or
// die with their trainerd. Programs and trainerd write to one disk.
//
// The rules:
//
//   - no announced save is lost or torn: a life begins at the step announced last
//     or later, with the bits that the undisturbed training has there
//   - there is an intact checkpoint from the first announced save on
//   - the last life ends with the bits of the undisturbed training, whatever the
//     options are and whatever else reads the files
//   - the curve has each point of the undisturbed training, once, in rising order,
//     with TensorFlow's rule of restarts and with TensorBoard's
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
// and of programs:
//
//   - no start of the program begins before the step that was announced, unless
//     trainerd has gone back on purpose, nor with a checkpoint that is damaged
//   - there is one writer: no process of an earlier start is alive
//   - a save that is lost at a stop is not exit code 0, and no other is said to be lost
//   - the points that a death of trainerd may cost are those after what was announced
//
// A history that breaks one is run again with fewer lives and options for as long
// as it still does, and is printed as the flags that repeat it.
//
//	go test ./trainerd/world                               some seeds, the same each time
//	go test ./trainerd/world -run World -for 1h -v         as many as an hour takes
//	go test ./trainerd/world -run TestWorld -seed 4711 -v  one, with its story
//
// What the rules are worth is tested too: defects_test.go, daemon_defects_test.go
// and child_defects_test.go plant defects, each of which must be found.
//
// Not in these worlds yet: clusters of servers and their network, programs on several
// nodes, and the data server.
package world
