package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/remote"
)

// forever is longer than any wait: a hundred years.
const forever = 100 * 365 * 24 * time.Hour

func dialOptions(c config.Cluster) (*remote.Options, error) {
	o := &remote.Options{ConnectTimeout: max(c.PatienceSecs.Duration(), time.Second)}
	if c.PatienceSecs == 0 {
		o.ConnectTimeout = forever
	} else {
		o.CloseTimeout = min(remote.DefaultCloseTimeout, c.PatienceSecs.Duration()/2)
	}
	if !c.TLS && c.TLSServerName == "" && c.TLSCA == "" && c.TLSCert == "" {
		return o, nil
	}
	o.TLS = &tls.Config{ServerName: c.TLSServerName}
	if c.TLSCA != "" {
		pem, err := os.ReadFile(c.TLSCA)
		if err != nil {
			return nil, fmt.Errorf("cluster.tls_ca: %w", err)
		}
		o.TLS.RootCAs = x509.NewCertPool()
		if !o.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("cluster.tls_ca: %s holds no certificate in PEM", c.TLSCA)
		}
	}
	if c.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("cluster.tls_cert: %w", err)
		}
		o.TLS.Certificates = []tls.Certificate{pair}
	}
	return o, nil
}
