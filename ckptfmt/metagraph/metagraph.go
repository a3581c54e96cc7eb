// Package metagraph reads and writes the files of MetaGraphDefs: the .meta file
// that a Saver writes next to a checkpoint, in protobuf's binary form, and
// graph.pbtxt, in its text form. It has no state.
package metagraph

import (
	"fmt"
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
func Read(name string) (*tfpb.MetaGraphDef, error) { return read(name, tfproto.UnmarshalMetaGraph) }

// ReadShared is Read for a graph whose attributes nobody changes: equal ones may be one
// message, which takes a third of the time and of the memory. What is to be changed is
// copied before, by proto.Clone.
func ReadShared(name string) (*tfpb.MetaGraphDef, error) {
	return read(name, tfproto.UnmarshalSharedMetaGraph)
}

func read(name string, unmarshal func([]byte) (*tfpb.MetaGraphDef, error)) (*tfpb.MetaGraphDef, error) {
	b, err := ReadMessage(name)
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
// message can be.
func ReadMessage(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxMessage {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%d bytes are more than a message can have", info.Size())}
	}
	return os.ReadFile(name)
}
