package trial

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/trainerd/trainerd/internal/lazyregexp"
	"github.com/trainerd/trainerd/internal/shell"
	"github.com/trainerd/trainerd/trainerd/recipe"
)

var configTemplate = template.Must(template.New("config").Funcs(template.FuncMap{"quote": tomlString, "list": tomlList, "line": oneLine}).Parse(`# {{line .Name}}: keeps a program alive.
#
#   trainerd check {{.Config}}     what a run would do, and every problem
#   trainerd run   {{.Config}}     train; Ctrl-C stops, run again resumes
#   trainerd tensorboard {{line .Logdir}}
#
# The program was run for {{.Took}}:
{{- range .Story}}
#   {{line .}}
{{- end}}

# Events, and checkpoints, are here; the program finds it in TRAINERD_LOGDIR. A
# relative path starts at the folder in which you type the command.
logdir = {{quote .Logdir}}

[child]
command = {{list .Command}}
dir = {{quote .Dir}}   # its working directory; a relative path starts at this file's folder
{{- if .Recipe}}
recipe = {{quote .Recipe}}   # whose lines it prints; ` + "`trainerd init --recipe {{.Recipe}}`" + ` shows them
{{- end}}
{{- if .Silent}}
# Regular expressions for its lines, with groups for the step and the curves:
# patterns = ['step (?P<step>\d+) loss (?P<loss>\S+)']
{{- end}}
{{- if .Pattern}}
checkpoints = {{quote .Pattern}}
{{- else}}
# The names of what it saves below logdir; it has saved nothing that could be seen:
# checkpoints = "ckpt-*.pt"
{{- end}}
{{- if .ResumeArgs}}
resume_args = {{list .ResumeArgs}}   # added when there is a checkpoint
{{- end}}
# save_signal = "SIGUSR1"   # if the program saves when it gets one
# hang_secs = 600   # end and restart it after so long without a step

[supervisor]
{{- if .Pattern}}
max_to_keep = {{.Keep}}   # {{.KeepWhy}}
{{- end}}
stop_grace_secs = 120   # how long it may take to save at a stop
`))

// Text returns a config with comments. name is that of the file that it will be
// in, dir the working directory of the program as the config is to have it.
func (f *Findings) Text(job, name, dir string) (string, error) {
	v := map[string]any{
		"Name": job, "Config": oneLine(shell.Quote(name)), "Took": f.Took.Round(time.Second / 10), "Story": f.Story(),
		"Logdir": f.Logdir, "Command": f.Command, "Dir": dir, "Recipe": "", "Silent": f.Reports == 0, "Pattern": "", "ResumeArgs": []string(nil),
	}
	if f.Recipe != "" && f.Recipe != recipe.Auto {
		v["Recipe"] = f.Recipe
	}
	if s := f.Saved; s != nil {
		v["Logdir"], v["Pattern"] = s.Logdir, s.Pattern
		v["Keep"], v["KeepWhy"] = 5, "only the newest checkpoints stay; 0 keeps all"
		switch {
		case s.Step && keepsBest().MatchString(recipe.Source(f.Dir, f.Command)):
			v["Keep"], v["KeepWhy"] = 0, "the program chooses its best ones, which must stay"
		case s.Step:
		case strings.Contains(path.Base(s.Pattern), "*"):
			v["Keep"], v["KeepWhy"] = 0, "their names have no step, so all stay"
		default:
			v["Keep"], v["KeepWhy"] = 0, "the program replaces it by itself"
		}
		v["ResumeArgs"] = f.Resume.Args
	}
	var b strings.Builder
	err := configTemplate.Execute(&b, v)
	return b.String(), err
}

// keepsBest matches what scripts have the best checkpoints kept with: a checkpoint that is
// not among the newest may be loaded at the end.
var keepsBest = lazyregexp.New(`\b(?:save_top_k|load_best_model_at_end|metric_for_best_model|best_fn|BestN)\b|\bbest_model_path\b`)

// Story says in sentences what was found.
func (f *Findings) Story() (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	switch {
	case f.Failure != nil:
		say("it failed: %v", f.Failure)
	case f.Left > 0:
		say("it came to its end, and left %d of its processes running, which trainerd cannot look after: have it stay in the foreground", f.Left)
	case f.Ended:
		say("it came to its end")
	case f.Reports == 0 && f.Took >= f.Limit:
		say("the time was over before a line was understood: --limit %v gives it more", 5*f.Limit.Seconds())
	}
	whose := "reports of its own"
	switch f.Recipe {
	case "":
	case recipe.Auto:
		whose = "lines of several kinds"
	default:
		whose = "lines of " + f.Recipe
	}
	switch {
	case f.Reports == 0 && len(f.Lines) == 0:
		say("it printed nothing with a number, so there are no curves")
	case f.Reports == 0:
		say("none of its lines was understood, so there are no curves; the first with numbers:")
		for _, line := range f.Lines {
			say("  %s", line[:min(len(line), 100)])
		}
	default:
		const few = 8
		more := ""
		if len(f.Tags) > few {
			more = fmt.Sprintf(" and %d more", len(f.Tags)-few)
		}
		say("%d %s, up to step %d: %s%s", f.Reports, whose, f.Last, strings.Join(f.Tags[:min(few, len(f.Tags))], ", "), more)
	}
	if f.Counted {
		say("its lines have no step, so they are counted")
	}
	say("%s", f.savedStory())
	return append(lines, f.resumeStory()...)
}

// savedStory says in a sentence what the program has saved.
func (f *Findings) savedStory() string {
	const few = 3
	if s := f.Saved; s != nil {
		return fmt.Sprintf("checkpoints in %s: %s", filepath.ToSlash(s.Logdir), strings.Join(s.Names[:min(few, len(s.Names))], ", "))
	}
	const none = "no checkpoint came"
	const elsewhere = "if it saves elsewhere than below its folder and those that its command or script names, set logdir and child.checkpoints"
	switch {
	case f.Failure != nil:
		return none
	case f.Ended:
		return none + ": " + elsewhere
	}
	return fmt.Sprintf("%s: --limit %v gives it more time; %s", none, 5*f.Limit.Seconds(), elsewhere)
}

// resumeStory says how the program resumes, and what shows it.
func (f *Findings) resumeStory() (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	again := f.Again.story(f)
	switch {
	case f.Resumes && len(f.Resume.Args) > 0:
		say("it resumes by %s: %s", strings.Join(f.Resume.Args, " "), f.Resume.Note)
	case f.Resumes:
		say("how it resumes: %s", f.Resume.Note)
	case f.Again.resumes(f):
		say("it resumes by itself")
	case again == "":
		say("how it resumes is not known: have it load TRAINERD_CHECKPOINT from its environment, or set resume_args")
	}
	if again != "" {
		say("%s", again)
	}
	return lines
}

// tomlString returns a basic string of TOML. Its escapes are JSON's.
func tomlString(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string can be marshalled
	}
	return strings.ReplaceAll(string(b), "\x7f", `\u007f`)
}

func tomlList(words []string) string {
	var quoted []string
	for _, w := range words {
		quoted = append(quoted, tomlString(w))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// oneLine keeps a text within a comment.
func oneLine(s string) string {
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
