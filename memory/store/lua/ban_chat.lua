-- Uses: send_rate
-- KEYS[1]: a chat's send rate. ARGV[1], a JSON object, times in ms: `ban_ms`, how long nothing may be sent; `burst_ms`
-- and `max_ms` as in `take_permit`. A shorter ban does not end a longer one. Permits that were taken are void.
local request = cjson.decode(ARGV[1])
local ban, taken = state(request.max_ms, request.burst_ms)
ban = math.max(ban, request.ban_ms)
local ttl_ms = whole(math.max(taken, ban + request.burst_ms))
redis.call('PEXPIRE', KEYS[1], ttl_ms) -- a full Redis takes SET only after another write
redis.call('SET', KEYS[1], whole(now_ms() + ban) .. '|' .. whole(ban), 'PX', ttl_ms)
