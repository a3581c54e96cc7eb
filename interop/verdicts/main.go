// Verdicts says what this project makes of files that may be damaged, so that
// TensorFlow's opinion can be set next to it. Each line of standard input names
// a kind and a file, or the prefix of a checkpoint:
//
//	records FILE | gzip FILE | zlib FILE | checkpoint PREFIX
//
// and is answered by a line of JSON: the digests of what could be read, and
// whether all of it could.
package main

import (
	"bufio"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

type verdict struct {
	Whole   bool              `json:"whole"`
	Records []string          `json:"records,omitempty"`
	Tensors map[string]string `json:"tensors,omitempty"` // "" for those that cannot be read
	Error   string            `json:"error,omitempty"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "verdicts:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	answers := json.NewEncoder(out)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		kind, name, ok := strings.Cut(lines.Text(), " ")
		if !ok {
			return fmt.Errorf("line %q names no file", lines.Text())
		}
		v := records(kind, name)
		if kind == "checkpoint" {
			v = checkpoint(name)
		}
		if err := answers.Encode(v); err != nil {
			return err
		}
	}
	return nil
}

func records(kind, name string) verdict {
	f, err := os.Open(name)
	if err != nil {
		return verdict{Error: err.Error()}
	}
	defer f.Close()
	compression := map[string]tfrecord.Compression{"gzip": tfrecord.GZIP, "zlib": tfrecord.ZLIB}[kind]
	r, err := tfrecord.NewCompressedReader(f, compression)
	if err != nil {
		return verdict{Error: err.Error()}
	}
	var v verdict
	for {
		data, err := r.Next()
		if err != nil {
			v.Whole = err == io.EOF || passedOver(err)
			v.Error = err.Error()
			return v
		}
		v.Records = append(v.Records, digest(data))
	}
}

// passedOver reports whether TensorFlow takes an error for the end of the file:
// too few bytes for a length, or data after the end of a ZLIB stream.
func passedOver(err error) bool {
	var torn *tfrecord.CorruptError
	return errors.Is(err, tfrecord.ErrTrailingData) || errors.As(err, &torn) && torn.Torn() && torn.Part == tfrecord.PartLength
}

func checkpoint(prefix string) verdict {
	r, err := ckptfmt.Open(prefix, nil)
	if err != nil {
		return verdict{Error: err.Error()}
	}
	defer r.Close()
	v := verdict{Whole: true, Tensors: map[string]string{}}
	for info, err := range r.Tensors() {
		if err == nil {
			v.Tensors[info.Name], err = tensor(r, info.Name)
		}
		if err != nil {
			v.Whole, v.Error = false, err.Error()
		}
	}
	return v
}

// tensor returns the digest of a tensor's bytes; of strings with their lengths.
func tensor(r ckptfmt.Reader, name string) (string, error) {
	t, err := r.Lookup(name)
	if err != nil {
		return "", err
	}
	if t.Strings == nil {
		return digest(t.Data), nil
	}
	var all []byte
	for _, s := range t.Strings {
		all = fmt.Appendf(all, "%d:%s", len(s), s)
	}
	return digest(all), nil
}

func digest(b []byte) string {
	sum := sha1.Sum(b)
	return hex.EncodeToString(sum[:])
}
