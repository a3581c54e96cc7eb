package daemon

import (
	"errors"
	"fmt"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/session"
)

// explainServer says what to do where a variable does not take the value that its own model
// has for it. TensorFlow's servers keep variables by their names when a session ends, so
// those of another model that was trained there meet this one.
func explainServer(c *config.Config, err error) error {
	e, ok := errors.AsType[*session.OpError](err)
	if !ok || !c.IsRemote() || e.Code != tfpb.Code_INVALID_ARGUMENT || e.Op != "Assign" && e.Op != "AssignVariableOp" {
		return err
	}
	return fmt.Errorf("%w; the server may still have a variable of this name from another model: restart the server", err)
}
