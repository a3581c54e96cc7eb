package dataserver

import (
	"google.golang.org/grpc"

	"github.com/trainerd/trainerd/internal/grpcmethod"
	"github.com/trainerd/trainerd/proto/tbdata"
)

// ServiceName is the name of the service on the wire.
const ServiceName = "tensorboard.data.TensorBoardDataProvider"

// service lists the methods; each decodes its request and passes it on.
var service = grpc.ServiceDesc{ServiceName: ServiceName, HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{
		grpcmethod.New("GetExperiment", (*Server).getExperiment),
		answers("ListPlugins", (*Server).listPlugins),
		answers("ListRuns", (*Server).listRuns),
		answers("ListScalars", (*Server).listScalars),
		answers("ReadScalars", (*Server).readScalars),
		answers("ListTensors", (*Server).listTensors),
		answers("ReadTensors", (*Server).readTensors),
		answers("ListBlobSequences", (*Server).listBlobSequences),
		answers("ReadBlobSequences", (*Server).readBlobSequences),
	},
	Streams: []grpc.StreamDesc{{StreamName: "ReadBlob", ServerStreams: true, Handler: readBlobHandler}},
}

func readBlobHandler(srv any, stream grpc.ServerStream) error {
	req := new(tbdata.ReadBlobRequest)
	if err := stream.RecvMsg(req); err != nil {
		return err
	}
	return srv.(*Server).readBlob(req, stream)
}
