package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/rewrite"
	tfpb "github.com/trainerd/trainerd/proto"
)

// changeSource applies the flags about what is taken, and how. It returns the
// tensors that --salvage left out.
func changeSource(c *cli.Context, s *rewrite.Source) (lost []ckptfmt.DamagedTensor, err error) {
	rename, err := renames(c.StringSlice("rename"))
	if err != nil {
		return nil, err
	}
	if err := choose(c, s); err != nil {
		return nil, err
	}
	if c.Bool("salvage") {
		if lost, err = s.Salvage(c.Context); err != nil {
			return nil, err
		}
	}
	if err := dropOptimizer(c, s); err != nil {
		return nil, err
	}
	if err := applyMap(c, s); err != nil {
		return nil, err
	}
	if err := useNames(c, s); err != nil {
		return nil, err
	}
	if c.IsSet("rename") {
		if err := s.Rename(rename.apply); err != nil {
			return nil, err
		}
		rename.sayUnused(c.App.ErrWriter)
	}
	if c.IsSet("dtype") {
		return lost, cast(c, s)
	}
	return lost, nil
}

// useNames applies --names, which copies do not do by themselves: what
// TensorFlow restores, it finds by keys.
func useNames(c *cli.Context, s *rewrite.Source) error {
	if !c.IsSet("names") {
		return nil
	}
	kind, err := namesKind(c)
	if err != nil {
		return err
	}
	return s.UseNames(kind)
}

// choose applies --only and --exclude. They come before all else, so that what
// is damaged can be left out before anything looks at it.
func choose(c *cli.Context, s *rewrite.Source) error {
	take, err := chosen(c, s.Names())
	if err != nil {
		return err
	}
	exclude, err := patterns(c.StringSlice("exclude"))
	if err != nil {
		return err
	}
	if matchAny(exclude, rewrite.ObjectGraph) {
		s.DropGraph()
	}
	if !c.IsSet("only") && !c.IsSet("exclude") {
		return nil
	}
	return s.Keep(take)
}

// dropOptimizer applies --drop-slots and --drop-optimizer.
func dropOptimizer(c *cli.Context, s *rewrite.Source) error {
	if c.Bool("drop-optimizer") {
		return s.DropOptimizer()
	}
	if !c.Bool("drop-slots") {
		return nil
	}
	if err := s.DropSlots(); err != nil {
		return err
	}
	stays, err := s.OptimizerNames()
	if err != nil || len(stays) == 0 {
		return err
	}
	for i, name := range stays {
		stays[i] = printable(name)
	}
	fmt.Fprintf(c.App.ErrWriter, "--drop-slots keeps of the optimizers: %s; --drop-optimizer leaves them out too\n", strings.Join(stays, ", "))
	return nil
}

// cast converts numbers to the type of --dtype.
func cast(c *cli.Context, s *rewrite.Source) error {
	to, ok := map[string]tfpb.DataType{
		"bf16": tfpb.DataType_DT_BFLOAT16, "bfloat16": tfpb.DataType_DT_BFLOAT16,
		"f16": tfpb.DataType_DT_HALF, "float16": tfpb.DataType_DT_HALF,
		"f32": tfpb.DataType_DT_FLOAT, "float32": tfpb.DataType_DT_FLOAT,
	}[c.String("dtype")]
	if !ok {
		return usagef("--dtype takes bf16, f16 or f32, not %q", c.String("dtype"))
	}
	return s.Cast(to)
}
