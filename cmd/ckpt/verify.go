package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/formats"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/names"
	"github.com/trainerd/trainerd/cmd/internal/terminal"
)

func verifyCommand() *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "read checkpoints and check every checksum; of a directory also its leftover files",
		ArgsUsage: "PREFIX|DIR|FILE",
		Description: `Other tensor files are read completely, and their checks named: an .npz file has
a CRC-32 of each array, one of torch of each storage, .keras of each member,
safetensors and most HDF5 have sizes and no checksums. A tensor of a kind that
ckpt cannot read is named, and is no damage: the exit code is 1.

Where something says what SHA-256 a file should have, that is checked too, and
named: the records that trainerd keeps of a program's checkpoints
(trainerd.manifests in a folder above), a SHA256SUMS or FILE.sha256 next to it,
the notes of the Hugging Face hub.

Of a checkpoint: every tensor in every shard, and the SHA-256 of each file in
its manifest if it has one. Of a directory: all that ` + "`ckpt ls`" + ` lists of it and of
the folders below, but for what a run has moved aside as damaged; files that
belong to no checkpoint (orphans), files of unfinished saves (temporary),
missing shards, and entries of the checkpoint file whose checkpoint is missing
(stale). A checkpoint that a run removes meanwhile is not missed.

Prints a line for each finding - what it is about, a tab, what is wrong - and
exits with 3 if there is any, but with 1 if a file could not be read: it may be
intact.

An unsupported version is not damage: a checkpoint whose header asks for a newer
reader (min_consumer), or excludes this one (bad_consumers), is not checked. It
is named as such, and if nothing else is wrong the exit code is 1.` + namesHelp + nameHelp,
		Flags: []cli.Flag{jsonFlag(), namesFlag()},
		Action: func(c *cli.Context) error {
			if _, err := namesKind(c); err != nil {
				return err
			}
			a, err := args(c, "PREFIX or DIR")
			if err != nil {
				return err
			}
			v := &verification{c: c, list: []findingJSON{}, summed: make(map[string]bool), checks: make(map[string]bool)}
			if isLogdir(a[0]) {
				err = v.directory(a[0])
			} else {
				err = v.argument(a[0])
			}
			if err != nil {
				return err
			}
			return v.report(a[0])
		},
	}
}

// findingJSON is an element of `ckpt verify --json`.
type findingJSON struct {
	// Kind is "tensor", "file", "checkpoint", "version", "unreadable", "unsupported", "orphan",
	// "temporary", "missing", "stale" or "state".
	Kind   string   `json:"kind"`
	Prefix string   `json:"prefix,omitempty"`
	Name   jsonName `json:"name"` // of the tensor or file
	Error  string   `json:"error"`
}

// kindUnreadable is the kind of what the system did not let be read. It may be
// whole.
const kindUnreadable = "unreadable"

// kindVersion is the kind of what only a newer release can read, which is not damage.
const kindVersion = "version"

// kindUnsupported is the kind of tensors that only Python can read, such as
// those with a filter that ckpt does not have.
const kindUnsupported = "unsupported"

// verification is the state of one call.
type verification struct {
	c           *cli.Context
	list        []findingJSON
	finder      manifest.SumFinder
	checkpoints int
	tensors     int
	damaged     int             // tensors
	summed      map[string]bool // checkpoints whose files all have the sums that something says they have
	checks      map[string]bool // what was checked
	single      string          // what was checked, where it was not a directory of checkpoints

	// Of a directory:
	dir        string // "" for one checkpoint
	aside      int    // checkpoints that a run has moved aside as damaged
	repairable string // the first folder with a damaged checkpoint of TensorFlow
}

func (v *verification) argument(arg string) error {
	f, err := find(arg)
	if err != nil {
		return err
	}
	r, err := openFile(f)
	if err != nil {
		return err
	}
	if err := r.Close(); err != nil {
		return err
	}
	if !f.Kind.IsCheckpoint() {
		return v.checkpoint(f, nil)
	}
	ck, _ := ckptdir.Find(f.Path) // one that has been opened needs not have the name of one
	return v.checkpoint(f, ck.Files)
}

// checkpoint checks all tensors, and the files by what has their sums; of is the files
// of a checkpoint of TensorFlow.
func (v *verification) checkpoint(f formats.File, of []string) error {
	v.checkpoints++
	ctx, prefix := v.c.Context, f.Path
	r, err := f.Open()
	if errors.Is(err, ckptfmt.ErrVersion) {
		v.add(findingJSON{Kind: kindVersion, Prefix: prefix, Name: jsonName(prefix), Error: err.Error()})
		return nil
	}
	if err != nil {
		v.add(findingJSON{Kind: kindOf("checkpoint", err), Prefix: prefix, Name: jsonName(prefix), Error: err.Error()})
		return nil
	}
	defer r.Close()
	v.begin(r)
	summed, err := v.sums(ctx, prefix, slices.Concat(of, r.Files()))
	if err != nil {
		return err
	}
	if summed && isUnsummed(f.Kind) { // the sums have shown more than reading could
		v.tensors += countOf(r)
		return nil
	}
	if err := v.content(ctx, r, prefix); err != nil {
		return err
	}
	if !f.Kind.IsCheckpoint() {
		return nil
	}
	return v.manifest(ctx, prefix)
}

// begin notes what is checked of a checkpoint, and what its reader has to say.
func (v *verification) begin(r *formats.Reader) {
	v.single = r.Checks()
	v.checks[v.single] = true
	for _, note := range r.Notes() {
		fmt.Fprintf(v.c.App.ErrWriter, "ckpt: %s\n", note)
	}
	progressOf(v.c).Expect(sizeOf(r))
}

// content reads the tensors.
func (v *verification) content(ctx context.Context, r *formats.Reader, prefix string) error {
	progress := progressOf(v.c)
	shown := v.named(r.Reader)
	v.tensors += countOf(r) // of slices, each has a verdict
	for name, err := range shown.Verify(ctx) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if name == "" && err != nil {
			v.add(findingJSON{Kind: "file", Prefix: prefix, Name: jsonName(tableOf(err, prefix)), Error: err.Error()})
			continue
		}
		info, unknown := shown.Info(name)
		if unknown == nil {
			progress.Add(int(info.Bytes))
		}
		if err == nil {
			continue
		}
		f := findingJSON{Kind: kindOf("tensor", err), Prefix: prefix, Name: jsonName(name), Error: err.Error()}
		if v.add(f); f.Kind == "tensor" && !errors.Is(unknown, ckptfmt.ErrNotFound) { // else a slice, whose tensor is named too
			v.damaged++
		}
	}
	return nil
}

// named shows the tensors of what is checked under the names that --names asks
// for. That the graph of objects is damaged will be found.
func (v *verification) named(r ckptfmt.Reader) ckptfmt.Reader {
	kind, err := namesKind(v.c)
	if err != nil {
		return r // the command has ended with it
	}
	return names.NewReader(r, tableOfNames(r), kind)
}

// tableOf returns the file whose table is damaged.
func tableOf(err error, prefix string) string {
	var corrupt *ckptfmt.CorruptError
	if errors.As(err, &corrupt) {
		return corrupt.Name
	}
	return prefix
}

func (v *verification) manifest(ctx context.Context, prefix string) error {
	if _, err := manifest.Read(prefix); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	intact, bad := 0, 0
	for name, err := range manifest.Verify(ctx, prefix) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			intact++
			continue
		}
		bad++
		v.add(findingJSON{Kind: kindOf("file", err), Prefix: prefix, Name: jsonName(name), Error: err.Error()})
	}
	switch {
	case intact > 0:
		v.summed[prefix] = true
		v.single += fmt.Sprintf("; SHA-256 of %d files by the manifest", intact)
	case bad == 0: // such as of a checkpoint that was soon replaced
		v.single += "; the manifest has no SHA-256"
	}
	return nil
}

// kindOf returns the kind of a finding, unless it is that something could not be
// read, or is not supported.
func kindOf(kind string, err error) string {
	switch {
	case ckptdir.IsUnreadable(err):
		return kindUnreadable
	case isUnsupported(err):
		return kindUnsupported
	case errors.Is(err, ckptfmt.ErrVersion): // such as a manifest of a newer trainerd
		return kindVersion
	}
	return kind
}

func (v *verification) add(f findingJSON) { v.list = append(v.list, f) }

func (v *verification) report(arg string) error {
	progressOf(v.c).Clear()
	if v.c.Bool("json") {
		if err := printList(v.c.App.Writer, v.list); err != nil {
			return err
		}
	} else if err := v.printFindings(); err != nil {
		return err
	}
	return v.summarise(arg)
}

// printFindings prints a line for each cause.
func (v *verification) printFindings() error {
	for _, of := range byCause(v.list, findingJSON.cause) {
		f := of[0]
		what := andOthers(string(f.Name), len(of))
		switch {
		case f.Kind == "tensor" && v.checkpoints > 1:
			what = v.below(f.Prefix) + ": " + what
		case f.Kind != "tensor":
			what = f.Kind + " " + what
		}
		if _, err := fmt.Fprintf(v.c.App.Writer, "%s\t%s\n", what, terminal.Plain(f.Error)); err != nil {
			return err
		}
	}
	return nil
}

// cause returns what findings have in common that are told in one line.
func (f findingJSON) cause() findingJSON {
	if f.Kind == "tensor" || f.Kind == kindUnsupported {
		f.Name = ""
	}
	return f
}

// summarise says in words what was found, and what to do next.
func (v *verification) summarise(arg string) error {
	words := v.c.App.ErrWriter
	damaged := map[string]int{}
	for _, f := range v.list {
		damaged[f.Kind]++
	}
	damage := damaged["tensor"] + damaged["file"] + damaged["checkpoint"]
	switch {
	case len(v.list) == 0 && v.dir != "":
		v.summariseIntact()
		return nil
	case len(v.list) == 0:
		fmt.Fprintf(words, "%s: %d tensors, all intact (%s)\n", arg, v.tensors, v.single)
		return nil
	case damaged[kindUnreadable] > 0:
		fmt.Fprintf(words, "ckpt: %s: %d files or checkpoints cannot be read, and may be intact, %d other findings; make them readable and verify again\n",
			arg, damaged[kindUnreadable], len(v.list)-damaged[kindUnreadable])
		return exitError(exitFailed)
	case len(v.list) == damaged[kindVersion]:
		fmt.Fprintf(words, "ckpt: %s: %d checkpoints or manifests ask for a newer reader and were not checked; nothing else is wrong\n", arg, len(v.list))
		return exitError(exitFailed)
	case len(v.list) == damaged[kindUnsupported]:
		fmt.Fprintf(words, "ckpt: %s: %d of %d tensors are not supported and were not checked; nothing else is wrong (%s)\n",
			arg, len(v.list), v.tensors, v.single)
		return exitError(exitFailed)
	case damage == 0:
		fmt.Fprintf(words, "ckpt: %s: no checkpoint is damaged; %d other findings\n", arg, len(v.list))
	case v.dir != "":
		fmt.Fprintf(words, "ckpt: %s: %d of %d tensors are damaged, %d other findings; %s\n",
			arg, v.damaged, v.tensors, len(v.list)-damaged["tensor"], v.repairHint())
	default:
		fmt.Fprintf(words, "ckpt: %s: %d of %d tensors are damaged, %d other findings; restore an older checkpoint\n",
			arg, v.damaged, v.tensors, len(v.list)-damaged["tensor"])
	}
	return exitError(exitDamaged)
}
