// Package remote runs a graph on TensorFlow's own distributed runtime: it is a
// client of the MasterService that every tf.distribute.Server answers. A
// [Session] is a [session.Session], so whatever trains on the embedded runtime
// can train on parameter servers, workers and GPUs with another master string:
//
//	client, err := remote.Dial(ctx, "grpc://10.0.0.7:2222", nil)
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//	sess, err := client.NewSession(ctx, meta.GetGraphDef(), nil)
//	if err != nil {
//		return err
//	}
//	defer sess.Close()
//	out, err := sess.Run(ctx, feeds, []string{"loss"}, []string{"train"})
//
// # Wire
//
// The protocol is gRPC over HTTP/2 without encryption, with the messages of
// proto/master.proto. What a server does, as measured on TensorFlow 2.21:
//
//	path             /tensorflow.MasterService/<Method>; the service's .proto file says package
//	                 tensorflow.grpc, but that path is answered with UNIMPLEMENTED
//	CreateSession    waits for every server of the cluster that device_filters admit, without end;
//	                 so does ListDevices without a session
//	ExtendSession    must present the graph's version, which counts from 0, and gives the next one;
//	                 a stale version is ABORTED "Current version is 1 but caller expected 0."
//	RunStep          feeds and fetches are "node:output", targets "node"; a fetch may be asked for
//	                 once and may not be fed; each new set of names is compiled and kept until the
//	                 session ends
//	timeout_in_ms    of RunStep, and operation_timeout_in_ms of ConfigProto, are the client's to keep
//	request_id       a step whose number was seen before is refused, so none runs twice
//	CloseSession     waits for the session's steps, and some 10 s for a server that is gone
//	store_errors_in_response_body
//	                 RunStep only: errors come whole; in gRPC's own status they end after 3072 bytes
//	tensors          travel as tensor_content; strings as string_val; a message holds less than 2 GiB
//	variables        live in the server, not in the session: all its sessions see the same ones
//	                 (unless ConfigProto.isolate_session_state), and they outlive each session
//	files            that a graph's ops read and write are on the server's disk
//
// This client never sends [Reset] on its own; see Reset.
//
// # Connection
//
// One [Client] is one connection to one server. If it breaks, it is
// reestablished in the background, at once and then with growing pauses
// ([Options.MaxReconnectDelay]); until then calls fail at once with
// UNAVAILABLE. [Client.Wait] waits for the server. A call is never repeated
// automatically once the server may have seen it, since a repeated step may
// train twice. TCP keep-alive notices a dead peer within a minute or so, even
// in the middle of an endless step.
//
// # Errors
//
// Every error of a call is a [*session.OpError]: with the node and op if
// TensorFlow's message names them, otherwise with the server's address. A
// failure on another server of the cluster names it:
// "From /job:ps/replica:0/task:0: ...". If ctx ended, the error also matches
// context.Canceled or context.DeadlineExceeded, and its cause.
//
//	code                  when                                            what to do
//	ABORTED               the session is gone: the server, or one behind  new session, restore
//	                      it, restarted, or Reset was sent
//	UNAVAILABLE           the server, or one that it needs, is out of reach;  Client.Wait, then a new
//	                      whether a step in flight had effect is unknown  session, restore
//	OUT_OF_RANGE          the inputs are exhausted                        end the run
//	CANCELLED             ctx was cancelled; the session or client was    nothing
//	                      closed; an op waited for a queue that was
//	DEADLINE_EXCEEDED     ctx timed out, or operation_timeout_in_ms did   as the caller decides
//	FAILED_PRECONDITION   a variable was never initialised; an extension  initialise; new session
//	                      of the graph met another one
//	NOT_FOUND             the graph has no such node; a file is missing   correct the call
//	INVALID_ARGUMENT      the graph or values do not fit                  correct the call
//	RESOURCE_EXHAUSTED    memory; a message beyond the limit              smaller tensors
//	UNAUTHENTICATED       one side does not take the other's certificate  correct Options.TLS
//	UNIMPLEMENTED         no TensorFlow server is there, or it lacks the  correct the address or
//	                      op                                              the graph
//
// # Concurrency
//
// Client, Session and Callable are safe for concurrent use: steps of one session
// run concurrently, as on the server. The calls of one [PartialRun] run one
// after another. A ctx bounds only its call; when it ends, the server is
// notified and abandons the step. Close of a Session ends its calls in
// flight and takes no longer than [Options.CloseTimeout].
//
// The package itself starts no goroutines; those of the gRPC connection end
// with [Client.Close].
//
// # Security
//
// A MasterService gives access to its machine: anyone who reaches the port can run
// ops that read and write files, and TensorFlow has no password and no encryption.
// Servers belong on loopback or on a private network, or behind a unix socket,
// unix:PATH. For a tunnel there are [Options.TLS], with client certificates if
// required, and [Options.DialContext]. HTTP proxies from the environment are not
// used.
package remote
