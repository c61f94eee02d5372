-- KEYS: a sorted set by due time. ARGV: member, its score. Leaves an entry that was moved meanwhile.
if redis.call('ZSCORE', KEYS[1], ARGV[1]) == ARGV[2] then return redis.call('ZREM', KEYS[1], ARGV[1]) end
return 0
