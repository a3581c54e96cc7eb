package daemon

import (
	"errors"
	"fmt"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/session"
)

// explainServer adds what to do to the errors of TensorFlow's servers if the model there, or the
// checkpoint that they restore, is not the job's. Servers keep variables by name when a session
// ends, so the variables of another model that was trained there collide with this one.
func explainServer(c *config.Config, err error) error {
	e, ok := errors.AsType[*session.OpError](err)
	switch {
	case !ok || !c.IsRemote():
		return err
	case e.Code == tfpb.Code_INVALID_ARGUMENT && (e.Op == "Assign" || e.Op == "AssignVariableOp"):
		return fmt.Errorf("%w; the server may still have a variable of this name from another model: restart the server", err)
	case e.Code == tfpb.Code_NOT_FOUND && strings.Contains(e.Message, "not found in checkpoint"):
		return fmt.Errorf("%w; the checkpoint is of a different model: use a new logdir for the changed model, or change the model back", err)
	}
	return err
}
