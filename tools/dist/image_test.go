package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"testing"
)

// members returns the files of a tar with what they hold.
func members(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for a := tar.NewReader(r); ; {
		h, err := a.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Uname != "" || h.ModTime.Unix() != 1_700_000_000 {
			t.Errorf("%s shows its maker: %+v", h.Name, h)
		}
		data, err := io.ReadAll(a)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = data
	}
}

// follow returns the blob that a descriptor names, as its digest and size have it.
func follow(t *testing.T, files map[string][]byte, d descriptor) []byte {
	t.Helper()
	algorithm, hash, _ := strings.Cut(d.Digest, ":")
	data, ok := files[path.Join("blobs", algorithm, hash)]
	if !ok || len(data) != d.Size || fmt.Sprintf("%x", sha256.Sum256(data)) != hash {
		t.Fatalf("%s of %d bytes: there are %d bytes", d.Digest, d.Size, len(data))
	}
	return data
}

func decode[T any](t *testing.T, data []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestImage(t *testing.T) {
	x := stage(t, []byte("program"))
	f, err := os.Open(twice(t, "image.tar", x.writeImage))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files := members(t, f)
	index := decode[imageIndex](t, files["index.json"])
	if len(index.Manifests) != 1 || *index.Manifests[0].Platform != (platform{"amd64", "linux"}) {
		t.Fatalf("index: %s", files["index.json"])
	}
	manifest := decode[imageManifest](t, follow(t, files, index.Manifests[0]))
	config := decode[imageConfig](t, follow(t, files, manifest.Config))
	if len(manifest.Layers) != 1 || len(config.RootFS.DiffIDs) != 1 {
		t.Fatalf("manifest %+v, config %+v", manifest, config)
	}
	z, err := gzip.NewReader(bytes.NewReader(follow(t, files, manifest.Layers[0])))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	layer := members(t, io.TeeReader(z, sum))
	if _, err := io.Copy(sum, z); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("sha256:%x", sum.Sum(nil)); got != config.RootFS.DiffIDs[0] {
		t.Errorf("the layer is %s, its config says %s", got, config.RootFS.DiffIDs[0])
	}
	if program := strings.TrimPrefix(config.Config.Entrypoint[0], "/"); string(layer[program]) != "program" {
		t.Errorf("the layer has no %s", program)
	}
	docker := decode[[]dockerImage](t, files["manifest.json"])
	if len(docker) != 1 || files[docker[0].Config] == nil || files[docker[0].Layers[0]] == nil {
		t.Errorf("manifest.json: %s", files["manifest.json"])
	}
}

func TestZip(t *testing.T) {
	x := stage(t, []byte("program"))
	x.os = "windows"
	for _, c := range commands {
		if err := os.WriteFile(x.command(c), []byte("program"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	name := twice(t, "a.zip", func(name string) error { return x.writeArchive(strings.TrimSuffix(name, ".zip")) })
	z, err := zip.OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	names := map[string]bool{}
	for _, f := range z.File {
		names[f.Name] = true
		if f.Modified.Unix() != 1_700_000_000 {
			t.Errorf("%s is of %s", f.Name, f.Modified)
		}
	}
	for _, want := range []string{"a/bin/trainerd.exe", "a/LICENSE"} {
		if !names[want] {
			t.Errorf("%s is missing", want)
		}
	}
	if names["a/systemd/trainerd@.service"] {
		t.Error("the archive for Windows has units of systemd")
	}
}
