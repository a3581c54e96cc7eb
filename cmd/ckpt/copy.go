package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/formats"
	"github.com/trainerd/trainerd/ckptfmt/keras"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/rewrite"
	"github.com/trainerd/trainerd/cmd/internal/cliargs"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

// rewriteFlags are those of the commands that rewrite a checkpoint.
func rewriteFlags(more ...cli.Flag) []cli.Flag {
	return append(append(more, mapFlags()...),
		&cli.StringSliceFlag{Name: "only", Usage: "take only tensors that match a `PATTERN`"},
		&cli.StringSliceFlag{Name: "exclude", Usage: "leave out tensors that match a `PATTERN`"},
		&cli.StringFlag{Name: "names", DefaultText: "object", Usage: "write tensors under the names of `KIND`: object (their keys), variable or keras"},
		&cli.StringSliceFlag{Name: "rename", Usage: "rename by `s/PATTERN/TEXT/`; \\1 is a group, a trailing g replaces every match"},
		&cli.BoolFlag{Name: "drop-slots", Usage: "leave out what optimizers keep for each variable, such as momentums, and say what of them stays"},
		&cli.BoolFlag{Name: "drop-optimizer", Usage: "leave out all that belongs to optimizers: slots, steps, learning rates, powers of beta"},
		&cli.StringFlag{Name: "dtype", Usage: "convert floating-point numbers to `TYPE`: bf16, f16 or f32"},
		&cli.IntFlag{Name: "shards", Usage: "spread the tensors over `N` data files", Value: 1, DefaultText: "1; a whole copy by cp keeps them"},
		&cli.BoolFlag{Name: "v1", Usage: "write the older format, in one file"},
		&cli.BoolFlag{Name: "force", Usage: "replace what is there"},
	)
}

const rewriteHelp = `

Takes little memory, however large the tensors are, except with --v1. The
patterns of --only, --exclude and --rename are regular expressions that may
match any part of a name. In s/PATTERN/TEXT/ any character may stand for the
slash, and after a backslash the slash is one of the pattern or the text. Optimizers
are known by the names that TensorFlow gives to what they keep, and where a program
chose others by the .meta file next to the checkpoint. In a
checkpoint of tf.train.Checkpoint the graph of objects follows the names; an
--exclude that matches its name leaves it out. The patterns of --only and
--exclude match the keys there, and the names that --names variable and keras
give; with these the copy has no graph of objects, and other names to --rename.` + nameHelp + `
As a pattern it means exactly that name.`

// salvageFlag is that of the commands that copy one checkpoint.
func salvageFlag() cli.Flag {
	return &cli.BoolFlag{Name: "salvage", Usage: "leave out tensors that cannot be read, name them, and exit with 3"}
}

const salvageHelp = `

A damaged tensor is an error, exit code 3, and no copy is made. --exclude leaves
it out if it is named, --salvage leaves out every one, after reading all.`

func cpCommand() *cli.Command {
	return &cli.Command{
		Name:      "cp",
		Usage:     "copy a checkpoint, whole or in part, checking every checksum",
		ArgsUsage: "PREFIX NEWPREFIX",
		Description: `With no option, or --force alone, the copy of a V2 checkpoint has the same
bytes in every file, and takes the MetaGraph and the manifest with it. With any
other option, and of a V1 checkpoint, the tensors are written again: as a V2
checkpoint with an index that is not compressed and with --shards data files,
however many there were, or with --v1 as a V1 checkpoint in one file. So are
those of another format, such as safetensors.` + salvageHelp + mapHelp + rewriteHelp,
		Flags: rewriteFlags(salvageFlag()),
		Action: func(c *cli.Context) error {
			a, err := args(c, "PREFIX", "NEWPREFIX")
			if err != nil {
				return err
			}
			if rewrite.FormatOf(a[1]) != rewrite.Checkpoint {
				return usagef("cp writes checkpoints; `ckpt convert %s %s` writes other formats", a[0], a[1])
			}
			return rewriteOne(c, a[0], a[1], nil)
		},
	}
}

func convertCommand() *cli.Command {
	return &cli.Command{
		Name:      "convert",
		Usage:     "convert between checkpoints and the files of Keras, torch, safetensors, NumPy",
		ArgsUsage: "PREFIX|FILE NEWPREFIX|NEWFILE",
		Description: `The input format is detected from the bytes; see ` + "`ckpt help`" + `. The output
format follows from the extension:

   .npz           arrays of NumPy
   .safetensors   one file, or with --max-shard-size several and an index
   .pt, .pth, .bin  a state dict of torch
   .weights.h5    weights of Keras 3, for load_weights
   .weights.json  the same in several files, of --max-shard-size each, and an index
   .keras         a model of Keras 3
   .h5, .hdf5     HDF5, a dataset for each tensor
   any other      a checkpoint

Keras needs each variable at its place, which a file of the same model has that
Keras saved: the input itself, or that of --like. A .keras file also has the
layers' configuration, and is written from a .keras file only. All variables of
the model must be there, and no others, unless --missing and --rest allow it;
those of the optimizer may be missing.

In .npz, bfloat16 is what NumPy writes for ml_dtypes.bfloat16;
a comment on each array keeps the types that NumPy does not know, for the
way back. Strings, if one of them ends in a zero byte, as graphs of objects may, are
raw bytes there (V), and where their lengths differ each has its own in its last
8 bytes, little-endian. What a format cannot hold (strings, complex128, 4-bit integers in
.safetensors) is an error; leave it out with --exclude, or convert it with
--dtype. The graph of objects of tf.train.Checkpoint goes along.` + salvageHelp + mapHelp + rewriteHelp,
		Flags: rewriteFlags(salvageFlag(),
			&cli.StringFlag{Name: "max-shard-size", Usage: "write several .safetensors or .weights.h5 files of at most `SIZE`, such as 5GB, and an index"},
		),
		Action: func(c *cli.Context) error {
			a, err := args(c, "PREFIX|FILE", "NEWPREFIX|NEWFILE")
			if err != nil {
				return err
			}
			return rewriteOne(c, a[0], a[1], nil)
		},
	}
}

// openSource opens what an argument means, and returns what it is.
func openSource(arg string) (*rewrite.Source, formats.File, error) {
	f, err := find(arg)
	if err != nil {
		return nil, f, err
	}
	s, err := rewrite.OpenFile(f)
	if errors.Is(err, fs.ErrNotExist) && f.Kind.IsCheckpoint() {
		return nil, f, fmt.Errorf("there is no %s: %w; `ckpt ls %s` lists the existing checkpoints", f.Path, fs.ErrNotExist, filepath.Dir(f.Path))
	}
	return s, f, err
}

// rewriteOne writes one source again after change, which may be nil.
func rewriteOne(c *cli.Context, from, to string, change func(*rewrite.Source) error) (err error) {
	s, found, err := openSource(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if change != nil {
		if err := change(s); err != nil {
			return err
		}
	}
	whole := change == nil && isWhole(c) && found.Kind.IsCheckpoint() && rewrite.FormatOf(to) == rewrite.Checkpoint
	copied := false
	if whole && !c.IsSet("shards") {
		if copied, err = copyWhole(c, found.Path, to); err != nil {
			return err
		}
	}
	var lost []ckptfmt.DamagedTensor
	if !copied {
		if lost, err = rewriteTo(c, s, to); err != nil {
			return err
		}
	}
	if whole && len(lost) == 0 {
		return copyBeside(c.Context, found.Path, to)
	}
	if len(lost) > 0 {
		return sayLost(c, to, lost)
	}
	return nil
}

// isWhole reports whether all tensors stay as they are.
func isWhole(c *cli.Context) bool {
	return !slices.ContainsFunc([]string{"only", "exclude", "names", "map", "rest", "like", "missing", "objects", "rename", "drop-slots", "drop-optimizer", "dtype", "v1"}, c.IsSet)
}

// copyWhole copies a V2 checkpoint file by file, and returns false for one that
// has to be written tensor by tensor: it is of V1, or something in it is
// damaged, perhaps only tensors that are not wanted.
func copyWhole(c *cli.Context, from, to string) (bool, error) {
	if _, err := os.Stat(layout.IndexName(from)); err != nil {
		return false, nil
	}
	if err := checkTarget(c, to); err != nil {
		return false, err
	}
	if same, err := samePrefix(from, to); same || err != nil {
		return false, err
	}
	old, err := oldFiles(to)
	if err != nil {
		return false, err
	}
	progress := progressOf(c)
	err = rewrite.CopyFiles(c.Context, from, to, &rewrite.CopyFilesOptions{Progress: func(n int) { progress.Add(n) }})
	if err != nil {
		if isDamage(err) {
			return false, nil
		}
		return false, err
	}
	return true, removeOld(old, to, false)
}

// copyBeside copies the MetaGraph, and makes a manifest like the old one.
func copyBeside(ctx context.Context, from, to string) error {
	if same, err := samePrefix(from, to); same || err != nil {
		return err
	}
	if err := copyFile(layout.MetaName(from), layout.MetaName(to)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	m, err := manifest.Read(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return manifest.Write(ctx, to, m, nil)
}

// copyFile publishes a copy of a file, the same in every byte.
func copyFile(from, to string) (err error) {
	in, err := atomicfile.Open(nil, from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := atomicfile.Create(nil, to, atomicfile.TempName(to))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Commit()
}

func samePrefix(a, b string) (bool, error) {
	x, err := filepath.Abs(a)
	if err != nil {
		return false, err
	}
	y, err := filepath.Abs(b)
	return x == y, err
}

// rewriteTo writes a source as the flags say, and returns the tensors that
// --salvage left out.
func rewriteTo(c *cli.Context, s *rewrite.Source, to string) (lost []ckptfmt.DamagedTensor, err error) {
	if err := checkTarget(c, to); err != nil {
		return nil, err
	}
	if lost, err = changeSource(c, s); err != nil {
		return nil, err
	}
	closeTemplate, err := giveForm(c, s, to)
	defer func() { err = errors.Join(err, closeTemplate()) }()
	if err != nil {
		return nil, err
	}
	old, err := oldFiles(to)
	if err != nil {
		return nil, err
	}
	progress := progressOf(c)
	for _, p := range s.Parts() {
		if size, err := p.Size(); err == nil {
			progress.Expect(size)
		}
	}
	shardSize, err := shardSizeOf(c)
	if err != nil {
		return nil, err
	}
	err = rewrite.Write(c.Context, s, to, &rewrite.Options{
		Shards: c.Int("shards"), V1: c.Bool("v1"), MaxShardSize: shardSize, Like: kerasTemplate(c, to), Progress: func(n int) { progress.Add(n) },
	})
	if err != nil {
		return nil, withNext(c, err)
	}
	return lost, removeOld(old, to, c.Bool("v1"))
}

// withNext adds to an error what can be done about it.
func withNext(c *cli.Context, err error) error {
	switch {
	case errors.Is(err, keras.ErrModel):
		return fmt.Errorf("%w; --like takes a file of the same model, and with --missing template its values; --rest drop or --exclude leaves tensors out, --drop-optimizer those of optimizers, --map renames", err)
	case errors.Is(err, ckptfmt.ErrType):
		return fmt.Errorf("%w; --exclude leaves tensors out", err)
	case isDamage(err):
		return fmt.Errorf("%w; --exclude leaves a tensor out%s", err, salvageHint(c))
	}
	return err
}

// salvageHint is what else can be done about damage.
func salvageHint(c *cli.Context) string {
	if slices.ContainsFunc(c.Command.Flags, func(f cli.Flag) bool { return f.Names()[0] == "salvage" }) {
		return ", --salvage all that cannot be read"
	}
	return ""
}

// otherExtensions are those of formats that are not written: a checkpoint of such a name is
// not what was meant.
var otherExtensions = []string{
	".onnx", ".gguf", ".npy", ".pb", ".pbtxt", ".tflite", ".pkl", ".pickle", ".msgpack", ".json", ".csv", ".txt", ".zip", ".gz", ".safetensor", ".hdf",
}

func checkTarget(c *cli.Context, to string) error {
	format := rewrite.FormatOf(to)
	shards := c.Int("shards")
	switch {
	case shards < 1 || shards > 99999 || c.Bool("v1") && shards > 1:
		return usagef("--shards takes a number from 1 to 99999, and none with --v1")
	case format != rewrite.Checkpoint && (c.IsSet("shards") || c.Bool("v1")):
		return usagef("--shards and --v1 are about checkpoints, %s is a file", to)
	case isDir(to):
		return usagef("%s is a directory; name the new checkpoint in it", to)
	case format == rewrite.Checkpoint && slices.Contains(otherExtensions, strings.ToLower(filepath.Ext(to))):
		return usagef("%s files are not written; `ckpt help convert` lists the formats, and a new checkpoint has another name", filepath.Ext(to))
	case c.IsSet("max-shard-size") && format != rewrite.Safetensors && format != rewrite.KerasSharded:
		return usagef("--max-shard-size is about .safetensors and .weights.json files, not %s", to)
	case !isDir(filepath.Dir(to)) && !isDir(filepath.Dir(filepath.Dir(to))):
		return fmt.Errorf("there is no folder for %s; `mkdir -p %s` makes it", to, filepath.Dir(to))
	case c.Bool("force"):
		return nil
	}
	if format == rewrite.Safetensors { // which a model in one file and one in several share
		if index := rewrite.IndexName(to); exists(index) {
			return fmt.Errorf("%s already exists; --force replaces it and the files that it names", index)
		}
	}
	if exists(to) || format == rewrite.Checkpoint && layout.Exists(to) {
		return fmt.Errorf("%s already exists; --force replaces it", to)
	}
	return nil
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// oldFiles returns the files of the checkpoint that is to be replaced.
func oldFiles(to string) ([]string, error) {
	if rewrite.FormatOf(to) != rewrite.Checkpoint {
		return nil, nil
	}
	ck, err := ckptdir.Find(to)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return ck.Files, err
}

// removeOld removes those of the old files that are not among the new
// checkpoint: data files of another number of shards, the index of another
// format, and the manifest, which is true no longer.
func removeOld(old []string, to string, v1 bool) error {
	fresh := []string{to}
	if !v1 {
		r, err := ckptfmt.OpenBundle(to, nil)
		if err != nil {
			if rewrite.FormatOf(to) != rewrite.Checkpoint {
				return nil
			}
			return err
		}
		fresh = []string{layout.IndexName(to), layout.MetaName(to)}
		for i := range r.NumShards() {
			fresh = append(fresh, layout.DataName(to, i, r.NumShards()))
		}
		if err := r.Close(); err != nil {
			return err
		}
	}
	var failed error
	for _, name := range old {
		if !slices.ContainsFunc(fresh, func(f string) bool { return filepath.Base(f) == filepath.Base(name) }) && !strings.HasSuffix(name, ".meta") {
			failed = errors.Join(failed, os.Remove(name))
		}
	}
	return failed
}

// shardSizeOf returns the bytes of --max-shard-size, or 0 where it is not given.
func shardSizeOf(c *cli.Context) (int64, error) {
	text := c.String("max-shard-size")
	if text == "" {
		return 0, nil
	}
	n, err := cliargs.Size(text)
	if err != nil {
		return 0, usagef("--max-shard-size: %w", err)
	}
	return n, nil
}
