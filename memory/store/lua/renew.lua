-- ARGV: token, epoch, erasure, lease ms.
if refused(ARGV[1], ARGV[2], ARGV[3]) then return 'refused' end
redis.call('PEXPIRE', LEASE, ARGV[4])
return 'ok'
