-- ARGV: token, epoch, erasure, lease ms, part, message ids sent so far.
if refused(ARGV[1], ARGV[2], ARGV[3]) then return 'refused' end
redis.call('HSET', TURN, 'sending', ARGV[5], 'sent', ARGV[6])
redis.call('PEXPIRE', LEASE, ARGV[4])
return 'ok'
