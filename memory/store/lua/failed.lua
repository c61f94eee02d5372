-- ARGV: token, epoch, erasure, turn, class of the error. What made the turn fail is noted and the lease
-- given back; a turn begun since the failed one was committed does not pay for it.
if refused(ARGV[1], ARGV[2], ARGV[3]) then return 'refused' end
if redis.call('HGET', TURN, 'id') == ARGV[4] then
  redis.call('HSET', TURN, 'error', ARGV[5])
  redis.call('HINCRBY', TURN, 'failures', 1)
elseif redis.call('HEXISTS', TURN, 'attempts') == 1 then
  redis.call('HINCRBY', TURN, 'attempts', -1)
end
redis.call('DEL', LEASE)
return 'ok'
