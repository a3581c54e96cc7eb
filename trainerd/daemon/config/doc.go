// Package config reads the TOML file that describes a job.
//
// [Load] fills a [Config] from the file and from flags, each an [Override],
// resolves its paths and checks its values. It does not stop at the first fault:
// an [*Error] holds every [Problem], each with its line or flag and, where one is
// known, a hint. A key that has no effect in that kind of job is a problem
// too.
//
// The structs are the file's tables, and their comments are its reference:
// doc/config.md is made from them. [Template] writes the file of a new job.
//
// Code that reads the data or the graph of a job checks the settings that depend
// on them, and reports problems through a [Validator], so that they too have a
// position in the file.
//
// A Config may be used by several goroutines as long as none changes it.
package config
