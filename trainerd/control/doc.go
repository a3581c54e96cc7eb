// Package control lets people and programs monitor and control a running
// training.
//
// A [Monitor] receives the progress of the training. A [Server] serves it over
// HTTP, on a unix socket and optionally on TCP:
//
//	GET  /v1/status                  a [Status]
//	POST /v1/save                    writes a checkpoint now; a [Saved]
//	POST /v1/pause, /v1/resume       between two steps
//	POST /v1/stop    {"now": false}  saves and ends; now: ends at once
//	POST /v1/set     {"key": "eval.steps", "value": "100"}
//	POST /v1/keep    {"step": 500}   no rotation deletes this checkpoint
//	POST /v1/note    {"text": "..."} a text in the events file
//	GET  /v1/logs?lines=100&follow=true
//	                                 lines of JSON from the run's log
//	GET  /healthz                    200, or 503 when the training hangs
//	GET  /readyz                     200 once the model is ready to be trained
//	GET  /metrics                    for Prometheus
//	GET  /debug/pprof/               if switched on
//
// Answers are JSON except for /metrics and profiles; errors are {"error":
// "..."}: 400 for an invalid request, 409 for one that is not possible now.
// [Client] implements all of it.
//
// # Access
//
// The unix socket has mode 0600: it is for the user of the daemon and for root.
// On TCP anyone who reaches the port may do anything, so either the address
// must be a loopback one, and only its names are accepted as the host of
// requests, or every request needs a token, as in "Authorization: Bearer
// TOKEN". Requests from web pages are refused.
//
// # Goroutines
//
// The only ones are those of net/http for requests. [Server.Serve] returns
// after [Server.Shutdown], when all of them have ended.
package control
