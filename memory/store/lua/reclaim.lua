-- KEYS[1]: a ready queue. ARGV[1], a JSON object: `group`, `consumer`, `idle_ms`, `max_wake_ups`.
-- Takes over wake-ups that were idle for so long. Answers a list of {entry, tag, delivery count}.
local request = cjson.decode(ARGV[1])
local claimed = redis.call('XAUTOCLAIM', KEYS[1], request.group, request.consumer, request.idle_ms, '0-0',
  'COUNT', request.max_wake_ups)
local wake_ups = {}
for _, entry in ipairs(claimed[2]) do
  if entry and entry[2] then
    local pending = redis.call('XPENDING', KEYS[1], request.group, entry[1], entry[1], 1)[1]
    wake_ups[#wake_ups + 1] = {entry[1], entry[2][2], pending and pending[4] or 0}
  end
end
return wake_ups
