-- ARGV: token. A stopping holder gives back; an unanswered attempt does not count.
if redis.call('GET', LEASE) ~= ARGV[1] then return 'refused' end
if redis.call('HEXISTS', TURN, 'attempts') == 1 and redis.call('HEXISTS', TURN, 'outbox') == 0 then
  redis.call('HINCRBY', TURN, 'attempts', -1)
end
redis.call('DEL', LEASE)
return 'ok'
