-- Uses: scope, interrupt
-- ARGV[1], a JSON object: `token`, `epoch` and `erasure` of a step; `lease_ms`; and the fields that `interrupt` reads.
-- ARGV[2]: the outbox.
-- Stores the reply with its first part marked as being sent. From now on the model is not asked for this turn.
-- Answers as `renew` does. If the run has to end, nothing is stored.
local request = cjson.decode(ARGV[1])
if refused(request) then return 'refused' end
redis.call('PEXPIRE', LEASE, request.lease_ms)
local why = interruption(request)
if why then return why end
redis.call('HSET', TURN, 'ballast', '', 'outbox', ARGV[2], 'sending', 0)
return 'ok'
