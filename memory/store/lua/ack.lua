-- KEYS[1]: a ready queue. ARGV[1], a JSON object: `group`, `consumer`, `entry`, `deliveries`, and `other`, the
-- delivery (`<entry>|<count>`) of another wake-up, if one is named; '' stands for one that is not pending.
-- Removes a wake-up if it is still the caller's, in the same delivery, and if the other one is still pending in
-- that delivery. Answers 1, or 0 if nothing was removed.
local request = cjson.decode(ARGV[1])
local function pending_of(entry)
  return redis.call('XPENDING', KEYS[1], request.group, entry, entry, 1)[1]
end
local pending = pending_of(request.entry)
if not pending or pending[2] ~= request.consumer or pending[4] ~= request.deliveries then return 0 end
if request.other then
  local entry, count = string.match(request.other, '^(.*)|(%d+)$')
  local other = entry and entry ~= request.entry and pending_of(entry)
  if not other or other[4] ~= tonumber(count) then return 0 end
end
redis.call('XACK', KEYS[1], request.group, request.entry)
return redis.call('XDEL', KEYS[1], request.entry)
