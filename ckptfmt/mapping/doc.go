// Package mapping applies rules for the names and layouts of tensors in another
// program.
//
// A [Map] is a TOML or JSON document:
//
//	names = "keras"          # of checkpoints: auto, object (keys), variable or keras
//	rest  = "error"          # what no rule matches: error, keep or drop
//	separator = ["/", "."]   # in the names of results, one for the other
//
//	[[rule]]                 # of several that match, the first
//	from = '(.*)/kernel'     # a regular expression for a whole name
//	to   = '$1/weight'
//	perm = [1, 0]            # the dimensions in their new order
//
// A rule takes one tensor, or joins several: then from is a list, whose first item is an expression
// and the others names in which $1 is what the first one matched. A rule changes elements by
// reorder, perm and shape, in this order, or by steps, a list of tables with one of these each, in
// the given order; then it may split the result. [Rule] describes its fields.
//
// [Map.Plan] applies the rules to the types and shapes of tensors and finds all
// errors without reading any; [Output.Make] computes one result from the
// elements. [Ready] maps are in the folder maps; Ready returns one.
package mapping
