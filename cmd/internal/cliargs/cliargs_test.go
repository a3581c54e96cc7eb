package cliargs

import (
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func testApp() *cli.App {
	list := &cli.Command{Name: "ls", Aliases: []string{"list"}, Flags: []cli.Flag{
		&cli.BoolFlag{Name: "json"},
		&cli.StringFlag{Name: "tag", Aliases: []string{"t"}},
	}}
	run := &cli.Command{Name: "run", Flags: []cli.Flag{&cli.StringSliceFlag{Name: "fetch"}}}
	app := &cli.App{Name: "prog", Commands: []*cli.Command{list, {Name: "graph", Subcommands: []*cli.Command{run}}}}
	app.Setup()
	return app
}

func TestFlagsFirst(t *testing.T) {
	for _, tc := range []struct{ name, args, want string }{
		{"no command", "prog", "prog"},
		{"unknown command", "prog what dir --json", "prog what dir --json"},
		{"flag behind", "prog ls dir --json", "prog ls --json -- dir"},
		{"flag before", "prog ls --json dir", "prog ls --json -- dir"},
		{"value", "prog ls dir --tag loss other", "prog ls --tag loss -- dir other"},
		{"short value", "prog ls dir -t loss", "prog ls -t loss -- dir"},
		{"value after equals sign", "prog ls dir --tag=loss x", "prog ls --tag=loss -- dir x"},
		{"alias of a command", "prog list dir --tag loss", "prog list --tag loss -- dir"},
		{"behind --", "prog ls dir -- --json", "prog ls -- dir --json"},
		{"a lone dash is an argument", "prog ls - --json", "prog ls --json -- -"},
		{"unknown flag stays a flag", "prog ls dir --no", "prog ls --no -- dir"},
		{"help behind", "prog ls dir --json --help", "prog ls --help"},
		{"short help before", "prog graph run -h x.meta", "prog graph run -h"},
		{"help behind --", "prog ls -- --help", "prog ls -- --help"},
		{"a value like help", "prog ls --tag --help x", "prog ls --tag --help -- x"},
		{"subcommand", "prog graph run x.meta --fetch a --fetch b", "prog graph run --fetch a --fetch b -- x.meta"},
	} {
		got, err := FlagsFirst(testApp(), strings.Fields(tc.args))
		if err != nil || strings.Join(got, " ") != tc.want {
			t.Errorf("%s: FlagsFirst(%s) = %q, %v; want %q", tc.name, tc.args, got, err, tc.want)
		}
	}
}

func TestFlagsFirstMissingValue(t *testing.T) {
	_, err := FlagsFirst(testApp(), []string{"prog", "graph", "run", "x", "--fetch"})
	if err == nil || err.Error() != "graph run: --fetch needs a value" {
		t.Errorf("err = %v", err)
	}
}
