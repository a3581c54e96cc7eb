// Package dataserver serves a log directory to TensorBoard: it answers the gRPC
// service tensorboard.data.TensorBoardDataProvider, as the data server that comes
// with TensorBoard does, from an index of the events files.
//
//	server, err := dataserver.New(&dataserver.Options{Logdir: "logs"})
//	...
//	ln, err := net.Listen("tcp", "localhost:0")
//	...
//	err = server.Serve(ctx, ln) // until ctx ends
//
// TensorBoard asks such a server itself with
//
//	tensorboard --grpc_data_provider=localhost:PORT
//
// and the command tfevents is one that TensorBoard starts by itself, if
// TENSORBOARD_DATA_SERVER_BINARY names it.
//
// # What is shown
//
// All points that [tfevents.PurgeExact] keeps: a resumed training takes the
// place of the points that it writes again as soon as its SessionLog START is
// there. Nothing is sampled when it is read as long as it fits into
// Options.MaxMemory; then the longest series lose every other point, extremes
// excepted. An answer holds as many points as the request wants at most, among
// them the first, the last and the extremes.
// Scalars may be of any numeric type. The record checksums are tested; reading
// continues after damage, and waits at a record that is not complete. Runs below
// a directory with a file named .hide are not shown.
//
// # What is read, and when
//
// An index holds some ten bytes of each scalar, and the place of all else in the
// files, which is read when it is asked for. Each file is open only while it is
// read. The directories are watched where the system can report changes;
// otherwise, and on network file systems, they are looked through every
// Options.Reload. Of a run whose last file has grown, only the new part is read.
// If a file was replaced or is gone, or if one but the last has grown, the run
// is read again as a whole, and takes the old one's place when that is done.
//
// # Concurrency
//
// Serve owns all goroutines: one for the directories, one for each connection
// and, while a reload runs, one for each processor. All have ended when it
// returns. Requests see a run as one reload left it.
//
// # Security
//
// A client can read what the log directory's events files hold, and no other
// file. Nothing asks for a password: listen on the loopback interface. Connections,
// calls and the size of requests are bounded.
package dataserver
