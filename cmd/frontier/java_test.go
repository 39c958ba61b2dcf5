package main

import (
	"net"
	"os"
	"os/exec"
	"testing"
)

// TestJava holds that a client with the stubs which URLFrontier publishes is served.
func TestJava(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	if _, err := exec.LookPath("mvn"); err != nil && os.Getenv("EPHEMERA_REQUIRE_ALL") == "" {
		t.Skip("Java's client is not tested: ", err)
	}
	address := freeAddress(t)
	launch(t, address, "-dir", t.TempDir())
	_, port, _ := net.SplitHostPort(address)
	c := exec.Command("mvn", "-q", "-B", "-f", "java/pom.xml", "-Dout="+t.TempDir(), "-DargLine=-Dfrontier.port="+port, "test")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
