-- ARGV: token. A holder gives back what it has not answered; that attempt does not count. A turn of which
-- nothing was done stands as if never begun, and takes along what has come since.
if redis.call('GET', LEASE) ~= ARGV[1] then return 'refused' end
if redis.call('HEXISTS', TURN, 'attempts') == 1 and redis.call('HEXISTS', TURN, 'outbox') == 0 then
  local others = redis.call('HINCRBY', TURN, 'attempts', -1)
  if others <= 0 and redis.call('HEXISTS', TURN, 'failures') == 0 then redis.call('DEL', TURN) end
end
redis.call('DEL', LEASE)
return 'ok'
