package frontier

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestPage holds that a browser shows crawls and what is thought of learned URLs.
func TestPage(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil && os.Getenv("EPHEMERA_REQUIRE_ALL") == "" {
		t.Skip(err)
	}
	s := serve(t, LearnOptions{PerHour: 1})
	s.put(discovered("http://h/"), report("http://l/<b>", 0, []time.Time{s.server.opt.Now()}))
	web := httptest.NewServer(s.server.HTTP())
	defer web.Close()
	out, err := exec.Command(browser, "--headless", "--no-sandbox", "--disable-gpu", "--timeout=5000", "--user-data-dir="+t.TempDir(), "--dump-dom", web.URL).Output()
	for _, want := range []string{"<td>DEFAULT</td><td>1</td><td>1</td><td>1</td><td>0</td>", "L: learned", "http://l/&lt;b&gt;"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("%v: no %q in %s", err, want, out)
		}
	}
}
