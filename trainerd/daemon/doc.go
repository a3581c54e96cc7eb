// Package daemon runs training jobs: it reads a job's config, assembles data,
// model, runtime and Supervisor, trains, and tells how it goes.
//
// [LoadConfig] reads and checks the TOML file. [Check] says what a job would
// do. [Run] does it: it trains from where the logdir stands up to the last
// step, saving checkpoints and summaries, and evaluates the model on the test
// part of the data. When its context is cancelled it stops between two steps
// and saves, so that the next Run goes on there.
//
// [InspectGraph] and [RunGraph] do without a config: they take a MetaGraphDef
// that TensorFlow has exported, show what it needs and offers, and run it.
//
// # Exactness
//
// A batch is a function of the config and the step, and a checkpoint holds
// everything else that a step depends on. So a job that was killed and started
// again, however often, ends with the same bits as one that was not, and its
// curves have each point once. Summaries by steps are written at step 1, at
// the multiples of save_summaries_steps and at the last step, wherever the job
// was interrupted; a point's step is the number of steps done, its loss that
// of the batch before the step's update.
//
// # Goroutines
//
// Run trains in the goroutine of its caller. The services of the Supervisor
// run beside it and have ended when Run returns.
package daemon
