// Emit writes a MetaGraphDef, for tests that give it to TensorFlow.
//
//	emit CONFIG.json MODEL.meta
//
// builds a model family and prints the names of what it can be fed and asked
// for, as JSON;
//
//	emit EXPORTED.meta COMPLETED.meta
//
// adds to an exported graph what a Supervisor needs.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/model"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: emit CONFIG.json|EXPORTED.meta OUT.meta")
		os.Exit(2)
	}
	if err := emit(os.Args[1], os.Args[2], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "emit:", err)
		os.Exit(1)
	}
}

func emit(in, out string, names io.Writer) error {
	data, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	produce := build
	if strings.HasSuffix(in, ".meta") {
		produce = complete
	}
	meta, err := produce(data, names)
	if err != nil {
		return err
	}
	return os.WriteFile(out, tfproto.Marshal(meta), 0o666)
}

func build(config []byte, names io.Writer) (*tfpb.MetaGraphDef, error) {
	var cfg model.Config
	if err := json.Unmarshal(config, &cfg); err != nil {
		return nil, err
	}
	m, err := model.Build(cfg)
	if err != nil {
		return nil, err
	}
	meta := m.Meta
	m.Meta = nil // goes to the file
	return meta, json.NewEncoder(names).Encode(m)
}

func complete(data []byte, _ io.Writer) (*tfpb.MetaGraphDef, error) {
	meta := &tfpb.MetaGraphDef{}
	if err := proto.Unmarshal(data, meta); err != nil {
		return nil, err
	}
	return graph.Complete(meta)
}
