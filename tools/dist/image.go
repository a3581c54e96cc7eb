package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"
)

// An image is a tar with a layout of the Open Container Initiative (image-spec
// 1.1): oci-layout, index.json and blobs/sha256/HASH, which are a manifest, a
// config and one layer. The file manifest.json is for docker load, which read
// nothing else before Docker 25.
const (
	mediaIndex    = "application/vnd.oci.image.index.v1+json"
	mediaManifest = "application/vnd.oci.image.manifest.v1+json"
	mediaConfig   = "application/vnd.oci.image.config.v1+json"
	mediaLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// descriptor names a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type imageIndex struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type imageManifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type imageConfig struct {
	Created time.Time `json:"created"`
	platform
	Config struct {
		Entrypoint []string
		Cmd        []string
		Env        []string
		WorkingDir string
		Labels     map[string]string
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// dockerImage is an element of manifest.json.
type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// writeImage writes a container image that holds the commands and their licenses:
// to be run, or to be copied from in the build of an image with a program in it.
func (t *target) writeImage(name string) (err error) {
	layer, diffID, err := t.layer()
	if err != nil {
		return err
	}
	config, err := json.Marshal(t.imageConfig(diffID))
	if err != nil {
		return err
	}
	manifest, err := json.Marshal(imageManifest{
		SchemaVersion: 2, MediaType: mediaManifest,
		Config: describe(mediaConfig, config), Layers: []descriptor{describe(mediaLayer, layer)},
	})
	if err != nil {
		return err
	}
	index, err := json.Marshal(t.imageIndex(manifest))
	if err != nil {
		return err
	}
	docker, err := json.Marshal([]dockerImage{{Config: blob(config), RepoTags: []string{t.tag()}, Layers: []string{blob(layer)}}})
	if err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	a := &archive{tar.NewWriter(f), t.release}
	for _, x := range []struct {
		name string
		data []byte
	}{
		{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {"index.json", index}, {"manifest.json", docker},
		{blob(manifest), manifest}, {blob(config), config}, {blob(layer), layer},
	} {
		if err := a.bytes(x.name, x.data); err != nil {
			return err
		}
	}
	return a.Close()
}

func (t *target) tag() string { return "trainerd:" + t.version }

func (t *target) imageIndex(manifest []byte) imageIndex {
	d := describe(mediaManifest, manifest)
	d.Platform = &platform{t.arch, t.os}
	d.Annotations = map[string]string{"org.opencontainers.image.ref.name": t.version, "io.containerd.image.name": t.tag()}
	return imageIndex{SchemaVersion: 2, MediaType: mediaIndex, Manifests: []descriptor{d}}
}

func (t *target) imageConfig(diffID string) imageConfig {
	c := imageConfig{Created: t.epoch, platform: platform{t.arch, t.os}}
	c.Config.Entrypoint = []string{"/usr/bin/trainerd"}
	c.Config.Cmd = []string{"help"}
	c.Config.Env = []string{"PATH=/usr/bin", "HOME=/tmp"}
	c.Config.WorkingDir = "/work"
	c.Config.Labels = map[string]string{
		"org.opencontainers.image.title":    "trainerd",
		"org.opencontainers.image.version":  t.version,
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.source":   "https://github.com/trainerd/trainerd",
	}
	c.RootFS.Type, c.RootFS.DiffIDs = "layers", []string{diffID}
	return c
}

// layer returns the files of the image, compressed, and the digest of the tar in
// it.
func (t *target) layer() (compressed []byte, diffID string, err error) {
	var out bytes.Buffer
	z, sum := gzip.NewWriter(&out), sha256.New()
	a := &archive{tar.NewWriter(io.MultiWriter(z, sum)), t.release}
	for _, dir := range []struct {
		name string
		mode int64
	}{{"tmp/", 0o1777}, {"usr/", 0o755}, {"usr/bin/", 0o755}, {"work/", 0o1777}} {
		header := &tar.Header{Typeflag: tar.TypeDir, Name: dir.name, Mode: dir.mode, ModTime: t.epoch, Format: tar.FormatPAX}
		if err := a.WriteHeader(header); err != nil {
			return nil, "", err
		}
	}
	for _, command := range commands {
		if err := a.file(t.command(command), path.Join("usr/bin", command)); err != nil {
			return nil, "", err
		}
	}
	if err := a.file(filepath.Join(t.root, "LICENSE"), "usr/share/doc/trainerd/copyright"); err != nil {
		return nil, "", err
	}
	if err := a.file(filepath.Join(t.stage, "share", filepath.FromSlash(licensesFile)), path.Join("usr/share", licensesFile)); err != nil {
		return nil, "", err
	}
	if err := errors.Join(a.Close(), z.Close()); err != nil {
		return nil, "", err
	}
	return out.Bytes(), fmt.Sprintf("sha256:%x", sum.Sum(nil)), nil
}

// describe describes a blob.
func describe(mediaType string, data []byte) descriptor {
	return descriptor{MediaType: mediaType, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(data)), Size: len(data)}
}

// blob is the name of a blob in the layout.
func blob(data []byte) string { return fmt.Sprintf("blobs/sha256/%x", sha256.Sum256(data)) }
