// Package master serves the embedded runtime as TensorFlow's MasterService, like
// a tf.distribute.Server with one device, the CPU of this process. Any client of
// that service can then train on it, or look at the variables of a training in
// progress: the client of [trainerd/remote], and a
// Python program with tf.compat.v1.Session("grpc://127.0.0.1:PORT").
//
//	resources := new(runtime.Resources)
//	sess, err := runtime.New(meta.GetGraphDef(), &runtime.Options{Resources: resources})
//	...
//	server := master.New(&master.Options{Runtime: runtime.Options{Resources: resources}})
//	ln, err := net.Listen("tcp", "127.0.0.1:0")
//	...
//	go server.Serve(ln) // ends with server.Close
//
// # What is served
//
//	CreateSession     a graph, and a session on it; ConfigProto.isolate_session_state gives it
//	                  its own variables, all others see those of the server
//	ExtendSession     more nodes; a stale version of the graph is ABORTED
//	RunStep           feeds, fetches, targets; errors in the body if the request asks for it;
//	                  RunOptions.timeout_in_ms is kept by the server too
//	MakeCallable, RunCallable, ReleaseCallable
//	ListDevices       the one device
//	CloseSession      ends the session's steps; the variables stay
//	Reset             ends all sessions and drops the variables, only if Options.AllowReset
//	PartialRunSetup   UNIMPLEMENTED: the embedded runtime runs a step whole
//
// An error has the code of the op's error, and a message that names the node
// in TensorFlow's way, so that clients find it.
//
// # Concurrency
//
// Everything is safe for concurrent use; steps of all sessions, including
// those of the process's own [runtime.Session], are atomic with respect to
// each other. Serve owns its goroutines; all have ended when Close returns.
//
// # Security
//
// Anyone who reaches the port can run any op with the rights of the process.
// There is no password. Listen only on loopback or a unix socket, or set
// Options.Runtime.FilesWithin, so that clients' ops read and write files only
// in those directories. Clients can still change the variables, and put
// elements into the queues that the process shares with them.
//
// Options limits what one client may use: the size of a request, the time and
// nodes of a step, the memory of a session. A session ends when its clients are
// gone.
//
// [trainerd/remote]: https://pkg.go.dev/github.com/trainerd/trainerd/trainerd/remote
package master
