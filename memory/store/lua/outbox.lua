-- Uses: scope
-- ARGV[1], a JSON object: `token`, `epoch` and `erasure` of a step; `lease_ms`. ARGV[2]: the outbox.
-- Stores the reply with its first part marked as being sent. From now on the model is not asked for this turn.
local request = cjson.decode(ARGV[1])
if refused(request) then return 'refused' end
redis.call('HDEL', TURN, 'ballast')
redis.call('HSET', TURN, 'outbox', ARGV[2], 'sending', 0)
redis.call('PEXPIRE', LEASE, request.lease_ms)
return 'ok'
