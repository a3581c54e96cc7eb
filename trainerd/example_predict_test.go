package trainerd_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/metagraph"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/target"
)

func openModel(ctx context.Context, prefix string) (trainerd.Session, error) {
	meta, err := metagraph.Read(prefix + ".meta")
	if err != nil {
		return nil, err
	}
	sess, err := target.Open(ctx, "", meta)
	if err != nil {
		return nil, err
	}
	saver := &trainerd.Saver{MetaGraph: meta}
	if err := saver.Restore(ctx, sess, prefix); err != nil {
		return nil, errors.Join(err, sess.Close())
	}
	return sess, nil
}

func Example_predict() {
	ctx := context.Background()
	meta, logdir := exampleGraph()
	defer os.RemoveAll(logdir)
	if err := verySimple(ctx, meta, logdir); err != nil {
		log.Fatal(err)
	}
	sess, err := openModel(ctx, filepath.Join(logdir, "model.ckpt-1000"))
	if err != nil {
		log.Fatal(err)
	}
	defer sess.Close()
	feeds := map[string]*ckptfmt.Tensor{} // by name, such as "pixels:0"
	out, err := sess.Run(ctx, feeds, []string{"global_step/Read/ReadVariableOp:0"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	steps, err := ckptfmt.Values[int64](out[0])
	fmt.Println(steps, err)
	// Output: [1000] <nil>
}

// TestGuidePredict holds that doc/run-a-graph.md shows openModel as it is run.
func TestGuidePredict(t *testing.T) {
	source, err := os.ReadFile("example_predict_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "doc", "run-a-graph.md"))
	if err != nil {
		t.Fatal(err)
	}
	if text := functionsOf(t, source)["openModel"]; !strings.Contains(string(page), "```go\n"+text+"\n```") {
		t.Errorf("run-a-graph.md does not show openModel as it is:\n%s", text)
	}
}
