-- Uses: scope
-- Keys: meta, learned, records, rvec, turn, mailbox, seen, log, vec, dead_letters
-- ARGV[1], a JSON object: `ttl_s`. Keeps all of a scope as long as if something had been written to it now.
touch(cjson.decode(ARGV[1]).ttl_s, {META})
return 'ok'
