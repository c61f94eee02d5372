-- Uses: scope
-- Keys: meta, lease, turn
-- ARGV[1], a JSON object: `token`, `epoch` and `erasure` of a step; `turn`; `error`, the class of the error.
-- Counts a failure of the turn and gives the lease back. If the failed turn was committed meanwhile and the lease has
-- begun the next one, that one does not pay for the failure.
local request = cjson.decode(ARGV[1])
if refused(request) then return 'refused' end
if redis.call('HGET', TURN, 'id') == request.turn then
  redis.call('HSET', TURN, 'error', request.error)
  redis.call('HINCRBY', TURN, 'failures', 1)
elseif redis.call('HEXISTS', TURN, 'attempts') == 1 then
  redis.call('HINCRBY', TURN, 'attempts', -1)
end
redis.call('DEL', LEASE)
return 'ok'
