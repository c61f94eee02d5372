-- Uses: scope
-- Keys: meta, lease, turn
-- ARGV[1], a JSON object: `token`. Gives the lease back without an answer; the attempt does not count. If the turn
-- has no outbox, no failure, no other attempt and was not stopped, it is dissolved, so that the next one also takes
-- later messages.
local request = cjson.decode(ARGV[1])
if redis.call('GET', LEASE) ~= request.token then return 'refused' end
if redis.call('HEXISTS', TURN, 'attempts') == 1 and redis.call('HEXISTS', TURN, 'outbox') == 0 then
  local attempts = redis.call('HINCRBY', TURN, 'attempts', -1)
  local failures, stopped = unpack(redis.call('HMGET', TURN, 'failures', 'stopped'))
  if attempts <= 0 and not failures and not stopped then redis.call('DEL', TURN) end
end
redis.call('DEL', LEASE)
return 'ok'
