// Package program describes what a job trains, in the same way for a model family and an exported
// graph: a [Program], the names of what is run and fetched, and an [Input], which feeds each step.
//
// Neither is safe for concurrent use.
package program
