// Command protogen regenerates the Go code of the messages in proto/ from the
// .proto files next to it. It needs no protoc: the files are compiled in Go.
//
// Usage: protogen ROOT, where ROOT is the folder that holds proto/.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/pluginpb"
)

// importPrefix is what our .proto files call their folder when they import
// each other: a path that no other program registers, so that a program which
// links another copy of TensorFlow's messages still starts.
const importPrefix = "trainerd/proto/"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: protogen ROOT")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root string) error {
	names, err := sources(root)
	if err != nil {
		return err
	}
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
			Accessor: func(path string) (io.ReadCloser, error) {
				rel, ok := strings.CutPrefix(path, importPrefix)
				if !ok {
					return nil, os.ErrNotExist
				}
				return os.Open(filepath.Join(root, "proto", filepath.FromSlash(rel)))
			},
		}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(ctx, names...)
	if err != nil {
		return err
	}
	req := &pluginpb.CodeGeneratorRequest{FileToGenerate: names}
	seen := map[string]bool{}
	for _, f := range files {
		addFile(req, seen, f)
	}
	return generate(root, req)
}

// sources lists the .proto files under proto/ by their import names.
func sources(root string) ([]string, error) {
	var names []string
	for _, pattern := range []string{"proto/*.proto", "proto/*/*.proto"} {
		matches, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		for _, m := range matches {
			rel, err := filepath.Rel(filepath.Join(root, "proto"), m)
			if err != nil {
				return nil, err
			}
			names = append(names, importPrefix+filepath.ToSlash(rel))
		}
	}
	return names, nil
}

func generate(root string, req *pluginpb.CodeGeneratorRequest) error {
	plugin, err := protogen.Options{}.New(req)
	if err != nil {
		return err
	}
	for _, f := range plugin.Files {
		if f.Generate {
			internal_gengo.GenerateFile(plugin, f)
		}
	}
	resp := plugin.Response()
	if resp.Error != nil {
		return fmt.Errorf("%s", resp.GetError())
	}
	for _, f := range resp.File {
		rel, ok := strings.CutPrefix(f.GetName(), "github.com/trainerd/trainerd/")
		if !ok {
			return fmt.Errorf("%s: go_package lies outside the module", f.GetName())
		}
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(rel)), []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// addFile appends f and, before it, everything that it imports.
func addFile(req *pluginpb.CodeGeneratorRequest, seen map[string]bool, f protoreflect.FileDescriptor) {
	if seen[f.Path()] {
		return
	}
	seen[f.Path()] = true
	imports := f.Imports()
	for i := range imports.Len() {
		addFile(req, seen, imports.Get(i).FileDescriptor)
	}
	req.ProtoFile = append(req.ProtoFile, protoutil.ProtoFromFileDescriptor(f))
}
