package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/trainerd/trainerd/trainerd/remote"
)

// masterLocal is the master string of the embedded runtime that is served.
const masterLocal = "local"

// Values of cluster.checkpoint_via.
const (
	viaServer = "server"
	viaClient = "client"
)

// Values of cluster.listen_files.
const (
	filesLogdir = "logdir"
	filesAll    = "all"
)

// maxTasks is more than any cluster has.
const maxTasks = 1 << 16

// IsRemote reports whether the model runs on a TensorFlow server.
func (c *Config) IsRemote() bool { return c.Master != "" && !c.IsServed() }

// IsServed reports whether the model runs in this process, which serves it to other
// clients of TensorFlow's MasterService.
func (c *Config) IsServed() bool { return c.Master == masterLocal }

func (v *Validator) cluster() {
	c := v.config
	cl := c.Cluster
	v.master(c.Master)
	v.Require(cl.PSTasks >= 0 && cl.PSTasks <= maxTasks, "cluster.ps_tasks", fmt.Sprintf("want 0 (none) to %d, got %d", maxTasks, cl.PSTasks), "")
	v.Require(cl.Workers >= 1 && cl.Workers <= maxTasks, "cluster.workers", fmt.Sprintf("want 1 to %d, got %d", maxTasks, cl.Workers), "")
	v.Require(cl.Task >= 0 && cl.Task < max(cl.Workers, 1), "cluster.task", fmt.Sprintf("want 0 to %d, one less than cluster.workers, got %d", cl.Workers-1, cl.Task), "")
	v.Require(cl.CheckpointVia == viaServer || cl.CheckpointVia == viaClient, "cluster.checkpoint_via", fmt.Sprintf("there is no way %q", cl.CheckpointVia), `want "server" or "client"`)
	v.Require(cl.PatienceSecs >= 0 && cl.PatienceSecs <= maxSeconds, "cluster.patience_secs", fmt.Sprintf("want 0 (forever) to %.0f seconds, got %v", float64(maxSeconds), float64(cl.PatienceSecs)), "")
	v.Require((cl.TLSCert == "") == (cl.TLSKey == ""), "cluster.tls_key", "only one of cluster.tls_cert and cluster.tls_key is set", "set both, or neither")
	if !c.IsRemote() {
		for _, key := range []string{"ps_tasks", "workers", "task", "checkpoint_via", "patience_secs", "tls", "tls_server_name", "tls_ca", "tls_cert", "tls_key"} {
			v.Require(!c.IsSet("cluster."+key), "cluster."+key, "needs a TensorFlow server", `set master = "grpc://host:port", or remove it`)
		}
	}
	v.Require(!cl.Sync || !c.IsGraph(), "cluster.sync", "is for model families", "wrap the optimizer of the graph in tf.compat.v1.train.SyncReplicasOptimizer before you export it, or remove it")
	v.Require(!c.IsGraph() || !c.IsSet("cluster.replicas_to_aggregate"), "cluster.replicas_to_aggregate", "is for model families", "give it to SyncReplicasOptimizer before you export the graph, or remove it")
	v.Require(cl.Sync || !c.IsSet("cluster.replicas_to_aggregate"), "cluster.replicas_to_aggregate", "is for workers that wait for each other", "set sync = true, or remove it")
	v.Require(cl.ReplicasToAggregate >= 0 && cl.ReplicasToAggregate <= maxTasks, "cluster.replicas_to_aggregate", fmt.Sprintf("want 1 to %d, got %d", maxTasks, cl.ReplicasToAggregate), "")
	v.Require(c.IsServed() || !c.IsSet("cluster.listen"), "cluster.listen", "is for another master", `set master = "local", or remove it`)
	v.listen(cl)
}

func (v *Validator) master(master string) {
	if !v.config.IsRemote() {
		return
	}
	if !strings.Contains(master, "://") && !strings.HasPrefix(master, "unix:") {
		v.Require(false, "master", fmt.Sprintf("there is no runtime %q", master), `want "" for the embedded runtime, "local" to serve it, "grpc://host:port" or "unix:PATH"`)
		return
	}
	_, err := remote.ParseTarget(master)
	var target *remote.TargetError
	if errors.As(err, &target) {
		v.Require(false, "master", fmt.Sprintf("%q: %s", master, target.Reason), "")
	}
}

func (v *Validator) listen(cl Cluster) {
	v.Require(v.config.IsServed() || !cl.ListenPublic, "cluster.listen_public", "is for another master", `set master = "local", or remove it`)
	v.Require(cl.ListenFiles == "" || cl.ListenFiles == filesLogdir || cl.ListenFiles == filesAll, "cluster.listen_files",
		fmt.Sprintf("is %q", cl.ListenFiles), `want "logdir" or "all"`)
	v.Require(v.config.IsServed() || cl.ListenFiles == "", "cluster.listen_files", "is for another master", `set master = "local", or remove it`)
	if cl.ListenPublic {
		v.Require(canListen(cl.Listen), "cluster.listen", fmt.Sprintf("%q is not an address to listen at", cl.Listen), "want HOST:PORT, :PORT or unix:PATH")
		return
	}
	v.Require(isPrivate(cl.Listen), "cluster.listen", fmt.Sprintf("%q is not an address of this machine alone", cl.Listen),
		"anyone who reaches it can run ops that read and write files; want 127.0.0.1:PORT, [::1]:PORT or unix:PATH, or set listen_public = true")
}

// canListen reports whether an address is of the form that cluster.Listen takes.
func canListen(addr string) bool {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return path != ""
	}
	_, _, err := net.SplitHostPort(addr)
	return err == nil
}

// isPrivate reports whether no other machine can reach an address.
func isPrivate(addr string) bool {
	if strings.HasPrefix(addr, "unix:") || !canListen(addr) {
		return canListen(addr)
	}
	host, _, _ := net.SplitHostPort(addr)
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
