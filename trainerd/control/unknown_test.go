package control

import (
	"strings"
	"testing"
)

// TestUnknownRequests answers requests that there are not as it answers all others: with an
// error in JSON, which says what there is.
func TestUnknownRequests(t *testing.T) {
	m, job := begun(t)
	ln, url := tcp(t)
	serve(t, Options{Monitor: m}, ln)
	for _, tt := range []struct {
		method, path string
		status       int
		want         string
	}{
		{"GET", "/", 404, "there is no /; there are /healthz, /readyz, /metrics, /v1/status"},
		{"GET", "/job1/metrics", 404, "there is no /job1/metrics"},
		{"GET", "/v1/save", 405, "/v1/save wants POST, not GET"},
		{"DELETE", "/v1/status", 405, "/v1/status wants GET, not DELETE"},
		{"PUT", "/v1/nothing", 404, "there is no /v1/nothing"},
	} {
		status, body := request(t, tt.method, url+tt.path, "")
		if status != tt.status || !strings.HasPrefix(body, `{"error":"`+tt.want) {
			t.Errorf("%s %s: status %d, %s", tt.method, tt.path, status, body)
		}
	}
	if status, body := request(t, "HEAD", url+"/healthz", ""); status != 200 || body != "" {
		t.Errorf("HEAD /healthz: status %d, %s", status, body)
	}
	if len(job.asked) > 0 {
		t.Errorf("the job was asked for %v", job.asked)
	}
}
