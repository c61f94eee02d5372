-- ARGV: token, epoch, erasure, due in ms. The turn keeps its outbox and waits without a lease.
if refused(ARGV[1], ARGV[2], ARGV[3]) then return 'refused' end
redis.call('HSET', TURN, 'due', ARGV[4])
redis.call('DEL', LEASE)
return 'ok'
