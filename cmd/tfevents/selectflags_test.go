package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// TestFlagsSayTheSame: a flag of several commands means the same in all, and says so in
// the same words. What a command writes, and how often it looks, is its own.
func TestFlagsSayTheSame(t *testing.T) {
	own := []string{"format", "json", "poll"}
	usages := make(map[string]string)
	for _, command := range newApp(strings.NewReader(""), io.Discard, io.Discard).Commands {
		for _, flag := range command.Flags {
			doc, ok := flag.(cli.DocGenerationFlag)
			name := flag.Names()[0]
			if !ok || slices.Contains(own, name) || name == "for-tensorboard" && command.Name == "check" {
				continue
			}
			if was, ok := usages[name]; ok && was != doc.GetUsage() {
				t.Errorf("%s --%s: %q; another command says %q", command.Name, name, doc.GetUsage(), was)
			}
			usages[name] = doc.GetUsage()
		}
	}
	if usages["run"] == "" || usages["tag"] == "" {
		t.Error("no command has --run and --tag")
	}
}
