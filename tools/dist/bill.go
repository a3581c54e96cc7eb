package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// bill is a software bill of materials in the form of CycloneDX 1.6, as far as
// it is used here.
type bill struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	SerialNumber string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Ref        string     `json:"bom-ref"`
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	URL        string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// writeBill writes what the commands of a target are made of: what their Go
// compiler has written into them.
func (t *target) writeBill(name string) error {
	b := &bill{Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: metadata{
		Timestamp: t.epoch.Format(time.RFC3339),
		Component: component{Ref: "trainerd", Type: "application", Name: "trainerd", Version: t.version},
	}}
	parts := map[string]component{}
	all := dependency{Ref: "trainerd"}
	for _, command := range commands {
		own, deps, err := inspect(command, t.command(command))
		if err != nil {
			return err
		}
		b.Components = append(b.Components, own)
		all.DependsOn = append(all.DependsOn, own.Ref)
		b.Dependencies = append(b.Dependencies, dependency{own.Ref, slices.Sorted(maps.Keys(deps))})
		maps.Copy(parts, deps)
	}
	for _, ref := range slices.Sorted(maps.Keys(parts)) {
		b.Components = append(b.Components, parts[ref])
	}
	b.Dependencies = append(b.Dependencies, all)
	if err := b.number(); err != nil {
		return err
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}

// inspect returns a command, and the modules in its program by their reference.
func inspect(name, program string) (own component, deps map[string]component, err error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return component{}, nil, err
	}
	sum, err := sumOf(program)
	if err != nil {
		return component{}, nil, err
	}
	own = component{Ref: "command:" + name, Type: "application", Name: name, Hashes: []hash{{"SHA-256", fmt.Sprintf("%x", sum)}}}
	for _, s := range info.Settings {
		if s.Key == "GOOS" || s.Key == "GOARCH" || strings.HasPrefix(s.Key, "vcs.") {
			own.Properties = append(own.Properties, property{"go:build:" + s.Key, s.Value})
		}
	}
	deps = map[string]component{}
	add := func(path, version, sum string) {
		c := component{Type: "library", Name: path, Version: version, URL: "pkg:golang/" + path + "@" + version}
		c.Ref = c.URL
		if sum != "" {
			c.Properties = []property{{"go:sum", sum}}
		}
		deps[c.Ref] = c
	}
	add("std", strings.TrimPrefix(info.GoVersion, "go"), "")
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		add(m.Path, m.Version, m.Sum)
	}
	return own, deps, nil
}

// number gives the bill a serial number that follows from what it says.
func (b *bill) number() error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	id := sha256.Sum256(text)
	id[6] = id[6]&0x0f | 0x80 // version 8: custom
	id[8] = id[8]&0x3f | 0x80
	b.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16])
	return nil
}
