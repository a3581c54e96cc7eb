// Package alert watches the curves of a log directory and says when a rule holds:
// that a loss is NaN, that an accuracy stalls, that a run is silent.
//
//	rule  = what ("is NaN" | "is Inf" | "is not finite"
//	            | ("<" | "<=" | ">" | ">=") number
//	            | "stalls" [ "for" ] span
//	            | "stops rising" [ "for" ] span | "stops falling" [ "for" ] span
//	            | ("rises" | "falls") "by" number [ "%" ] "over" span
//	            | "has no new point for" duration)
//	      | "run is silent for" duration
//	what  = a tag, as it is or in double quotes | "/" regular expression "/"
//	span  = duration | number "steps"
//
// A duration is one of package time, with "d" for days too.
//
// # Once
//
// A [Watcher] reports each rule once for each run, however often it holds and whichever of several
// tags it is about. What it has reported is kept in a separate file, a [State], never in the log
// directory, so restarts repeat nothing. A new run that took the name of an old one counts as a new
// run. Delivery is at least once: if the process dies between a delivery and writing the state, the
// next one repeats the delivery.
//
// # Concurrency
//
// Everything happens in the goroutine that calls Watch. Nothing is started except the commands that
// [Exec] runs, which have ended when it returns.
package alert
