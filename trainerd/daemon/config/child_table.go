package config

// Child says which program trains, instead of this one, and how it is kept
// alive; package child has the protocol between the two. Of [supervisor] it uses
// stop_grace_secs, the time from SIGTERM to SIGKILL, save_summaries_secs, for
// global_step/sec, and, with checkpoints, max_to_keep, keep_steps and
// keep_checkpoint_every_n_hours. With save_signal, save_model_secs,
// save_model_steps, max_save_share and max_risk_secs decide when it is asked to
// save, if they are set; they have no defaults here. The other tables are for
// other jobs, except train.steps: how far it is to train, if that is known.
type Child struct {
	// Command is the program and its arguments, as a list, or a line for /bin/sh.
	// The words after -- on the command line of trainerd run override it.
	Command Command `toml:"command"`
	// Dir is its working directory. A relative path starts at the config's
	// folder. Default: that folder, or for words after -- the current directory.
	Dir string `toml:"dir" path:"config"`
	// Env is added to its environment, as in env = { OMP_NUM_THREADS = "4" }.
	Env Variables `toml:"env"`
	// Checkpoints is a pattern, relative to the logdir, of the files or folders that it
	// saves, as in "ckpt-*.pt". The step is taken from the names. Files of one step are one
	// checkpoint; {weights,optim}_*.npz means both files of each step.
	Checkpoints string `toml:"checkpoints"`
	// Metric is the name of a curve that it reports, such as "val/loss", by which
	// keep_best chooses among the checkpoints of steps for which it was reported.
	Metric string `toml:"metric"`
	// Mode is "max" if more of the metric is better, "min" if less is. Default:
	// "min" for names that end in loss or error, else "max".
	Mode string `toml:"mode"`
	// KeepBest is the number of checkpoints with the best values of metric that are
	// kept, in addition to those that supervisor.max_to_keep and the like keep; 0
	// for none.
	KeepBest int `toml:"keep_best"`
	// MaxRewinds is how often in a row it may be killed and started again from an
	// earlier checkpoint because its loss was NaN or infinite; the later checkpoints
	// are moved to damaged/. 0: its loss is not watched.
	MaxRewinds int `toml:"max_rewinds"`
	// Loss is the name of the curve that max_rewinds watches. Default: the first of "loss",
	// "train/loss", "train_loss" and "total_loss" that it reports, else the first with "loss" in its
	// name that does not come from an evaluation.
	Loss string `toml:"loss"`
	// Recipe says what kind of program it is: "transformers", "lightning", "keras",
	// "nanogpt", "torchrun", "jax", "tf1", "xgboost", "plain", or the path of a
	// .toml file that was begun by trainerd init --recipe NAME. It knows the lines
	// that such programs print, the names of their checkpoints, the argument that
	// makes them resume if the script takes one, and the signal that makes them
	// save; checkpoints, resume_args and save_signal override it. Default: "auto",
	// which knows the lines of all kinds, and nothing else.
	Recipe string `toml:"recipe" path:"or name"`
	// ResumeArgs are added to its arguments if there is a checkpoint to resume
	// from, with {checkpoint} and {step} replaced, as in ["--resume",
	// "{checkpoint}"].
	ResumeArgs []string `toml:"resume_args"`
	// Nodes is the number of machines on which it runs at the same time, each with a
	// trainerd and all with the same logdir: the one that has the logdir's lock is
	// the chief.
	Nodes int `toml:"nodes"`
	// Node is the number of this machine, from 0 to nodes-1. -1: the one in
	// SLURM_NODEID, JOB_COMPLETION_INDEX, OMPI_COMM_WORLD_RANK or NODE_RANK.
	Node int `toml:"node"`
	// Patterns are regular expressions that read reports from its output, with a
	// group named step and one for each curve, as in
	// 'step (?P<step>\d+) loss (?P<loss>\S+)'. "__" in a name means "/".
	Patterns []string `toml:"patterns"`
	// MaxRestarts is how often it may fail within restart_window_secs and still
	// be restarted; 0 for never. Preemptions, by SIGTERM or exit code 75, do
	// not count.
	MaxRestarts int `toml:"max_restarts"`
	// RestartWindowSecs is the time after which a failure is forgotten.
	RestartWindowSecs Seconds `toml:"restart_window_secs"`
	// BackoffSecs is the time from one start to the next if the program got no further than before.
	// It doubles until the program does, but not after a SIGKILL.
	BackoffSecs Seconds `toml:"backoff_secs"`
	// MaxBackoffSecs is the longest such time. On a full disk, the pause is at least 10 seconds.
	MaxBackoffSecs Seconds `toml:"max_backoff_secs"`
	// HangSecs without a new step count as a hang: it is stopped and restarted. 0
	// for never.
	HangSecs Seconds `toml:"hang_secs"`
	// SaveSignal makes it write a checkpoint, for trainerd save and for
	// supervisor.save_model_secs and the like: "SIGUSR1", "SIGUSR2" or "SIGHUP".
	// The program must handle the signal from its first report on. Default: none.
	SaveSignal string `toml:"save_signal"`
}
