package ckptdir_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
)

// A crash has cut the newest checkpoint short: the one before is used.
func ExampleNewestIntact() {
	logdir, err := os.MkdirTemp("", "logdir")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(logdir)
	for step := int64(1); step <= 2; step++ {
		if err := saveStep(logdir, step); err != nil {
			log.Fatal(err)
		}
	}
	if err := os.Truncate(filepath.Join(logdir, "model.ckpt-2.data-00000-of-00001"), 3); err != nil {
		log.Fatal(err)
	}

	c, damaged, err := ckptdir.NewestIntact(context.Background(), logdir)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("restoring", filepath.Base(c.Prefix))
	for _, d := range damaged {
		fmt.Println("skipped", filepath.Base(d.Prefix))
	}
	// Output:
	// restoring model.ckpt-1
	// skipped model.ckpt-2
}

// saveStep writes a checkpoint that has nothing but its step.
func saveStep(logdir string, step int64) error {
	w, err := ckptfmt.CreateBundle(filepath.Join(logdir, fmt.Sprint("model.ckpt-", step)), nil)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := w.Add("global_step", ckptfmt.Scalar(step)); err != nil {
		return err
	}
	return w.Finish()
}
