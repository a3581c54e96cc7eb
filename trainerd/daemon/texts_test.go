package daemon

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// reviews is a file of texts of more than eight words, whose words say which label they have.
func reviews(rows int) string {
	opinions := [][]string{{"dull", "slow", "grey", "endless"}, {"bright", "quick", "moving", "funny"}}
	var b strings.Builder
	b.WriteString("review,stars,good\n")
	for i := range rows {
		own := opinions[i%2]
		fmt.Fprintf(&b, "\"The film of %d, about which one reads so much, was %s and %s.\",%d,%d\n", 1950+i%9, own[i/2%4], own[i/8%4], i%5, i%2)
	}
	return b.String()
}

// textsConfig is a job that learns from texts.
func textsConfig(t *testing.T) *config.Config {
	t.Helper()
	c := clustersConfig(t)
	c.Data.File = filepath.Join(filepath.Dir(c.Data.File), "reviews.csv")
	if err := os.WriteFile(c.Data.File, []byte(reviews(80)), 0o666); err != nil {
		t.Fatal(err)
	}
	job := strings.NewReplacer("LOGDIR", c.Logdir, `"clusters.csv"`, fmt.Sprintf("%q\nheader = true\nlabel = \"good\"\ntexts = [\"review\"]", c.Data.File)).Replace(clustersJob)
	name := filepath.Join(filepath.Dir(c.Data.File), "texts.toml")
	if err := os.WriteFile(name, []byte(job), 0o666); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestTextsOnServer learns from texts here and on a server, by way of both: the model is the same.
func TestTextsOnServer(t *testing.T) {
	stay := textsConfig(t)
	if out, _ := runJob(t, t.Context(), stay); !strings.Contains(out, "test accuracy: 1.000") {
		t.Fatalf("it has not learnt from the texts:\n%s", out)
	}
	for _, via := range []string{"server", "client"} {
		c := textsConfig(t)
		c.Cluster.CheckpointVia = via
		for i, master := range []string{"grpc://" + serveMaster(t), ""} {
			c.Master, c.Train.Steps = master, int64(20*(i+1))
			runJob(t, t.Context(), c)
		}
		for _, suffix := range []string{".index", ".data-00000-of-00001"} {
			want, err := os.ReadFile(filepath.Join(stay.Logdir, "model.ckpt-40"+suffix))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(c.Logdir, "model.ckpt-40"+suffix)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("via %s: %s is not that of the run that stayed (%v)", via, suffix, err)
			}
		}
	}
}
