-- Uses: scope
-- Keys: meta, lease, turn
-- ARGV[1], a JSON object: `token`, `epoch` and `erasure` of a step; `pause_ms`. The turn keeps its outbox and waits
-- without a lease.
local request = cjson.decode(ARGV[1])
if refused(request) then return 'refused' end
redis.call('HSET', TURN, 'due', whole(now_ms() + request.pause_ms), 'pause', request.pause_ms)
redis.call('DEL', LEASE)
return 'ok'
