-- Uses: scope
-- ARGV[1], a JSON object: `token`. Gives the lease back without an answer; the attempt does not count. If the turn
-- has no outbox, no failure and no other attempt, it is dissolved, so that the next one also takes later messages.
local request = cjson.decode(ARGV[1])
if redis.call('GET', LEASE) ~= request.token then return 'refused' end
if redis.call('HEXISTS', TURN, 'attempts') == 1 and redis.call('HEXISTS', TURN, 'outbox') == 0 then
  local attempts = redis.call('HINCRBY', TURN, 'attempts', -1)
  if attempts <= 0 and redis.call('HEXISTS', TURN, 'failures') == 0 then redis.call('DEL', TURN) end
end
redis.call('DEL', LEASE)
return 'ok'
