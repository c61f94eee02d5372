-- KEYS: a sorted set by due time. ARGV: member, its score. Leaves an entry that was moved meanwhile.
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not score or tonumber(score) ~= tonumber(ARGV[2]) then return 0 end
return redis.call('ZREM', KEYS[1], ARGV[1])
