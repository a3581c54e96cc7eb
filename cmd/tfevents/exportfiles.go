package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"image"
	_ "image/gif" // whose sizes are printed
	_ "image/jpeg"
	_ "image/png"
	"io"
	"net/http"
	"path"
	"path/filepath"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
)

// fileTree is a directory that images and clips are written to, each as RUN/TAG/STEP-N
// with the ending of its format. Where a step was written twice, ~2 follows, and so on.
type fileTree struct {
	dir   string
	used  map[string]int // how often a name was used, in lower case and without its ending
	files newFileSet
}

// imageRow is one image of a value, in a file.
type imageRow struct {
	pointRow
	Index  int64  `parquet:"index" json:"index"`
	Width  int64  `parquet:"width" json:"width"`
	Height int64  `parquet:"height" json:"height"`
	File   string `parquet:"file" json:"file"` // below the directory of --files
}

func imagesOf(s *selection, at pointRow, v *tfpb.Summary_Value) (rows []imageRow, ok bool) {
	blobs := decode.Blobs(v)
	if len(blobs) < leadingStrings {
		return nil, false
	}
	for i, data := range blobs[leadingStrings:] {
		row := imageRow{pointRow: at, Index: int64(i), File: s.write(at, i, data)}
		if c, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil {
			row.Width, row.Height = int64(c.Width), int64(c.Height)
		}
		rows = append(rows, row)
	}
	return rows, true
}

// clipRow is one clip of a value, in a file.
type clipRow struct {
	pointRow
	Index int64  `parquet:"index" json:"index"`
	Label string `parquet:"label" json:"label"`
	File  string `parquet:"file" json:"file"`
}

func clipsOf(s *selection, at pointRow, v *tfpb.Summary_Value) (rows []clipRow, ok bool) {
	clips := decode.Blobs(v)
	for i, data := range clips {
		rows = append(rows, clipRow{pointRow: at, Index: int64(i), Label: labelOf(v.GetTensor(), i), File: s.write(at, i, data)})
	}
	return rows, clips != nil
}

// write makes a file and returns its name, if there is a directory for it and every
// file before could be written.
func (s *selection) write(at pointRow, index int, data []byte) (name string) {
	if s.err == nil && s.files.dir != "" {
		name, s.err = s.files.write(at, index, data)
	}
	return name
}

// labelOf returns the Markdown next to a clip, if the value has labels.
func labelOf(t *tfpb.TensorProto, i int) string {
	if strings := t.GetStringVal(); len(t.GetTensorShape().GetDim()) == 2 && 2*i+1 < len(strings) {
		return string(strings[2*i+1])
	}
	return ""
}

// write makes a file, which must not exist, and returns its name below the directory.
func (f *fileTree) write(at pointRow, index int, data []byte) (string, error) {
	name := path.Join(fileNames(at.Run), fileName(at.Tag), fmt.Sprintf("%d-%d", at.Step, index))
	folded := strings.ToLower(name) // for file systems where case does not matter
	f.used[folded]++
	if n := f.used[folded]; n > 1 {
		name += fmt.Sprintf("~%d", n)
	}
	name += ending(data)
	full := filepath.Join(f.dir, filepath.FromSlash(name))
	if err := f.files.mkdir(filepath.Dir(full)); err != nil {
		return "", err
	}
	return name, f.files.write(full, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// fileNames returns the name of a run as one of directories, each with a safe name.
func fileNames(run string) string {
	parts := strings.Split(run, "/")
	for i, p := range parts {
		if p == "." && len(parts) == 1 {
			return p
		}
		parts[i] = fileName(p)
	}
	return path.Join(parts...)
}

// longestName is what every file system takes; a checksum ends a longer name.
const longestName = 120

// fileName returns text as a name for a file: letters, digits and some signs stay,
// everything else is written as %XX, so that no two texts give one name.
func fileName(text string) string {
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	name := b.String()
	if name == "" {
		return "%"
	}
	if len(name) > longestName {
		sum := sha256.Sum256([]byte(text))
		return name[:longestName] + "%" + hex.EncodeToString(sum[:8])
	}
	return name
}

// endings are the usual ones of what files of images and audio are detected as.
var endings = []struct{ kind, ending string }{
	{"image/png", ".png"}, {"image/jpeg", ".jpg"}, {"image/gif", ".gif"}, {"image/webp", ".webp"}, {"image/bmp", ".bmp"},
	{"audio/wave", ".wav"}, {"audio/mpeg", ".mp3"}, {"application/ogg", ".ogg"},
}

// ending returns the usual one of a format, by the bytes that it begins with.
func ending(data []byte) string {
	kind := http.DetectContentType(data)
	for _, e := range endings {
		if strings.HasPrefix(kind, e.kind) {
			return e.ending
		}
	}
	if isImage(data) {
		return ".svg"
	}
	return ".bin"
}
