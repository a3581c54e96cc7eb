// Package metagraph reads and writes the files of MetaGraphDefs: the .meta file
// that a Saver writes next to a checkpoint, in protobuf's binary form, and
// graph.pbtxt, in its text form. It has no state.
package metagraph

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"google.golang.org/protobuf/proto"
)

// Write publishes a MetaGraphDef in binary form, as a Saver writes it next to a
// checkpoint: fields in the order of their numbers, maps sorted. o may be nil.
func Write(name string, m *tfpb.MetaGraphDef, o *ckptfmt.FileOptions) error {
	return atomicfile.WriteFile(o.FileSystem(), name, tfproto.Marshal(m))
}

// WriteText publishes a message, such as a GraphDef as graph.pbtxt, in
// protobuf's text form, as TensorFlow prints it. o may be nil.
func WriteText(name string, m proto.Message, o *ckptfmt.FileOptions) error {
	return atomicfile.WriteFile(o.FileSystem(), name, tfproto.MarshalText(m))
}

// maxMessage is the largest message that protobuf has.
const maxMessage = 1 << 31

// Read reads a MetaGraphDef in binary form or, if that fails, in text form, as
// TensorFlow does.
func Read(name string) (*tfpb.MetaGraphDef, error) {
	return read(name, ReadMessage, tfproto.UnmarshalMetaGraph)
}

// ReadSaved is Read for the file next to a checkpoint, in whose place another user may have put a
// pipe or a device: that is an error.
func ReadSaved(name string) (*tfpb.MetaGraphDef, error) {
	return read(name, ReadSavedMessage, tfproto.UnmarshalMetaGraph)
}

// ReadShared is Read for a graph whose attributes nobody changes: equal ones may share one message,
// which takes a third of the time and of the memory. Copy a part with proto.Clone before changing
// it.
func ReadShared(name string) (*tfpb.MetaGraphDef, error) {
	return read(name, ReadMessage, tfproto.UnmarshalSharedMetaGraph)
}

func read(name string, open func(string) ([]byte, error), unmarshal func([]byte) (*tfpb.MetaGraphDef, error)) (*tfpb.MetaGraphDef, error) {
	b, err := open(name)
	if err != nil {
		return nil, err
	}
	m, binaryErr := unmarshal(b)
	if binaryErr == nil {
		return m, nil
	}
	m = &tfpb.MetaGraphDef{}
	textErr := tfproto.UnmarshalText(b, m)
	if textErr == nil {
		return m, nil
	}
	err = fmt.Errorf("as binary: %w; as text: %w", binaryErr, textErr)
	return nil, &ckptfmt.CorruptError{Name: name, Part: "MetaGraphDef", Err: err}
}

// ReadMessage reads the file of a TensorFlow message, unless it is larger than a
// message can be. It may be a pipe, as the shell's <(command).
func ReadMessage(name string) ([]byte, error) {
	b, err := ReadSavedMessage(name)
	if !errors.Is(err, atomicfile.ErrNotRegular) {
		return b, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // it was only read
	b, err = io.ReadAll(io.LimitReader(f, maxMessage+1))
	if len(b) > maxMessage {
		return nil, tooLarge(name, maxMessage+1)
	}
	return b, err
}

// ReadSavedMessage is ReadMessage for a file next to a checkpoint, as ReadSaved is Read.
func ReadSavedMessage(name string) ([]byte, error) {
	return atomicfile.ReadFileLimit(nil, name, maxMessage, func(size int64) error { return tooLarge(name, size) })
}

func tooLarge(name string, size int64) error {
	return &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%d bytes are more than a message can have", size)}
}
