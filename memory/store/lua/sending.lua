-- ARGV: token, epoch, erasure, lease ms, part, message ids sent so far, turn.
if refused(ARGV[1], ARGV[2], ARGV[3]) then return refusal(ARGV[2], ARGV[3], ARGV[7], ARGV[6]) end
-- Takes away before it adds: a reply that has begun is sent to its end where Redis is full.
redis.call('HDEL', TURN, 'sending', 'sent')
redis.call('HSET', TURN, 'sending', ARGV[5], 'sent', ARGV[6])
redis.call('PEXPIRE', LEASE, ARGV[4])
return 'ok'
