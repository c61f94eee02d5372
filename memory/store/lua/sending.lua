-- Uses: scope
-- Keys: meta, lease, turn, mailbox, seen, log
-- ARGV[1], a JSON object: `token`, `epoch` and `erasure` of a step; `turn`; `lease_ms`; `part`, the part that
-- is sent next; `sent`, the message ids of the parts before it, separated by commas.
local request = cjson.decode(ARGV[1])
local is_late = redis.call('HGET', TURN, 'id') ~= request.turn
if is_late or refused(request) then return refusal(request, request.sent) end
-- Deletes before it writes, so that Redis carries it out even when it is full.
redis.call('HDEL', TURN, 'sending', 'sent')
redis.call('HSET', TURN, 'sending', request.part, 'sent', request.sent)
redis.call('PEXPIRE', LEASE, request.lease_ms)
return 'ok'
