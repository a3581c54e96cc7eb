package child

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/child/system"
)

// command returns the program as it is to be started.
func (r *run) command(socket string) *exec.Cmd {
	name := r.Command[0]
	if strings.ContainsRune(name, filepath.Separator) && !filepath.IsAbs(name) {
		// Otherwise the program would be searched for in one folder and started in
		// another.
		if abs, err := filepath.Abs(filepath.Join(r.Dir, name)); err == nil {
			name = abs
		}
	}
	cmd := exec.Command(name, append(slices.Clone(r.Command[1:]), r.resumeArgs()...)...)
	cmd.Dir = r.Dir
	cmd.Env = r.environment(socket)
	return cmd
}

// resumeArgs returns the arguments that make the program continue from a checkpoint.
func (r *run) resumeArgs() (args []string) {
	c := r.attempt.given
	if c == nil {
		return nil
	}
	replace := strings.NewReplacer("{checkpoint}", c.Path, "{step}", fmt.Sprint(max(c.Step, 0)))
	for _, arg := range r.ResumeArgs {
		args = append(args, replace.Replace(arg))
	}
	return args
}

// environment returns the program's environment. socket is "" if it has none.
func (r *run) environment(socket string) []string {
	env := slices.DeleteFunc(os.Environ(), isPrivate)
	if os.Getenv("PYTHONUNBUFFERED") == "" {
		env = append(env, "PYTHONUNBUFFERED=1")
	}
	env = append(env, r.Env...)
	set := func(key string, value any) { env = append(env, fmt.Sprintf("TRAINERD_%s=%v", key, value)) }
	set("LOGDIR", r.logdir)
	env = append(env, system.GroupVariable+"="+r.groupDir)
	set("ATTEMPT", r.attempts)
	if socket != "" {
		set("SOCKET", socket)
	}
	set("GRACE", r.grace().Seconds())
	if r.nodes != nil {
		set("NODES", r.nodes.count)
		set("NODE", r.nodes.own)
		set("CHIEF", r.job.Host)
		set("RENDEZVOUS", r.job.rendezvous())
	}
	if r.Steps > 0 {
		set("STEPS", r.Steps)
	}
	if r.attempt.given != nil {
		set("CHECKPOINT", r.attempt.given.Path)
		if r.attempt.given.Step != found.NoStep {
			set("STEP", r.attempt.given.Step)
		}
	}
	return env
}

// isPrivate reports whether an environment variable of this process is not for the program, because
// an outer trainerd or the service manager has set it for this process alone.
func isPrivate(variable string) bool {
	key, _, _ := strings.Cut(variable, "=")
	return slices.Contains([]string{
		"TRAINERD_LOGDIR", "TRAINERD_ATTEMPT", "TRAINERD_CHECKPOINT", "TRAINERD_STEP", "TRAINERD_STEPS", "TRAINERD_SOCKET", "TRAINERD_GRACE", system.GroupVariable,
		"TRAINERD_NODES", "TRAINERD_NODE", "TRAINERD_CHIEF", "TRAINERD_RENDEZVOUS",
		"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
	}, key)
}
