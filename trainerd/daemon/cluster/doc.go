// Package cluster connects a job to the TensorFlow servers that hold its model.
//
// A [Task] is this process among those that train one model together. It makes sessions
// ([Task.Connect]): the graph is placed on the servers, and its queues, readers and iterators get a
// container of their own. One of the tasks is the chief, which initialises and saves the model.
//
// # What is on the servers
//
// The chief tags the model with the ID of its run, so that it can tell its own model from one that
// another job has left there; see model_tag.go. If workers wait for each other, the servers also
// hold the progress of each worker, so that the others can say for whom they wait. [Replicas] is
// this process's part in such a training.
//
// # Calls that take long
//
// Servers may freeze, or be out of reach without notice. Each call is watched:
// one that takes long is reported with the reason, and ended when the patience
// that the config grants is over.
//
// # Goroutines
//
// A Task belongs to the goroutine that trains. Each call has a goroutine that watches it, and that
// has ended when the call returns; the chief of replicas has one that applies updates, from
// [Replicas.Start] until the function that this returns is called.
package cluster
