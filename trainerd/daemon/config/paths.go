package config

import "path/filepath"

// Absolute returns path from the root, or unchanged if there is no working
// directory.
func Absolute(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return abs
}

// ClientFiles returns the directories that clients may use files in, nil for
// any.
func (c *Config) ClientFiles() []string {
	if c.Cluster.ListenFiles == filesAll || c.Cluster.ListenFiles == "" && !c.Cluster.ListenPublic {
		return nil
	}
	return []string{Absolute(c.Logdir)}
}
