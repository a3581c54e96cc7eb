// Package target opens sessions for master strings, the targets of
// TensorFlow's tf.Session:
//
//	""                  a session of this process
//	"local"             a session of this process whose variables other
//	                    processes reach through TensorFlow's MasterService
//	"grpc://host:port"  a session on a TensorFlow server
//	"unix:PATH"         a session on a server at a socket of this machine
//
// A Supervisor calls [Open]:
//
//	sv := &trainerd.Supervisor{MetaGraph: meta, Open: target.Open, Master: master, Logdir: logdir}
package target
