package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/recipe"
)

// child checks what shows without starting the program.
func (v *Validator) child() {
	c, at := v.config.Child, "child."
	v.Require(v.config.Master == "", "master", "is set together with [child]", "remove it")
	v.Require(v.config.Train.Steps >= 0, "train.steps", fmt.Sprintf("want 0 (not known) or more, got %d", v.config.Train.Steps), "")
	v.Require(len(c.Command) > 0, at+"command", "is missing", `set it to the program and its arguments, as in ["python3", "train.py"]`)
	if why := found.CheckPattern(c.Checkpoints); c.Checkpoints != "" {
		v.Require(why == "", at+"checkpoints", why, `want a pattern below the logdir, as in "ckpt-*.pt"`)
	}
	v.Require(c.KeepBest >= 0 && c.KeepBest <= maxKeepBest, at+"keep_best", fmt.Sprintf("want 0 (none) to %d, got %d", maxKeepBest, c.KeepBest), "")
	v.Require(c.KeepBest == 0 || c.Metric != "" && c.Checkpoints != "", at+"keep_best", "needs child.metric and child.checkpoints", `set both, as in "val/loss" and "ckpt-*.pt", or remove it`)
	v.Require(c.Mode == "" || c.Mode == "min" || c.Mode == "max", at+"mode", fmt.Sprintf("there is no mode %q", c.Mode), `want "min" or "max"`)
	v.Require(c.MaxRewinds >= 0, at+"max_rewinds", fmt.Sprintf("want 0 (never) or more, got %d", c.MaxRewinds), "")
	v.Require(c.MaxRewinds == 0 || c.Checkpoints != "", at+"max_rewinds", "needs child.checkpoints, to find what to continue from", `set that, as in "ckpt-*.pt"`)
	if _, err := recipe.Load(c.Recipe); err != nil {
		v.Require(false, at+"recipe", err.Error(), "")
	}
	v.nodes()
	v.Require(len(c.ResumeArgs) == 0 || !c.isShellLine(), at+"resume_args", "cannot be added to a command that is a line for a shell", `write the command as a list, as in ["python3", "train.py"]`)
	v.Require(len(c.ResumeArgs) == 0 || c.Checkpoints != "", at+"resume_args", "needs child.checkpoints, to find what to resume from", `set that, as in "ckpt-*.pt"`)
	for _, text := range c.Patterns {
		v.pattern(text)
	}
	v.Require(c.MaxRestarts >= 0, at+"max_restarts", fmt.Sprintf("want 0 (never) or more, got %d", c.MaxRestarts), "")
	for key, s := range map[string]Seconds{"restart_window_secs": c.RestartWindowSecs, "backoff_secs": c.BackoffSecs, "max_backoff_secs": c.MaxBackoffSecs} {
		v.Require(s > 0 && s <= maxSeconds, at+key, fmt.Sprintf("want more than 0, up to %.0f seconds, got %v", float64(maxSeconds), float64(s)), "")
	}
	v.Require(c.HangSecs >= 0 && c.HangSecs <= maxSeconds, at+"hang_secs", fmt.Sprintf("want 0 (never) to %.0f seconds, got %v", float64(maxSeconds), float64(c.HangSecs)), "")
	v.Require(c.SaveSignal == "" || c.Signal() != 0, at+"save_signal", fmt.Sprintf("%q is not a signal that this system can send", c.SaveSignal), `want "SIGUSR1", "SIGUSR2" or "SIGHUP"`)
	v.Require(c.SaveSignal == "" || c.Checkpoints != "", at+"save_signal", "needs child.checkpoints, to see what the program saves", `set that, as in "ckpt-*.pt", or remove it`)
}

// nodes checks which machine of how many this is.
func (v *Validator) nodes() {
	c := v.config.Child
	v.Require(c.Nodes >= 1 && c.Nodes <= maxNodes, "child.nodes", fmt.Sprintf("want 1 to %d, got %d", maxNodes, c.Nodes), "")
	v.Require(c.Nodes <= 1 || c.Node >= 0, "child.node", "is missing", "set it to the number of this machine, from 0, or have the scheduler set "+strings.Join(nodeVariables[:3], ", ")+" or "+nodeVariables[3])
	v.Require(c.Nodes <= 1 || c.Node < c.Nodes, "child.node", fmt.Sprintf("want 0 to %d, as child.nodes is %d, got %d", c.Nodes-1, c.Nodes, c.Node), "")
}

// maxNodes bounds child.nodes.
const maxNodes = 10_000

// pattern checks a regular expression for reports.
func (v *Validator) pattern(text string) {
	p, err := regexp.Compile(text)
	if err != nil {
		v.Require(false, "child.patterns", fmt.Sprintf("%q: %s", text, strings.TrimPrefix(err.Error(), "error parsing regexp: ")), "want Go's regular expressions")
		return
	}
	names := p.SubexpNames()
	v.Require(slices.Contains(names, "step") || slices.Contains(names, "global_step"), "child.patterns", fmt.Sprintf("%q has no group named step", text),
		`write it as (?P<step>\d+)`)
}
