-- Uses: send_rate
-- KEYS[1]: a chat's send rate. ARGV[1], a JSON object, times in ms: `every_ms`, after how long one permit is free again;
-- `burst_ms`, how far ahead permits may be taken; `max_ms`, when all are free at the latest; `max_wait_ms`, the
-- longest wait that is accepted, absent if the caller does not wait and only counts; `spare`, how many permits must stay
-- free.
-- Takes a permit unless the wait would be too long, or, if the caller does not wait, the chat is banned.
-- Answers {1 if it was taken, the wait, how long the ban still lasts}.
local request = cjson.decode(ARGV[1])
local function wait_after(taken) return math.max(taken + request.spare * request.every_ms - request.burst_ms, 0) end
local ban, taken, is_known = state(request.max_ms, request.burst_ms)
local wait = wait_after(taken)
if request.max_wait_ms then
  if wait > request.max_wait_ms then return {0, wait, ban} end
elseif ban > 0 then
  return {0, wait, ban}
end
local ttl_ms = math.min(taken + request.every_ms, ban + request.max_ms)
if is_known then
  redis.call('PEXPIRE', KEYS[1], ttl_ms)
elseif redis.pcall('SET', KEYS[1], '', 'PX', ttl_ms).err then
  -- A full Redis refuses SET as a script's first write, but not as its second one.
  redis.call('PEXPIRE', KEYS[1], ttl_ms)
  redis.call('SET', KEYS[1], '', 'PX', ttl_ms)
end
return {1, wait, ban}
