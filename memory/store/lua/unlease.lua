-- KEYS[1]: a lease by name. ARGV[1], a JSON object: `token`. Gives the lease back if the caller has it.
local token = cjson.decode(ARGV[1]).token
-- Valkey 9 has one command for it.
if (redis.VALKEY_VERSION_NUM or 0) >= 0x00090000 then return redis.call('DELIFEQ', KEYS[1], token) end
return redis.call('GET', KEYS[1]) == token and redis.call('DEL', KEYS[1]) or 0
