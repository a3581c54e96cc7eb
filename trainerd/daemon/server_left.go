package daemon

import (
	"errors"
	"fmt"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/session"
)

// explainServer says what to do about what TensorFlow's servers answer where the model there, or
// the checkpoint that they restore, is another than that of the job. They keep variables by their
// names when a session ends, so those of another model that was trained there meet this one.
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
