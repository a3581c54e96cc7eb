// Package world runs whole trainings in a world made from one seed, and asks the
// rules of doc/reliability.md after each of their lives. All of it is tests; this
// file says how it works.
//
// A history is one training from its first step to its last, in as many lives as
// the world leaves it: in each the process is killed, the power is cut, the disk
// is full, slow or fails, the session is lost, a checkpoint is damaged, or people
// stop it, save, pin and look on. Everything comes from the seed: the kind of
// session, the length of a step, each option of Supervisor and Saver (a new
// option without a line in the table of options_test.go fails a test), and what
// goes wrong when. The clock is that of testing/synctest, so that days pass in
// milliseconds; the disk is the model of internal/atomicfile/faultfs, which knows
// what a power cut may leave.
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
// A history that breaks one is run again with fewer lives and options for as long
// as it still does, and is printed as the flags that repeat it.
//
//	go test ./trainerd/world                               thirty seeds, the same each time
//	go test ./trainerd/world -run World -for 1h -v         as many as an hour takes
//	go test ./trainerd/world -run World -seed 4711 -v      one, with its story
//
// What the rules are worth is tested too: defects_test.go plants defects, each of
// which must be found.
//
// Not in this world yet: programs as children, clusters of servers, the network, the
// control socket, and jobs as the daemon reads them.
package world
