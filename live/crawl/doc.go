// Package crawl crawls feeds, and learns when each is worth a look.
//
//  1. The list of feeds is an OPML file, which may be edited while it runs (opml.go), or that
//     of a reader (reader.go), which then fetches them itself (miniflux.go, freshrss.go).
//  2. At each [Crawler.Tick] the learner names feeds that are worth a look; the
//     schedule of live/store hands them out, one of a host at a time; live/feed
//     fetches them (crawl.go).
//  3. What a fetch found is put on disk together with what is known of the feed, and
//     then given to the learner (take.go). After a crash the learner is given again what
//     it observed since it was saved (state.go).
//  4. What people read of an item is kept for them (items.go), and given to their readers as
//     a feed (river.go).
//  5. A page shows what was found and what is thought (page.go), and how long items would
//     have waited under other rules (compare.go).
//
// Time is handed in, so that weeks can be played in minutes.
package crawl
