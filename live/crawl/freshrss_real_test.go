package crawl

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const freshAnswers = "testdata/freshrss.json"

// text is an answer that a real FreshRSS has given.
type text struct {
	Status int
	Body   string
}

// freshrss is a real one, in a directory of its own, whose clock goes fast.
type freshrss struct {
	*exec.Cmd
	dir, address string
	clock        fastClock
}

func (m *freshrss) cli(t *testing.T, script string, args ...string) {
	out, err := exec.Command("php", append([]string{filepath.Join(m.dir, "cli", script)}, args...)...).CombinedOutput()
	if err != nil && script != "import-for-user.php" { // it fails where a feed does
		t.Fatalf("%s: %v %s", script, err, out)
	}
}

// start serves it, from a time on.
func (m *freshrss) start(t *testing.T, shown time.Time) {
	free := strings.TrimPrefix(m.address, "http://")
	m.Cmd = exec.Command("php", "-S", free, "-t", filepath.Join(m.dir, "p"))
	m.Env = append(os.Environ(), "PHP_CLI_SERVER_WORKERS=4", "TZ=UTC", "FAKETIME_DONT_FAKE_MONOTONIC=1",
		"LD_PRELOAD="+must(filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1"))[0],
		fmt.Sprintf("FAKETIME=@%s x%d", shown.UTC().Format("2006-01-02 15:04:05"), m.clock.speed))
	m.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	check(m.Start())
	for range 600 {
		if res, err := http.Get(m.address + "/api/greader.php"); err == nil {
			at := must(http.ParseTime(res.Header.Get("Date")))
			m.clock.real, m.clock.shown = time.Now(), at
			res.Body.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("FreshRSS does not start")
}

func (m *freshrss) kill() {
	syscall.Kill(-m.Process.Pid, syscall.SIGKILL)
	m.Wait()
}

// TestRealFreshRSS: a real FreshRSS fetches 30 feeds when it is asked to, for a day of its clock,
// with a kill of either side: each of its entries is found once. .ci/freshrss runs it, with the
// source of FreshRSS.
func TestRealFreshRSS(t *testing.T) {
	source := os.Getenv("EPHEMERA_FRESHRSS")
	if source == "" {
		t.Skip("no FreshRSS here; .ci/freshrss runs this test with one")
	}
	const n, muted, day = 30, 29, 24 * time.Hour
	m := &freshrss{dir: filepath.Join(t.TempDir(), "freshrss"), clock: fastClock{speed: 150}}
	if out, err := exec.Command("cp", "-a", source, m.dir).CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	free := must(net.Listen("tcp", "127.0.0.1:0"))
	m.address = "http://" + free.Addr().String()
	free.Close()
	m.cli(t, "prepare.php")
	m.cli(t, "do-install.php", "--default-user", "alice", "--auth-type", "form", "--api-enabled",
		"--db-type", "sqlite", "--base-url", m.address)
	m.cli(t, "create-user.php", "--user", "alice", "--password", "secret123", "--api-password", "apisecret",
		"--token", "token")

	p := newPublisher(t)
	begin := time.Now().Add(-3 * day).Truncate(time.Hour)
	p.clock = func() time.Time { return begin }
	_, port, _ := net.SplitHostPort(p.Listener.Addr().String())
	at := func(k int) string { return fmt.Sprintf("http://127.1.0.%d:%s/feed/%d?a=1&b=2", k+1, port, k) }
	list := `<opml version="2.0"><body><outline text="News &amp; more">`
	for k := range n {
		list += fmt.Sprintf(`<outline type="rss" text="Feed %d" xmlUrl="%s"/>`,
			k, strings.ReplaceAll(at(k), "&", "&amp;"))
	}
	file := filepath.Join(t.TempDir(), "feeds.opml")
	check(os.WriteFile(file, []byte(list+"</outline></body></opml>"), 0o644))
	m.cli(t, "import-for-user.php", "--user", "alice", "--filename", file)
	db := filepath.Join(m.dir, "data/users/alice/db.sqlite")
	sql := func(text string) (rows []map[string]any) {
		code := `$d = new PDO("sqlite:".$argv[1]); echo json_encode($d->query($argv[2])->fetchAll(PDO::FETCH_ASSOC));`
		out, err := exec.Command("php", "-r", code, db, text).Output()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		check(json.Unmarshal(out, &rows))
		return rows
	}
	sql("delete from entry")
	sql("update feed set lastUpdate = 0, error = 0, attributes = '[]'")
	sql("delete from feed where url like '%github%'")
	sql(fmt.Sprintf("update feed set ttl = -3600 where url like '%%/feed/%d?%%'", muted))
	exec.Command("sh", "-c", "rm -f "+m.dir+"/data/cache/*").Run()
	m.start(t, begin)
	defer func() { m.kill() }()
	p.mu.Lock()
	p.asked, p.clock = map[int][]time.Time{}, func() time.Time { return m.clock.now() }
	p.mu.Unlock()

	state := filepath.Join(t.TempDir(), "state")
	open := func() *Crawler {
		return must(Open(context.Background(), Options{
			Reader: NewFreshRSS(m.address, "alice", "token", "apisecret"), Dir: state, PerHour: 20,
			Shortest: shortest, Longest: day, Now: func() time.Time { return m.clock.now() },
			Log: slog.New(slog.DiscardHandler),
		}))
	}
	c := open()
	pass := func(d time.Duration) {
		for end := m.clock.now().Add(d); m.clock.now().Before(end); time.Sleep(2 * time.Millisecond) {
			must(c.Tick())
		}
	}
	pass(day / 2)
	c.Wait()
	check(c.store.Close()) // as if it were killed
	c = open()
	pass(day / 4)
	now := m.clock.now()
	m.kill()
	pass(time.Hour)
	m.start(t, now.Add(time.Hour))
	pass(day/2 - day/4)
	defer func() { c.Close() }()
	c.Wait()
	requests := 0
	for k := range n {
		asked := p.asked[k]
		r := c.feeds[at(k)]
		if k == muted {
			if len(asked) > 0 || r != nil && r.listed {
				t.Errorf("the muted feed is asked for: %v", asked)
			}
			continue
		}
		requests += len(asked)
		for i := 1; i < len(asked); i++ {
			if d := asked[i].Sub(asked[i-1]); d < shortest-time.Minute { // seconds of its clock are ms
				t.Errorf("feed %d was asked for %v after %v", k, d, asked[i-1])
			}
		}
		rows := sql(fmt.Sprintf(
			"select count(*) as n from entry e join feed f on f.id = e.id_feed where f.url like '%%/feed/%d?%%'", k))
		had := int(rows[0]["n"].(float64))
		if r == nil || r.Items != had || had == 0 {
			t.Errorf("feed %d: %+v; FreshRSS has %d", k, r, had)
		}
	}
	t.Logf("%d requests in 25 hours of at most %d; %d items; half of them within %v",
		requests, 25*20, c.stats.Items, c.stats.Days[0].Quantile(.5))
	if requests < 250 || requests > 25*20+n {
		t.Errorf("%d requests", requests)
	}
	if *update {
		check(os.WriteFile(freshAnswers, m.answers(c.reader.(*FreshRSS).ids[at(0)]), 0o644))
	}
}

// answers returns what it answers, for tests without it.
func (m *freshrss) answers(id int64) []byte {
	all := map[string]text{}
	r := NewFreshRSS(m.address, "alice", "token", "apisecret")
	auth := "GoogleLogin auth=" + must(r.login(context.Background()))
	for _, q := range []struct{ name, path, auth, form string }{
		{"login", "/api/greader.php/accounts/ClientLogin", "", "Email=alice&Passwd=apisecret"},
		{"login refused", "/api/greader.php/accounts/ClientLogin", "", "Email=alice&Passwd=wrong"},
		{"list", "/api/greader.php/reader/api/0/subscription/list?output=json", auth, ""},
		{"unauthorized", "/api/greader.php/reader/api/0/subscription/list?output=json", "GoogleLogin auth=alice/1", ""},
		{"entries", fmt.Sprintf("/api/greader.php/reader/api/0/stream/contents/feed/%d?r=o&n=2&ot=1", id), auth, ""},
		{"fever", "/api/fever.php?api&feeds", "", "api_key=eb5b7b1ba4c2a3dd2e9cd4e60c5a9b2f"},
		{"opml", "/i/?a=opml&get=a&user=alice&token=token", "", ""},
		{"refresh", fmt.Sprintf("/i/?c=feed&a=actualize&ajax=1&id=%d&user=alice&token=token", id), "", ""},
		{"refused", fmt.Sprintf("/i/?c=feed&a=actualize&ajax=1&id=%d&user=alice&token=wrong", id), "", ""},
	} {
		r := must(http.NewRequest(http.MethodGet, m.address+q.path, nil))
		if q.name == "fever" {
			q.form = "api_key=" + feverKey("alice", "apisecret")
		}
		if q.form != "" {
			r = must(http.NewRequest(http.MethodPost, m.address+q.path, strings.NewReader(q.form)))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		r.Header.Set("Authorization", q.auth)
		res, err := http.DefaultTransport.RoundTrip(r)
		check(err)
		body := must(io.ReadAll(res.Body))
		res.Body.Close()
		plain := strings.ReplaceAll(string(body), m.address, "http://reader.test")
		all[q.name] = text{res.StatusCode, few(q.name, plain)}
	}
	return must(json.MarshalIndent(all, "", "\t"))
}

// few returns an answer with two feeds.
func few(name, body string) string {
	var all map[string]any
	switch {
	case json.Unmarshal([]byte(body), &all) == nil && name != "entries":
		for _, list := range []string{"subscriptions", "feeds"} {
			if feeds, is := all[list].([]any); is {
				all[list] = feeds[:2]
			}
		}
		delete(all, "feeds_groups")
		return string(must(json.Marshal(all)))
	case name == "opml":
		lines, n := "", 0
		for line := range strings.Lines(body) {
			if strings.Contains(line, "xmlUrl") {
				n++
			}
			if n <= 2 || !strings.Contains(line, "xmlUrl") {
				lines += line
			}
		}
		return lines
	}
	return body
}
