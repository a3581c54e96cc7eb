package recipe

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEmbedded has every embedded recipe load as it is, and as a copy of a user.
func TestEmbedded(t *testing.T) {
	names := Names()
	if len(names) < 9 {
		t.Fatalf("there are only %v", names)
	}
	for _, name := range names {
		r := load1(t, name)
		text, err := Text(name)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "my.toml")
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		c := load1(t, file)
		if r.Description == "" || len(c.Lines) != len(r.Lines) || len(c.Lines) == 0 {
			t.Errorf("%s: description %q, %d lines, its copy has %d", name, r.Description, len(r.Lines), len(c.Lines))
		}
	}
}

func TestLoadErrors(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"lines = 3", "there is no key lines"},
		{"a = ", "line 1"},
		{"[[line]]\nform = '('", "missing closing )"},
		{"[[line]]\nform = 'loss (?P<loss>{number})'", "has no group step or epoch"},
		{"[[line]]\nform = '(?P<step>{int})'\nstep = 'never'", `step: want "next"`},
		{"[[line]]\nform = '(?P<step>{int})'\npairs = ['x']", "want two groups"},
		{"[[line]]\nform = '(?P<step>{int})'\nneeds = '('", "needs"},
		{"[[resume]]\nwhen = '('", "resume"},
		{"include = ['nothing']", "recipe nothing: is not known; want one of auto, "},
	} {
		file := filepath.Join(t.TempDir(), "my.toml")
		if err := os.WriteFile(file, []byte(tc.text), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := Load(file)
		var fault *Error
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %s", tc.text, err, tc.want)
		}
	}
	if _, err := Load("../recipe.go"); err == nil {
		t.Error("a name with a slash gives a recipe")
	}
	if _, err := Load("no/such.toml"); err == nil {
		t.Error("a missing file gives a recipe")
	}
}

func TestResumeOf(t *testing.T) {
	r := load1(t, "transformers")
	for source, want := range map[string]string{
		"parser = HfArgumentParser(TrainingArguments)":        "--resume_from_checkpoint {checkpoint}",
		"trainer.train(resume_from_checkpoint = True)":        "",
		"HfArgumentParser; os.environ['TRAINERD_CHECKPOINT']": "",
	} {
		way, ok := r.ResumeOf(source)
		if !ok || strings.Join(way.Args, " ") != want || way.Note == "" {
			t.Errorf("%s: %v, %+v; want %q", source, ok, way, want)
		}
	}
	for _, name := range []string{"plain", "nanogpt"} {
		way, ok := load1(t, name).ResumeOf(`parser.add_argument("--resume-from-step", type=int, default=-1)`)
		if got := strings.Join(way.Args, " "); !ok || got != "--resume-from-step {step}" {
			t.Errorf("%s: an argument for the step gives %q", name, got)
		}
	}
	if _, ok := r.ResumeOf("print(1)"); ok {
		t.Error("a source without any words resumes")
	}
}

// FuzzRead has lines of all kinds pass through one reader.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{"iter 100: loss 2.5\nEpoch 1/2\n8/8 - 0s - 1ms/step - loss: 0.25", "  5%|▌  | 50/1000 [00:10<03:10,  5.00it/s]\n{'loss': 0.5, 'epoch': 0.1}", "epoch 9223372036854775807 step 9223372036854775807/9223372036854775807 loss 1e999"} {
		f.Add(seed, int64(0))
	}
	auto, err := Load(Auto)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, base int64) {
		r := auto.NewReader(base)
		check := func(p *Point) {
			if p != nil && (p.Step < 0 || len(p.Values) == 0) {
				t.Errorf("%q gives %+v", text, p)
			}
		}
		for line := range strings.SplitSeq(text, "\n") {
			check(r.Read(line))
		}
		check(r.Flush())
	})
}

// TestEnvOf has scripts with a bar that prints into a pipe only if it is told to.
func TestEnvOf(t *testing.T) {
	auto, err := Load(Auto)
	if err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]bool{
		"from rich.progress import Progress": true, "import rich.progress": true, "import lightning": true, "from tqdm import tqdm": false,
	} {
		set := auto.EnvOf(source, func(string) bool { return false })
		if got := slices.Contains(set, "TTY_COMPATIBLE=1"); got != want {
			t.Errorf("%s: the bar is told that somebody looks at it: %v, want %v", source, got, want)
		}
		if set := auto.EnvOf(source, func(string) bool { return true }); len(set) > 0 {
			t.Errorf("%s: %v is set over what the user has set", source, set)
		}
	}
}
