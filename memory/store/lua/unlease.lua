-- KEYS[1]: a lease by name. ARGV[1], a JSON object: `token`. Gives the lease back if the caller has it.
if redis.call('GET', KEYS[1]) == cjson.decode(ARGV[1]).token then return redis.call('DEL', KEYS[1]) end
return 0
