// Package daemon runs training jobs: it assembles data, model, session and
// Supervisor from a config, trains, and reports progress.
//
// [Check] reports what a job would do. [Run] does it: it trains from the state of
// the logdir up to the last step, or to the end of the input, saving checkpoints
// and summaries, and evaluates the model on the test part of the data. When its
// context is cancelled it stops between two steps and saves, so that the next Run
// continues there. [ExitCode] maps their errors to the exit codes of the command.
//
// The parts have packages of their own:
//
//	config    the TOML file of a job
//	program   what a job trains: a program and its input
//	graphrun  programs that TensorFlow has exported
//	cluster   sessions on TensorFlow servers, and the workers that share a model
//
// A job whose program is another process is supervised by package child.
//
// # What a logdir holds
//
//	checkpoint, model.ckpt-N.*   checkpoints, and which of them are current
//	events.out.tfevents.*        summaries of the training
//	graph.pbtxt                  the graph
//	eval/events.out.tfevents.*   evaluations: for TensorBoard a run of its own,
//	                             with the tags loss and accuracy or those of
//	                             eval.fetches
//	best/model.ckpt-N.*          the best checkpoints, with eval.keep_best
//	best/best.json               their steps and values, the best first
//	trainerd.lock                who uses the logdir
//
// # Exactness
//
// A batch is a function of the config and the step, and a checkpoint holds everything else that a
// step depends on. A checkpoint also holds the state of the input that a graph reads by itself. If
// it lacks that, as on a server, the elements that the earlier steps took are taken again and
// skipped, which is exact unless random ops or several threads fill the queues. So a job that was
// killed and started again, however often, ends with the same bits as an uninterrupted one, and its
// curves have each point once. Timed evaluations come at different steps each time, but change
// nothing in the training. With save_summaries_steps, summaries are written at step 1, at its
// multiples and at the last step, wherever the job was interrupted; a point's step is the number of
// steps done, its loss that of the batch before the step's update.
//
// # Goroutines
//
// Run trains in the goroutine of its caller. The services of the Supervisor
// run at the same time and have ended when Run returns; so has the heartbeat of a
// job on servers, which keeps its log from being silent.
package daemon
