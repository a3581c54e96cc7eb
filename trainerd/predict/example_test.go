package predict_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/trainerd/trainerd/trainerd/daemon"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/predict"
)

// A model is trained from a table, and predicts rows that it has not seen.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	logdir, err := trainExample(ctx, dir)
	if err != nil {
		log.Fatal(err)
	}

	m, err := predict.Open(ctx, logdir, predict.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	p, err := m.Predict(ctx, []float32{1, 2, 7, 8}) // two rows of two numbers
	if err != nil {
		log.Fatal(err)
	}
	for _, class := range p.Classes {
		fmt.Println(m.ClassNames()[class])
	}
	// Output:
	// low
	// high
}

// trainExample trains a classifier in a folder, and returns its logdir.
func trainExample(ctx context.Context, dir string) (logdir string, err error) {
	table, job := filepath.Join(dir, "sizes.csv"), filepath.Join(dir, "job.toml")
	rows := "height,width,size\n1,1,low\n8,8,high\n2,1,low\n9,7,high\n1,2,low\n8,9,high\n2,2,low\n7,7,high\n"
	if err := os.WriteFile(table, []byte(rows), 0o666); err != nil {
		return "", err
	}
	logdir = filepath.Join(dir, "logs")
	text := fmt.Sprintf(`
logdir = %q
[data]
file = "sizes.csv"
header = true
label = "size"
categories = ["size"]
batch_size = 4
[model]
family = "logistic"
[train]
steps = 100
`, logdir)
	if err := os.WriteFile(job, []byte(text), 0o666); err != nil {
		return "", err
	}
	c, err := config.Load(job, nil)
	if err != nil {
		return "", err
	}
	return logdir, daemon.Run(ctx, c, daemon.RunOptions{Stdout: io.Discard, Stderr: io.Discard})
}
