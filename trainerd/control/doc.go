// Package control lets people and programs watch a running training, and
// steer it.
//
// A [Monitor] receives the progress of the training. A [Server] answers for it
// over HTTP, on a unix socket or, if asked to, on TCP:
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
// Answers are JSON but for /metrics and profiles; what fails is
// {"error": "..."}: 400 for what makes no sense, 409 for what cannot be done
// now. [Client] speaks all this.
//
// # Who may
//
// The unix socket has mode 0600: it is for the user of the daemon and for root.
// On TCP anyone who reaches the port may do anything, so there the address is
// of the loopback, and names of it alone are accepted in requests, or every
// request needs a token, as in "Authorization: Bearer TOKEN". Requests from
// pages of browsers are refused.
//
// # Goroutines
//
// The package starts none but those that net/http has for requests.
// [Server.Serve] returns after [Server.Shutdown], when all of them have ended.
package control
