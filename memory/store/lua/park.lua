-- ARGV: token, epoch, erasure, pause in ms. The turn keeps its outbox and waits without a lease.
if refused(ARGV[1], ARGV[2], ARGV[3]) then return 'refused' end
redis.call('HSET', TURN, 'due', whole(now_ms() + ARGV[4]), 'pause', ARGV[4])
redis.call('DEL', LEASE)
return 'ok'
