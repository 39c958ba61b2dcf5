//go:build unix

package replay

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ephemera/env"
)

// The tables that the exports of docs/recordings.md read, with the columns as the
// readers declare them: FreshRSS in app/SQL/install.sql.sqlite.php, Miniflux in
// internal/database/migrations.go, CommaFeed in its Liquibase changelogs 1.0, 1.2 and 4.2.
var readers = map[string]string{
	"db.sqlite": "create table feed (id integer primary key autoincrement not null, name varchar(191) not null);" +
		"create table entry (id bigint not null primary key, date int(11), id_feed integer references feed(id));" +
		"insert into feed values (1, 'one, two'), (2, 'line\nbreak');" +
		"insert into entry values (1, 1000000, 1), (2, 1003600, 2);",
	"miniflux": "create table feeds (id bigserial primary key, title text not null);" +
		"create table entries (id bigserial primary key, " +
		"feed_id bigint not null references feeds(id), published_at timestamp with time zone not null);" +
		"insert into feeds values (1, 'one, two'), (2, E'line\nbreak');" +
		"insert into entries values (1, 1, '1970-01-12 13:46:40+00'), (2, 2, '1970-01-12 20:16:40.25+05:30');",
	"commafeed": "create table FEEDS (id bigint primary key, url text not null);" +
		"create table FEEDENTRIES (id bigint primary key, updated timestamp, " +
		"feed_id bigint default 1 not null references FEEDS(id));" +
		"insert into FEEDS values (1, 'one, two'), (2, E'line\nbreak');" +
		"insert into FEEDENTRIES values (1, '1970-01-12 13:46:40', 1), (2, '1970-01-12 14:46:40.25', 2), (3, null, 1);",
}

// Each export of the page of recordings, run by the database of its reader, is a
// recording.
func TestExports(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a database server")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "recordings.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := serve(t)
	tried := 0
	for line := range strings.Lines(string(page)) {
		words := strings.Fields(line)
		if len(words) < 4 || !strings.HasSuffix(line, "> posts.csv\n") {
			continue
		}
		tried++
		name := words[1] // of the database
		create := "psql -q " + name
		if words[0] == "sqlite3" {
			name = words[3]
			create = "sqlite3 " + name
		}
		shell(t, dir, create, readers[name])
		shell(t, dir, line, "")
		rec, err := env.ReadRecording(context.Background(), filepath.Join(dir, "posts.csv"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []int64
		rec.Each(func(_ int, at int64, _ float64) { got = append(got, at) })
		if !slices.Equal(got, []int64{1_000_000, 1_003_600}) ||
			!slices.Equal(rec.Names, []string{"line\nbreak", "one, two"}) {
			t.Errorf("%s: publications at %v of %q", name, got, rec.Names)
		}
	}
	if tried != len(readers) {
		t.Errorf("%d exports on the page; want %d", tried, len(readers))
	}
}

// shell runs a command line in a directory, with a database server there.
func shell(t *testing.T, dir, line, stdin string) {
	t.Helper()
	c := exec.Command("sh", "-c", line)
	c.Dir, c.Stdin = dir, strings.NewReader(stdin)
	c.Env = append(os.Environ(), "PGHOST="+dir, "PGUSER=postgres", "PGTZ=Asia/Kolkata")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
}

// serve starts PostgreSQL with the databases of the readers, on a socket in a new
// directory, which it returns. It does not run as root.
func serve(t *testing.T) (dir string) {
	installed, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	_, err := exec.LookPath("sqlite3")
	if len(installed) == 0 || err != nil {
		if os.Getenv("EPHEMERA_REQUIRE_ALL") == "1" {
			t.Fatal("PostgreSQL and SQLite are needed")
		}
		t.Skip("PostgreSQL and SQLite are needed")
	}
	bin := installed[len(installed)-1]
	dir, err = os.MkdirTemp("", "readers")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	var who *syscall.SysProcAttr
	if os.Getuid() == 0 {
		const nobody = 65534
		who = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = dir, who
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-k", dir, "-h", "", "-F")
	server.Dir, server.SysProcAttr = dir, who
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Signal(syscall.SIGQUIT); _ = server.Wait() })
	shell(t, dir, "for i in $(seq 100); do pg_isready -q && break; sleep .1; done; "+
		"createdb miniflux && createdb commafeed", "")
	return dir
}
