-- ARGV: token, epoch, erasure, lease ms, parts. From here the model is never asked again for this turn.
if refused(ARGV[1], ARGV[2], ARGV[3]) then return 'refused' end
redis.call('HDEL', TURN, 'ballast')
redis.call('HSET', TURN, 'outbox', ARGV[5], 'sending', 0)
redis.call('PEXPIRE', LEASE, ARGV[4])
return 'ok'
