-- Uses: scope
-- Keys: meta, lease, learned, records, rvec, turn, mailbox, seen, log, vec, dead_letters
-- ARGV[1], a JSON object: `token`, `epoch` and `erasure` of a step; `pause_ms`; `ttl_s`. The turn keeps its outbox and
-- waits without a lease. The scope is kept as long as if something had been written to it now.
local request = cjson.decode(ARGV[1])
if refused(request) then return 'refused' end
redis.call('HSET', TURN, 'due', whole(now_ms() + request.pause_ms), 'pause', request.pause_ms)
touch(request.ttl_s)
redis.call('DEL', LEASE)
return 'ok'
