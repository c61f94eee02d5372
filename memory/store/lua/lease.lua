-- Uses: hold
-- KEYS[1]: a lease by name. ARGV[1], a JSON object: `token`, `ttl_ms`. Takes the lease if it is free, and extends it
-- if the caller has it. Answers 1, or 0 if another one has it.
local request = cjson.decode(ARGV[1])
return hold_lease(KEYS[1], request.token, request.ttl_ms) and 1 or 0
