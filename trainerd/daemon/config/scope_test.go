package config

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The smallest jobs of all kinds, with a test part where there are data.
const (
	familyJob  = "logdir = 'logs'\ntrain.steps = 10\ndata = { file = 'd.csv', test_rows = 3 }\nmodel.family = 'mlp'\nmodel.hidden = [3]\n"
	graphOfJob = "logdir = 'logs'\ntrain.steps = 10\ndata = { file = 'd.csv', test_rows = 3 }\ngraph.meta = 'm.meta'\n"
)

// kindsOfJob are all kinds, with the keys that they obey: whole tables, or one
// by one. "!" takes one out. Those with "?" have no effect because of another key,
// which is said. All others have to be refused.
var kindsOfJob = []struct {
	name, text string
	obeyed     []string
	elsewhere  []string // keys that make it a job of another kind
}{
	{"family", familyJob, []string{"name", "logdir", "master", "data", "model", "train", "eval", "supervisor", "warm_start",
		"cluster.sync", "?supervisor.recovery_wait_secs", "!supervisor.is_chief", "!eval.fetches"}, []string{"graph.meta"}},
	{"family, served", "master = 'local'\n" + familyJob, []string{"name", "logdir", "master", "data", "model", "train", "eval", "supervisor", "warm_start",
		"cluster.sync", "cluster.listen", "cluster.listen_public", "cluster.listen_files", "?supervisor.recovery_wait_secs", "!supervisor.is_chief", "!eval.fetches"}, []string{"graph.meta"}},
	{"family on servers", "master = 'grpc://h:1'\n" + familyJob, []string{"name", "logdir", "master", "data", "model", "train", "eval", "supervisor",
		"cluster", "!cluster.listen", "!cluster.listen_public", "!cluster.listen_files", "!supervisor.write_version", "!supervisor.shards", "!eval.fetches", "!train.memory_mb"}, []string{"graph.meta"}},
	{"family without a test part", strings.Replace(familyJob, ", test_rows = 3", "", 1), []string{"name", "logdir", "master", "data", "model", "train", "supervisor", "warm_start",
		"cluster.sync", "?eval", "?train.eval_steps", "?train.early_stopping", "!eval.fetches", "?supervisor.recovery_wait_secs", "!supervisor.is_chief"}, []string{"graph.meta"}},
	{"graph", graphOfJob, []string{"name", "logdir", "master", "data", "graph", "train", "eval", "supervisor", "warm_start",
		"model.classes", "!data.keep_statistics", "!data.date_parts", "!data.texts", "!graph.bundle", "?supervisor.recovery_wait_secs", "!supervisor.is_chief"}, nil},
	{"graph with its own input", "logdir = 'logs'\ngraph.meta = 'm.meta'\n", []string{"name", "logdir", "master", "graph", "train.steps", "train.memory_mb", "supervisor", "warm_start",
		"?eval", "?train.eval_steps", "?train.early_stopping", "!graph.eval_feeds", "?supervisor.recovery_wait_secs", "!supervisor.is_chief"}, []string{"data.file"}},
	{"graph on servers", "master = 'grpc://h:1'\ncluster.checkpoint_via = 'client'\n" + graphOfJob, []string{"name", "logdir", "master", "data", "graph", "train", "eval", "supervisor", "warm_start",
		"cluster", "model.classes", "!data.keep_statistics", "!data.date_parts", "!data.texts", "!graph.bundle", "!cluster.sync", "!cluster.replicas_to_aggregate", "!cluster.listen", "!cluster.listen_public", "!cluster.listen_files", "!train.memory_mb"}, []string{"master"}},
	{"program", "logdir = 'logs'\nchild.command = ['true']\n", []string{"name", "logdir", "child", "train.steps",
		"supervisor.save_summaries_secs", "supervisor.stop_grace_secs", "!child.save_signal", "!child.resume_args",
		"?supervisor.max_to_keep", "?supervisor.keep_checkpoint_every_n_hours", "?supervisor.keep_steps"}, nil},
	{"program with checkpoints", "logdir = 'logs'\nchild = { command = ['true'], checkpoints = 'c-*' }\n", []string{"name", "logdir", "child", "train.steps",
		"supervisor.save_summaries_secs", "supervisor.stop_grace_secs", "supervisor.max_to_keep", "supervisor.keep_checkpoint_every_n_hours", "supervisor.keep_steps"}, nil},
	{"program that is told to save", "logdir = 'logs'\nchild = { command = ['true'], checkpoints = 'c-*', save_signal = 'SIGHUP' }\n", []string{"name", "logdir", "child", "train.steps",
		"supervisor.save_summaries_secs", "supervisor.stop_grace_secs", "supervisor.max_to_keep", "supervisor.keep_checkpoint_every_n_hours", "supervisor.keep_steps",
		"supervisor.save_model_secs", "supervisor.save_model_steps", "supervisor.max_risk_secs"}, nil},
	{"program that saves at times", "logdir = 'logs'\nsupervisor.save_model_secs = 5\nchild = { command = ['true'], checkpoints = 'c-*', save_signal = 'SIGHUP' }\n", []string{"name", "logdir", "child", "train.steps",
		"supervisor.save_summaries_secs", "supervisor.stop_grace_secs", "supervisor.max_to_keep", "supervisor.keep_checkpoint_every_n_hours", "supervisor.keep_steps",
		"supervisor.save_model_secs", "supervisor.save_model_steps", "supervisor.max_risk_secs", "supervisor.max_save_share"}, nil},
}

// setting is a value, other than the default, for a key; together with what it
// cannot stand without, or together with.
var setting = map[string]string{
	"name": "'n'", "logdir": "'other'", "master": "'local'",
	"data.file": "'e.csv'", "data.format": "'idx'", "data.separator": "';'", "data.header": "true", "data.label": "0", "data.labels": "'l'& data.format='idx'",
	"data.features": "['a']& data.format='tfrecord'", "data.quote": "\"'\"", "data.comment": "'#'", "data.skip_lines": "1", "data.encoding": "'latin1'", "data.decimal": "','", "data.thousands": "','",
	"data.weight": "'w'", "data.group": "'g'", "data.header_rows": "2& data.header=true", "data.class_weights": "balanced", "data.drop": "['b']", "data.categories": "['c', 4]", "data.texts": "['t']", "data.dates": "{ d = 'iso', 5 = '%d.%m.%Y' }", "data.date_parts": "{ d = ['weekday'] }& data.dates={ d = 'iso' }", "data.missing": "'fill'", "data.units": "{ d = 'kg' }", "data.na_values": "{ d = ['unknown'] } & data.missing='fill'",
	"data.image": "[2, 2, 1]", "data.scale": "2", "data.normalize": "'minmax'", "data.keep_statistics": "true", "data.shuffle": "false",
	"data.shuffle_buffer": "5& data.format='tfrecord'", "data.memory_mb": "7", "data.seed": "3", "data.test_file": "'t'& data.test_rows=0", "data.test_labels": "'t'& data.format='idx'",
	"data.test_fraction": "0.5& data.test_rows=0", "data.test_rows": "4", "data.batch_size": "2",
	"model.family": "'softmax'& model.hidden=[]", "model.inputs": "3", "model.classes": "3", "model.hidden": "[4]", "model.wide": "true", "model.activation": "'tanh'", "model.initializer": "'zeros'",
	"model.dropout": "0.5", "model.batch_norm": "true", "model.batch_norm_momentum": "0.5", "model.l2": "0.5", "model.seed": "1",
	"model.image": "[2, 2, 1]& model.family='convnet'& model.filters=[2]", "model.filters": "[2]& model.family='convnet'", "model.kernel_size": "2", "model.pool": "1",
	"model.vocabulary": "9& model.family='embedding_bag'", "model.embedding": "3", "model.combiner": "'sum'", "model.loss": "'huber_loss'& model.family='mlp_regressor'", "model.huber_delta": "2& model.loss='huber_loss'& model.family='mlp_regressor'",
	"model.optimizer": "'adam'", "model.learning_rate": "0.5", "model.schedule": "'exponential'& model.decay_steps=3", "model.decay_steps": "3", "model.decay_rate": "0.5",
	"model.staircase": "true", "model.end_learning_rate": "0.5", "model.power": "2", "model.boundaries": "[1]& model.rates=[1, 2]& model.schedule='piecewise'",
	"model.rates": "[1, 2]& model.boundaries=[1]& model.schedule='piecewise'", "model.warmup_steps": "2", "model.momentum": "0.5", "model.nesterov": "true", "model.beta1": "0.5",
	"model.beta2": "0.5", "model.rho": "0.5", "model.epsilon": "0.5", "model.initial_accumulator": "0.5", "model.learning_rate_power": "-1", "model.ftrl_l1": "1", "model.ftrl_l2": "1",
	"graph.meta": "'n.meta'", "graph.dir": "'d'", "graph.train_op": "'t'", "graph.init": "['i']", "graph.loss": "'l'", "graph.summary_op": "'s'", "graph.fetches": "['f']",
	"graph.feeds": "{ x = 1 }", "graph.eval_feeds": "{ x = 1 }", "graph.bundle": "'b'",
	"train.memory_mb": "5", "train.steps": "5", "train.epochs": "5", "train.eval_steps": "5", "train.early_stopping": "3& eval.steps=5",
	"eval.steps": "5", "eval.secs": "5", "eval.batch_size": "5", "eval.fetches": "['f']", "eval.metric": "'loss'", "eval.mode": "'min'", "eval.keep_best": "2",
	"child.command": "'false'", "child.dir": "'d'", "child.env": "{ A = 'b' }", "child.checkpoints": "'k-*'", "child.recipe": "'plain'", "child.resume_args": "['--resume']",
	"child.patterns": "['(?P<step>1)']", "child.max_restarts": "1", "child.nodes": "2& child.node=1", "child.node": "1& child.nodes=2",
	"child.restart_window_secs": "1", "child.backoff_secs": "2", "child.max_backoff_secs": "1", "child.hang_secs": "1", "child.metric": "'loss'& child.keep_best=1& child.checkpoints='k-*'",
	"child.mode": "'max'& child.metric='loss'& child.keep_best=1& child.checkpoints='k-*'", "child.keep_best": "2& child.metric='loss'& child.checkpoints='k-*'", "child.save_signal": "'SIGUSR1'",
	"child.max_rewinds": "1& child.checkpoints='k-*'", "child.loss": "'l'& child.max_rewinds=1& child.checkpoints='k-*'",
	"warm_start.from": "'w'", "warm_start.map": "'keras-to-torch'& warm_start.from='w'", "warm_start.include": "['a']& warm_start.from='w'",
	"warm_start.exclude": "['a']& warm_start.from='w'", "warm_start.missing": "'init'& warm_start.from='w'",
	"warm_start.reshape": "true& warm_start.from='w'", "warm_start.averages": "true& warm_start.from='w'",
	"supervisor.save_model_secs": "1", "supervisor.save_model_steps": "1", "supervisor.save_summaries_secs": "1", "supervisor.save_summaries_steps": "1",
	"supervisor.recovery_wait_secs": "1", "supervisor.stop_grace_secs": "1", "supervisor.checkpoint_basename": "'b'", "supervisor.max_to_keep": "1",
	"supervisor.keep_checkpoint_every_n_hours": "1", "supervisor.keep_steps": "[1]", "supervisor.max_save_share": "0.5", "supervisor.max_risk_secs": "1",
	"supervisor.write_version": "'V1'", "supervisor.shards": "2", "supervisor.is_chief": "false",
	"cluster.ps_tasks": "1", "cluster.workers": "2", "cluster.task": "0", "cluster.sync": "true", "cluster.replicas_to_aggregate": "1& cluster.sync=true",
	"cluster.checkpoint_via": "'client'", "cluster.patience_secs": "1", "cluster.listen": "'localhost:1'", "cluster.listen_public": "true", "cluster.listen_files": "'logdir'",
	"cluster.tls": "true", "cluster.tls_server_name": "'s'", "cluster.tls_ca": "'a'", "cluster.tls_cert": "'c'& cluster.tls_key='k'", "cluster.tls_key": "'k'& cluster.tls_cert='c'",
}

// listed reports whether a key, or its table, is in a list with a mark before it.
func listed(list []string, mark, key string) bool {
	table, _, _ := strings.Cut(key, ".")
	return !slices.Contains(list, "!"+key) && (slices.Contains(list, mark+key) || slices.Contains(list, mark+table))
}

// fate is what becomes of a key in a kind of job.
type fate int

const (
	isRefused fate = iota
	isObeyed
	isIdle
)

func fateOf(list []string, key string) fate {
	switch {
	case listed(list, "?", key):
		return isIdle
	case listed(list, "", key):
		return isObeyed
	}
	return isRefused
}

// TestEveryKeyCounts sets every key in every kind of job: the key is obeyed, or
// said to have no effect, or the config is refused because of it.
func TestEveryKeyCounts(t *testing.T) {
	root := reflect.ValueOf(Default()).Elem()
	for _, kind := range kindsOfJob {
		t.Run(kind.name, func(t *testing.T) {
			if _, _, err := load(t, kind.text); err != nil {
				t.Fatal(err)
			}
			for _, key := range allKeys("", root) {
				if !strings.Contains(key, ".") && setting[key] == "" || slices.Contains(kind.elsewhere, key) {
					continue // a table, or what makes it a job of another kind
				}
				kindSets(t, kind.text, key, fateOf(kind.obeyed, key))
			}
		})
	}
}

func kindSets(t *testing.T, text, key string, want fate) {
	t.Helper()
	value, with, _ := strings.Cut(setting[key], "&")
	if value == "" {
		t.Errorf("no value to try %s with", key)
		return
	}
	if want == isRefused {
		with = "" // the key alone is what is refused
	}
	if key == "train.epochs" && want == isObeyed {
		text = strings.Replace(text, "train.steps = 10\n", "", 1)
	}
	overrides := []Override{{Flag: "--set", Assignment: key + "=" + value}}
	for more := range strings.SplitSeq(with, "&") {
		if more != "" {
			overrides = append(overrides, Override{Flag: "--set more", Assignment: strings.TrimSpace(more)})
		}
	}
	_, c, err := load(t, text, overrides...)
	if want != isRefused {
		if err != nil {
			t.Errorf("%s: %v", key, err)
		} else if why := c.idleKey(key); (why != "") != (want == isIdle) {
			t.Errorf("%s has no effect because %q", key, why)
		}
		return
	}
	var all *Error
	found := errors.As(err, &all) && slices.ContainsFunc(all.Problems, func(p *Problem) bool { return p.Key == key && p.Flag == "--set" && p.Hint != "" })
	if !found && (!strings.HasPrefix(key, "child.") || key == "child.save_signal") {
		t.Errorf("%s is neither obeyed nor refused: %v", key, err)
	}
}
