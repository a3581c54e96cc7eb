// Package hook has the interface of hooks, which take part in a training, and
// the ready-made ones of TensorFlow's basic_session_run_hooks.
//
// A [Hook] is called at the beginning of a run, after each step and at the end.
// A [RunHook] is also called around each call of the training's session, and adds
// feeds, fetches, targets and options to it. An [Attacher] gets its [Run], with
// which it reads the global step, writes events that survive a full disk, and
// requests the end of the training.
//
//	sv.Hooks = []hook.Hook{
//		&hook.StopAtStep{LastStep: 10000},
//		&hook.SummarySaver{Trigger: hook.Trigger{Steps: 100}},
//		&hook.NaNGuard{Loss: func() float64 { return loss }},
//	}
//
// Hooks are called only from the goroutine of the training, so they need no locks;
// a hook may be part of one run at a time.
package hook
