package cliargs

import (
	"errors"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func TestSuggestions(t *testing.T) {
	app := &cli.App{Name: "ckpt", Commands: []*cli.Command{
		{Name: "status"}, {Name: "stop"}, {Name: "verify"}, {Name: "ls"}, {Name: "__complete", Hidden: true},
	}}
	for name, want := range map[string]string{
		"statsu": `there is no command "statsu" (did you mean "status"?); 'ckpt help' lists them`,
		"veryfi": `there is no command "veryfi" (did you mean "verify"?); 'ckpt help' lists them`,
		"lls":    `there is no command "lls" (did you mean "ls"?); 'ckpt help' lists them`,
		"xs":     `there is no command "xs"; 'ckpt help' lists them`,
		"xyz":    `there is no command "xyz"; 'ckpt help' lists them`,
	} {
		want = strings.ReplaceAll(want, "'", "`")
		if got := NoCommand(app, name).Error(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	c := cli.NewContext(nil, nil, nil)
	c.Command = &cli.Command{Flags: []cli.Flag{&cli.BoolFlag{Name: "json"}, &cli.BoolFlag{Name: "follow", Aliases: []string{"f"}}}}
	for text, want := range map[string]string{
		noFlag + "jsno": "there is no flag --jsno (did you mean --json?)",
		noFlag + "zzz":  "there is no flag --zzz; -- comes before an argument that begins with a minus",
		noFlag + "a":    "there is no flag -a; -- comes before an argument that begins with a minus",
		noFlag + "2*a":  "there is no flag -2*a; -- comes before an argument that begins with a minus",
		"another":       "another",
	} {
		if got := NoFlag(c, errors.New(text)).Error(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
