// Emitckpt writes a checkpoint of the tensors that a JSON document on standard
// input describes, or prints such a document of a checkpoint:
//
//	emitckpt write PREFIX < document
//	emitckpt read PREFIX > document
//
// Elements are hexadecimal: of numbers all bytes together, of strings each.
package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
)

type document struct {
	V1        bool     `json:"v1"`
	Shards    int      `json:"shards"` // 0 and 1: not spread
	Alignment int      `json:"alignment"`
	Snappy    bool     `json:"snappy"`
	Stream    bool     `json:"stream"` // numbers go through readers
	Tensors   []tensor `json:"tensors"`
}

type tensor struct {
	Name    string   `json:"name"`
	DType   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Slice   string   `json:"slice"` // "" or full shape and slice, as the save ops take it
	Data    string   `json:"data"`
	Strings []string `json:"strings"`
}

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "emitckpt:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("usage: emitckpt write|read PREFIX")
	}
	if args[0] == "read" {
		return read(args[1], out)
	}
	var d document
	if err := json.NewDecoder(in).Decode(&d); err != nil {
		return err
	}
	switch {
	case d.V1:
		w, err := ckptfmt.CreateV1(args[1], &ckptfmt.V1WriterOptions{Snappy: d.Snappy})
		if err != nil {
			return err
		}
		return writeAll(w, d.Tensors)
	case d.Shards > 1:
		return writeShards(args[1], &d)
	}
	return d.writeBundle(args[1], d.Tensors)
}

// writer is a writer of either format.
type writer interface {
	Add(name string, t *ckptfmt.Tensor) error
	AddSlice(name string, fullShape []int64, s ckptfmt.TensorSlice, t *ckptfmt.Tensor) error
	Finish() error
	Close() error
}

func (d *document) writeBundle(prefix string, tensors []tensor) error {
	w, err := ckptfmt.CreateBundle(prefix, &ckptfmt.BundleWriterOptions{Alignment: d.Alignment, Snappy: d.Snappy})
	if err != nil {
		return err
	}
	if d.Stream {
		return writeAll(streamer{w}, tensors)
	}
	return writeAll(w, tensors)
}

// streamer writes whole tensors of numbers from readers.
type streamer struct{ *ckptfmt.BundleWriter }

func (s streamer) Add(name string, t *ckptfmt.Tensor) error {
	if dtype.Size(t.DType) == 0 {
		return s.BundleWriter.Add(name, t)
	}
	r, w := io.Pipe()
	go func() {
		_, err := w.Write(t.Data)
		w.CloseWithError(err)
	}()
	defer r.Close()
	return s.AddFrom(name, t.DType, t.Shape, r)
}

// writeShards writes parts side by side and merges them, as a sharded save
// does.
func writeShards(prefix string, d *document) error {
	var parts []string
	for i := range d.Shards {
		var mine []tensor
		for j, t := range d.Tensors {
			if j%d.Shards == i {
				mine = append(mine, t)
			}
		}
		part := filepath.Join(prefix+"_temp", fmt.Sprintf("part-%05d-of-%05d", i, d.Shards))
		if err := d.writeBundle(part, mine); err != nil {
			return err
		}
		parts = append(parts, part)
	}
	return ckptfmt.MergeBundles(context.Background(), parts, prefix, &ckptfmt.MergeOptions{DeleteOldDirs: true})
}

func writeAll(w writer, tensors []tensor) (err error) {
	defer func() { err = errors.Join(err, w.Close()) }()
	for _, t := range tensors {
		value, err := t.value()
		if err != nil {
			return err
		}
		if t.Slice == "" {
			err = w.Add(t.Name, value)
		} else {
			err = addSlice(w, t, value)
		}
		if err != nil {
			return err
		}
	}
	return w.Finish()
}

func addSlice(w writer, t tensor, value *ckptfmt.Tensor) error {
	full, s, _, err := ckptfmt.ParseShapeAndSlice(t.Slice)
	if err != nil {
		return err
	}
	return w.AddSlice(t.Name, full, s, value)
}

func (t *tensor) value() (*ckptfmt.Tensor, error) {
	d, ok := dtype.Parse(t.DType)
	if !ok {
		return nil, fmt.Errorf("no such type: %s", t.DType)
	}
	value := &ckptfmt.Tensor{DType: d, Shape: t.Shape}
	var err error
	if value.Data, err = hex.DecodeString(t.Data); err != nil {
		return nil, err
	}
	for _, text := range t.Strings {
		s, err := hex.DecodeString(text)
		if err != nil {
			return nil, err
		}
		value.Strings = append(value.Strings, s)
	}
	return value, nil
}

func read(prefix string, out io.Writer) (err error) {
	r, err := ckptfmt.Open(prefix, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for name, err := range r.Verify(context.Background()) {
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	d := document{Tensors: []tensor{}}
	for info, err := range r.Tensors() {
		if err != nil {
			return err
		}
		value, err := r.Lookup(info.Name)
		if err != nil {
			return err
		}
		t := tensor{Name: info.Name, DType: dtype.Name(info.DType), Shape: append([]int64{}, info.Shape...), Data: hex.EncodeToString(value.Data)}
		for _, s := range value.Strings {
			t.Strings = append(t.Strings, hex.EncodeToString(s))
		}
		d.Tensors = append(d.Tensors, t)
	}
	return json.NewEncoder(out).Encode(d)
}
