package config

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// scope reports the keys that mean nothing in the kind of job that the config
// describes: anyone who sets one believes that it does something.
func (v *Validator) scope() {
	for key := range v.config.origins {
		if why, hint := v.config.uselessKey(key); why != "" {
			v.Require(false, key, why, hint)
		}
	}
}

// uselessKey returns why a key has no effect in this kind of job, and what to
// do; "" for a key that has one. What the values of other keys of the same
// table rule out is said by the checks of that table.
func (c *Config) uselessKey(key string) (why, hint string) {
	table, _, _ := strings.Cut(key, ".")
	switch {
	case c.IsChild():
		return c.uselessForChild(table, key)
	case c.IsGraph():
		return c.uselessForGraph(table, key)
	case table == "graph":
		return "needs graph.meta, the graph to train", "set that and remove [model], or remove [graph]"
	}
	return "", ""
}

// uselessForGraph is uselessKey for a job that trains an exported graph.
func (c *Config) uselessForGraph(table, key string) (why, hint string) {
	noData := c.Data.File == ""
	switch {
	case key == "model.classes" && !noData: // says how many the labels have
	case table == "model":
		return "is set together with graph.meta", "remove [model] to train the graph, or [graph] to train the family"
	case table == "data" && noData:
		return "needs data.file", "set that, or remove [data] for a graph that has its own input"
	case key == "data.texts":
		return "is for model families: a graph makes its own features", "remove it, or put the columns into data.drop"
	case key == "data.date_parts":
		return "is for model families: a graph makes its own features", "remove it; a date is its days"
	case key == "data.keep_statistics":
		return "is for model families: the statistics of a graph's data are in no checkpoint", "remove it"
	case key == "graph.eval_feeds" && noData:
		return "needs data.file: without a test part there are no evaluations", "remove it"
	}
	return "", ""
}

// hasTestPart reports whether some of the data is kept for evaluations.
func (c *Config) hasTestPart() bool {
	return c.Data.TestFile != "" || c.Data.TestRows != 0 || c.Data.TestFraction != 0
}

// asksToEvaluate reports whether a key asks for more than no evaluation.
func (c *Config) asksToEvaluate(key string) bool {
	switch e := c.Eval; key {
	case "eval.steps", "train.eval_steps":
		return e.Steps != 0
	case "train.early_stopping":
		return c.Train.EarlyStopping != 0
	case "eval.secs":
		return e.Secs != 0
	case "eval.keep_best":
		return e.KeepBest != 0
	}
	return true
}

// The keys of [supervisor] that a job with a program uses: itself, for the
// checkpoints of the program, and to make the program save.
var (
	childServices    = []string{"save_summaries_secs", "stop_grace_secs"}
	childCheckpoints = []string{"max_to_keep", "keep_checkpoint_every_n_hours", "keep_steps"}
	childSaves       = []string{"save_model_secs", "save_model_steps", "max_save_share", "max_risk_secs"}
)

// uselessForChild is uselessKey for a job that is done by a program.
func (c *Config) uselessForChild(table, key string) (why, hint string) {
	switch table {
	case "data", "model", "graph", "eval", "warm_start":
		return "is set together with [child], whose program has its own model and data", "remove one of the two"
	case "cluster":
		return "is set together with [child], whose program this process starts alone", "remove it; a program that spreads itself over machines needs no [cluster]"
	case "train":
		if key != "train.steps" {
			return "is set together with [child], whose program has its own model and data", "remove it; train.steps is passed to the program"
		}
	case "supervisor":
		return c.uselessSupervisorForChild(strings.TrimPrefix(key, "supervisor."))
	}
	return "", ""
}

func (c *Config) uselessSupervisorForChild(name string) (why, hint string) {
	x := c.Child
	switch {
	case slices.Contains(childServices, name), slices.Contains(childCheckpoints, name):
	case slices.Contains(childSaves, name):
		switch {
		case x.SaveSignal == "" || x.Checkpoints == "":
			return "needs child.save_signal and child.checkpoints: only a program that can be told to save is saved at intervals", "set both, or remove it and let the program save by itself"
		case name == "max_save_share" && c.Supervisor.MaxSaveShare != 0 && c.ChildSaveEvery() <= 0 && c.Supervisor.SaveModelSteps == 0:
			return "bounds the saves that supervisor.save_model_secs and save_model_steps ask for, and neither is set", "set one of the two, or remove it"
		}
	default:
		return "has no effect on a program, which writes its checkpoints and summaries itself", "remove it, and set it in the program"
	}
	return "", ""
}

// LogIdleKeys says which keys have no effect because of another one. That is not an
// error: keys come from files and from flags, and to train once without a test part one
// need not take the evaluations out of the file.
func (c *Config) LogIdleKeys(log *slog.Logger) {
	for _, key := range slices.Sorted(maps.Keys(c.origins)) {
		if why := c.idleKey(key); why != "" {
			log.Warn("a setting has no effect in this job", "key", key, "why", why)
		}
	}
}

// idleKey returns why a key has no effect as long as another one is as it is;
// "" for a key that has one.
func (c *Config) idleKey(key string) (why string) {
	table, name, _ := strings.Cut(key, ".")
	switch {
	case c.IsChild():
		if table == "supervisor" && slices.Contains(childCheckpoints, name) && c.Child.Checkpoints == "" {
			return "child.checkpoints does not say where the checkpoints are"
		}
		if key == "child.keep_best" && c.Child.KeepBest > 0 && c.Supervisor.MaxToKeep == 0 {
			return "supervisor.max_to_keep is 0, which keeps all"
		}
		if (key == "child.metric" || key == "child.mode") && c.Child.KeepBest == 0 {
			return "child.keep_best is 0"
		}
		if key == "child.node" && c.Child.Nodes <= 1 {
			return "child.nodes is 1"
		}
		if key == "child.loss" && c.Child.MaxRewinds == 0 {
			return "child.max_rewinds is 0"
		}
	case key == "supervisor.recovery_wait_secs" && !c.IsRemote():
		return "the embedded runtime has no workers that wait for a chief"
	case (table == "eval" || key == "train.eval_steps" || key == "train.early_stopping") && !c.hasTestPart() && c.asksToEvaluate(key):
		return "there is no test part to evaluate on: see data.test_fraction, data.test_rows and data.test_file"
	}
	return ""
}
