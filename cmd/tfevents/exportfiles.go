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
	"iter"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
)

// fileTree is a directory that images and clips are written to, each as RUN/TAG/STEP-N
// with the ending of its format. Where a step was written twice, ~2 follows, and so on.
type fileTree struct {
	dir  string
	used map[string]int // how often a name was used, without its ending
}

// imageRow is one image of a value, in a file.
type imageRow struct {
	pointRow
	Index  int64  `parquet:"index" json:"index"`
	Width  int64  `parquet:"width" json:"width"`
	Height int64  `parquet:"height" json:"height"`
	File   string `parquet:"file" json:"file"` // below the directory of --files
}

func (s *selection) images() iter.Seq[imageRow] {
	return func(yield func(imageRow) bool) {
		for at, v := range s.values() {
			blobs := summary.Blobs(v)
			if len(blobs) < leadingStrings {
				s.odd(at)
				continue
			}
			for i, data := range blobs[leadingStrings:] {
				row := imageRow{pointRow: at, Index: int64(i)}
				if c, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil {
					row.Width, row.Height = int64(c.Width), int64(c.Height)
				}
				if row.File, s.err = s.files.write(at, i, data); s.err != nil || !yield(row) {
					return
				}
			}
		}
	}
}

// clipRow is one clip of a value, in a file.
type clipRow struct {
	pointRow
	Index int64  `parquet:"index" json:"index"`
	Label string `parquet:"label" json:"label"`
	File  string `parquet:"file" json:"file"`
}

func (s *selection) clips() iter.Seq[clipRow] {
	return func(yield func(clipRow) bool) {
		for at, v := range s.values() {
			clips := summary.Blobs(v)
			if clips == nil {
				s.odd(at)
				continue
			}
			for i, data := range clips {
				row := clipRow{pointRow: at, Index: int64(i), Label: labelOf(v.GetTensor(), i)}
				if row.File, s.err = s.files.write(at, i, data); s.err != nil || !yield(row) {
					return
				}
			}
		}
	}
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
	f.used[name]++
	if n := f.used[name]; n > 1 {
		name += fmt.Sprintf("~%d", n)
	}
	name += ending(data)
	full := filepath.Join(f.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
		return "", err
	}
	return name, createFile(full, func(file *os.File) error {
		_, err := file.Write(data)
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
