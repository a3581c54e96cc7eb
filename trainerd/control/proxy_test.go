package control

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
)

// TestBehindProxy asks through a proxy that takes a prefix away: one that passes on the name
// by which it was asked itself is told what to do.
func TestBehindProxy(t *testing.T) {
	for _, c := range []struct {
		host, token string
		status      int
		answer      string
	}{
		{"train.example.com", "", 403, "have a proxy set that as the Host, or start the run with --token-file"},
		{"localhost", "", 200, `"step":1`},
		{"LOCALHOST:9090", "", 200, `"step":1`},
		{"[::1]:9090", "", 200, `"step":1`},
		{"localhost.example.com", "", 403, "not served"},
		{"train.example.com", "0123456789abcdef", 200, `"step":1`},
		{"localhost", "another token", 401, "send the token"},
	} {
		m, _ := begun(t)
		ln, base := tcp(t)
		o := Options{Monitor: m}
		if c.token != "" {
			o.Token = "0123456789abcdef"
		}
		serve(t, o, ln)
		target, err := url.Parse(base)
		if err != nil {
			t.Fatal(err)
		}
		proxy := httptest.NewServer(http.StripPrefix("/job1", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = c.host
			r.Out.Header.Set("Authorization", "Bearer "+c.token)
		}}))
		status, answer := request(t, "GET", proxy.URL+"/job1/v1/status", "")
		proxy.Close()
		if status != c.status || !strings.Contains(answer, c.answer) {
			t.Errorf("%s, %q: %d %s", c.host, c.token, status, answer)
		}
	}
}
