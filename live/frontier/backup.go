package frontier

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// backupName is that of a copy, by the time at which it was asked for, in UTC.
const backupName = "20060102T150405.000Z"

// Backup copies the state, while the service goes on, to a directory of its own in that of the
// options, and returns its name. What the URLs of learned crawls have in common is in it as of
// now, or the error says that it is older. The copy is a state directory: -dir of another service.
func (s *Server) Backup() (dir string, err error) {
	dir = filepath.Join(s.opt.Backups, s.now().UTC().Format(backupName))
	if !s.underWay.TryRLock() {
		err = errClosing
	} else {
		defer s.underWay.RUnlock()
		saved := s.opt.Learned.Save()
		if err = os.MkdirAll(s.opt.Backups, 0o700); err == nil {
			err = s.store.Backup(dir)
		}
		if err == nil && saved != nil {
			err = fmt.Errorf("the copy %s is made, with what learned crawls had when it was kept last: %w", dir, saved)
		}
	}
	if err != nil {
		s.opt.Log.Error("no backup is made, or not of all", "dir", dir, "error", err)
		return "", err
	}
	s.opt.Log.Info("backup", "dir", dir)
	return dir, nil
}

// serveBackup makes a copy and answers with its name.
func (s *Server) serveBackup(w http.ResponseWriter, _ *http.Request) {
	http.NewResponseController(w).SetWriteDeadline(time.Time{}) // it takes as long as the state is large
	dir, err := s.Backup()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Write([]byte(dir + "\n"))
}
