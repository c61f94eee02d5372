-- KEYS: a simple lease. ARGV: token. Gives back only what is ours.
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
