// Package dataserver serves a log directory to TensorBoard: it implements the
// gRPC service tensorboard.data.TensorBoardDataProvider, as TensorBoard's own
// data server does, from an index of the events files.
//
//	server, err := dataserver.New(&dataserver.Options{Logdir: "logs"})
//	...
//	ln, err := net.Listen("tcp", "localhost:0")
//	...
//	err = server.Serve(ctx, ln) // until ctx ends
//
// TensorBoard uses a running server with
//
//	tensorboard --grpc_data_provider=localhost:PORT
//
// and starts the command tfevents as one if TENSORBOARD_DATA_SERVER_BINARY
// names it.
//
// # What is shown
//
// All points that [tfevents.PurgeExact] keeps: as soon as the SessionLog START of a resumed
// training is in the file, its points replace those that it repeats. Every point is kept as long as
// all fit into Options.MaxMemory; beyond that the longest series lose every other point, except
// extremes. A response has at most as many points as requested, including the first, the last and
// the extremes. Scalars may be of any numeric type. The record checksums are verified; reading
// continues after damage, and waits at an incomplete record. Runs below a directory with a file
// named .hide are not shown.
//
// # What is read, and when
//
// An index holds about ten bytes for each scalar, and the position of everything
// else in the files, which is read on demand. Each file is open only while it is
// read. The directories are watched if the system can report changes; otherwise,
// and on network file systems, they are scanned every Options.Reload. If the
// last file of a run has grown, only the new part is read. If a file was
// replaced or is gone, or if any file but the last has grown, the whole run is
// read again, and replaces the old one when that is done.
//
// # Concurrency
//
// Serve owns all goroutines: one for the directories, one for each connection
// and, during a reload, one for each processor. All have ended when it
// returns. A request sees a run in the state after one reload.
//
// # Security
//
// A client can read the contents of the log directory's events files, and no other file. There is
// no password: listen on the loopback interface. Connections, calls and the size of requests are
// bounded. At most four answers above 1 MiB are made and sent at a time; the others wait in turn. A
// client that does not read such an answer within half a minute, plus a second for each MiB, loses
// its connection as soon as another answer waits.
package dataserver
