package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestClientFiles limits clients to the logdir where other machines can reach
// the address, and where the config says so.
func TestClientFiles(t *testing.T) {
	within := []string{Absolute("logs")}
	for _, c := range []struct {
		cluster Cluster
		want    []string
	}{
		{Cluster{}, nil},
		{Cluster{ListenFiles: "logdir"}, within},
		{Cluster{ListenPublic: true}, within},
		{Cluster{ListenPublic: true, ListenFiles: "all"}, nil},
	} {
		config := &Config{Logdir: "logs", Cluster: c.cluster}
		if got := config.ClientFiles(); !slices.Equal(got, c.want) {
			t.Errorf("%+v: got %q, want %q", c.cluster, got, c.want)
		}
	}
}

// TestHomeFolders takes a home folder for none in every key that is a path, and in no other.
func TestHomeFolders(t *testing.T) {
	t.Setenv("HOME", "/home/ada")
	c, paths := Default(), make(map[string]bool)
	for _, p := range c.paths() {
		paths[p.key] = true
	}
	root := reflect.ValueOf(c).Elem()
	for _, k := range Keys() {
		if fieldAt(root, k.Name).Kind() != reflect.String {
			continue
		}
		_, _, err := load(t, smallest, Override{Flag: "--set", Assignment: k.Name + "=~/a"})
		if said := err != nil && strings.Contains(err.Error(), k.Name+`: "~/a" is no home folder here`); said != paths[k.Name] {
			t.Errorf("%s: %v", k.Name, err)
		}
	}
	for _, key := range []string{"logdir", "data.file", "graph.meta", "child.dir", "child.recipe", "warm_start.map", "cluster.tls_key"} {
		if !paths[key] {
			t.Errorf("%s is no path", key)
		}
	}
}
