package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ephemera/cmd/internal/clitest"
	pb "ephemera/live/frontier/urlfrontier"
)

// TestDeployedFlags: the calls of the command in deploy are such that it takes.
func TestDeployedFlags(t *testing.T) {
	unit := string(must(os.ReadFile("deploy/frontier.service")))
	image := string(must(os.ReadFile("deploy/Dockerfile")))
	compose := string(must(os.ReadFile("deploy/compose.yaml")))
	array := func(text, after string) (args []string) {
		_, rest, _ := strings.Cut(text, after)
		rest, _, _ = strings.Cut(rest[strings.Index(rest, "["):], "\n")
		if err := json.Unmarshal([]byte(rest), &args); err != nil {
			t.Fatalf("what follows %q: %v", after, err)
		}
		return args
	}
	_, start, _ := strings.Cut(unit, "ExecStart=")
	start, _, _ = strings.Cut(start, "\n")
	entry := array(image, "ENTRYPOINT")
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"compose.yaml", slices.Concat(entry[1:], array(compose, "command:"))},
		{"health check of the image", array(image, "HEALTHCHECK")[1:]},
		{"image", entry[1:]},
		{"unit", strings.Fields(start)[1:]},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var set settings
			if done, err := set.parse(tt.args, io.Discard); done || err != nil || len(tt.args) == 0 {
				t.Errorf("%q: %v", tt.args, err)
			}
		})
	}
}

// TestUnit: systemd takes the unit.
func TestUnit(t *testing.T) { clitest.Units(t, "deploy/*.service") }

// query is one of the dashboard's.
var query = regexp.MustCompile(`"expr": ("(?:[^"\\]|\\.)*")`)

// TestDashboard: a Prometheus that reads the metrics of a service answers each query of the
// dashboard with something.
func TestDashboard(t *testing.T) {
	if _, err := exec.LookPath("prometheus"); err != nil && os.Getenv("EPHEMERA_REQUIRE_ALL") == "" {
		t.Skip("no Prometheus is asked: ", err)
	}
	t.Parallel()
	s := launch(t, t.TempDir(), "-learn", "pages:60", "-learn", "feeds:60")
	for _, fetch := range []struct{ crawl, key, value string }{
		{"feeds", "ephemera.items", fmt.Sprint(time.Now().Unix())},
		{"pages", "signature", "a"}, {"pages", "signature", "b"},
	} {
		item := discovered("http://" + fetch.crawl + "/")
		info := item.GetDiscovered().Info
		info.CrawlID = fetch.crawl
		info.Metadata = map[string]*pb.StringList{fetch.key: {Values: []string{fetch.value}}}
		item.Item = &pb.URLItem_Known{Known: &pb.KnownURLItem{Info: info}}
		puts := must(s.PutURLs(t.Context()))
		puts.Send(item)
		must(puts.Recv())
	}
	put(t, s, 0, 100, 10, 0)
	take(t, s, 10, &pb.GetParams{MaxQueues: 10, MaxUrlsPerQueue: 1, Item: &pb.GetParams_CrawlID{CrawlID: "DEFAULT"}})

	dir, address := t.TempDir(), freeAddress()
	config := strings.Replace(string(must(os.ReadFile("deploy/prometheus.yaml"))), "frontier:7072", s.page, 1)
	config = strings.Replace(config, "15s", "200ms", 1)
	file := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	prometheus := exec.Command("prometheus", "--config.file="+file, "--storage.tsdb.path="+dir+"/data",
		"--web.listen-address="+address, "--log.level=error")
	prometheus.Stderr = os.Stderr
	if err := prometheus.Start(); err != nil {
		t.Fatal(err)
	}
	defer prometheus.Wait()
	defer prometheus.Process.Kill()
	ask := func(q string) (results int, err error) {
		answer, err := http.Get("http://" + address + "/api/v1/query?query=" + url.QueryEscape(q))
		if err != nil {
			return 0, err
		}
		defer answer.Body.Close()
		var a struct {
			Error string
			Data  struct{ Result []any }
		}
		if err := json.NewDecoder(answer.Body).Decode(&a); err != nil || a.Error != "" {
			return 0, fmt.Errorf("%s %v", a.Error, err)
		}
		return len(a.Data.Result), nil
	}
	for n, wait := 0, 0; n == 0; n, _ = ask("rate(frontier_getURLs_total[1m])") {
		if time.Sleep(100 * time.Millisecond); wait > 600 {
			t.Fatal("Prometheus does not read the metrics")
		}
		wait++
	}
	text := string(must(os.ReadFile("deploy/grafana.json")))
	if !json.Valid([]byte(text)) {
		t.Fatal("grafana.json is no JSON")
	}
	found := query.FindAllStringSubmatch(text, -1)
	for _, m := range found {
		var q string
		if err := json.Unmarshal([]byte(m[1]), &q); err != nil {
			t.Fatal(err)
		}
		q = strings.ReplaceAll(q, "$__rate_interval", "1m")
		for job, none := range map[string]bool{"frontier": false, "other": true} {
			q := strings.ReplaceAll(q, "$job", job)
			if n, err := ask(q); (n == 0) != none || err != nil {
				t.Errorf("%s has %d results: %v", q, n, err)
			}
		}
	}
	if len(found) < 20 {
		t.Errorf("there are %d queries", len(found))
	}
}
