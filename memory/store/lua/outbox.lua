-- Uses: scope, interrupt
-- Keys: meta, lease, turn, mailbox, seen, confirm
-- ARGV[1], a JSON object: `token`, `epoch` and `erasure` of a step; `lease_ms`; `is_fresh`, if the lease was extended a
-- moment ago; `questions` that the reply asks, if there are any; and the fields that `interrupt` reads.
-- ARGV[2]: the outbox.
-- Stores the reply with its first part marked as being sent. From now on the model is not asked for this turn.
-- Answers as `renew` does. If the run has to end, nothing is stored. If another reply is stored already, that one stays,
-- and the answer is 'refused': the call may come late, from a run that was ended. So it is if another turn is open.
local request = cjson.decode(ARGV[1])
if refused(request) then return 'refused' end
if not request.is_fresh then redis.call('PEXPIRE', LEASE, request.lease_ms) end
local why, stored, turn = interruption(request)
if turn ~= request.turn then return 'refused' end
if why then return why end
if stored then return stored == ARGV[2] and 'ok' or 'refused' end
local reply = {'outbox', ARGV[2], 'sending', 0}
if type(redis.pcall('HSET', TURN, 'ballast', '', unpack(reply))) == 'table' then
  redis.call('HDEL', TURN, 'ballast') -- a script that deletes first may write afterwards, even when Redis is full
  redis.call('HSET', TURN, unpack(reply))
end
ask(request.questions)
return 'ok'
