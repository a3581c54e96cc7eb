// Package projector writes the files of TensorBoard's projector: vectors with
// labels, as TSV files, and projector_config.pbtxt, which names them. It is the
// only plugin whose data is not in events files.
//
// The functions have no state; files are written atomically.
package projector

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/tfproto"
	"github.com/trainerd/trainerd/proto/tbpb"
)

// configName is the file in a log directory that TensorBoard's projector reads.
const configName = "projector_config.pbtxt"

// WriteConfig makes c the projector's configuration in logdir.
func WriteConfig(logdir string, c *tbpb.ProjectorConfig) error {
	if err := os.MkdirAll(logdir, 0o777); err != nil {
		return fmt.Errorf("tfevents: %w", err)
	}
	if err := atomicfile.WriteFile(nil, filepath.Join(logdir, configName), tfproto.MarshalText(c)); err != nil {
		return fmt.Errorf("tfevents: %w", err)
	}
	return nil
}

// maxConfig bounds what is read of a configuration.
const maxConfig = 64 << 20

// ReadConfig returns the projector's configuration in logdir. Its
// error is fs.ErrNotExist if there is none.
func ReadConfig(logdir string) (*tbpb.ProjectorConfig, error) {
	text, err := atomicfile.ReadFileLimit(nil, filepath.Join(logdir, configName), maxConfig, nil)
	if err != nil {
		return nil, fmt.Errorf("tfevents: %w", err)
	}
	c := new(tbpb.ProjectorConfig)
	if err := tfproto.UnmarshalText(text, c); err != nil {
		return nil, fmt.Errorf("tfevents: %s: %w", configName, err)
	}
	return c, nil
}

// Embedding is a set of vectors for TensorBoard's projector.
type Embedding struct {
	Name    string
	Vectors [][]float32
	// Labels describes the vectors: one column and no Header, or several
	// columns named by Header. It may be nil.
	Labels [][]string
	Header []string
}

// Write writes the vectors and the labels as files into logdir and
// returns the entry that a [tbpb.ProjectorConfig] needs to show them.
func Write(logdir string, e *Embedding) (*tbpb.EmbeddingInfo, error) {
	if err := e.check(); err != nil {
		return nil, fmt.Errorf("tfevents: embedding %q: %w", e.Name, err)
	}
	dir := strings.NewReplacer("/", "_", `\`, "_", ":", "_").Replace(e.Name)
	if err := os.MkdirAll(filepath.Join(logdir, dir), 0o777); err != nil {
		return nil, fmt.Errorf("tfevents: %w", err)
	}
	info := &tbpb.EmbeddingInfo{TensorName: e.Name, TensorPath: dir + "/tensors.tsv"}
	files := map[string][]byte{info.TensorPath: e.vectorsTSV()}
	if e.Labels != nil {
		info.MetadataPath = dir + "/metadata.tsv"
		files[info.MetadataPath] = e.labelsTSV()
	}
	for name, data := range files {
		if err := atomicfile.WriteFile(nil, filepath.Join(logdir, filepath.FromSlash(name)), data); err != nil {
			return nil, fmt.Errorf("tfevents: %w", err)
		}
	}
	return info, nil
}

func (e *Embedding) check() error {
	if e.Name == "" || e.Name == "." || e.Name == ".." {
		return errors.New("not a usable name")
	}
	if strings.Contains(e.Name, "tfevents") {
		return errors.New("TensorBoard would take its files for events files")
	}
	for i, v := range e.Vectors {
		if len(v) != len(e.Vectors[0]) {
			return fmt.Errorf("vector %d has %d elements, the first %d", i, len(v), len(e.Vectors[0]))
		}
	}
	if e.Labels != nil && len(e.Labels) != len(e.Vectors) {
		return fmt.Errorf("%d labels for %d vectors", len(e.Labels), len(e.Vectors))
	}
	columns := max(len(e.Header), 1)
	for i, row := range e.Labels {
		if len(row) != columns {
			return fmt.Errorf("label %d has %d columns, want %d", i, len(row), columns)
		}
	}
	if len(e.Header) == 1 {
		return errors.New("a single column has no header")
	}
	return nil
}

func (e *Embedding) vectorsTSV() []byte {
	var b []byte
	for _, v := range e.Vectors {
		for i, x := range v {
			if i > 0 {
				b = append(b, '\t')
			}
			b = strconv.AppendFloat(b, float64(x), 'g', -1, 32)
		}
		b = append(b, '\n')
	}
	return b
}

// cellCleaner keeps a label in its cell: TSV has no quoting.
var cellCleaner = strings.NewReplacer("\t", " ", "\n", " ", "\r", " ")

func (e *Embedding) labelsTSV() []byte {
	var b bytes.Buffer
	rows := e.Labels
	if len(e.Header) > 0 {
		rows = append([][]string{e.Header}, rows...)
	}
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(cellCleaner.Replace(cell))
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}
